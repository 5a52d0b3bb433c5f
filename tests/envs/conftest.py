"""What the tests of all environments share."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


@pytest.fixture(autouse=True)
def _has_its_packages(request: pytest.FixtureRequest) -> None:
    if request.path.parent.name == "alfworld" and find_spec("textworld") is None:
        pytest.skip("alfworld is not installed: pip install 'skillgit[alfworld]', which needs gcc, g++ and make")

    if request.path.parent.name == "inspect":
        pytest.importorskip("inspect_ai", reason="inspect is not installed: pip install 'skillgit[inspect]'")


@pytest.fixture
def real(request: pytest.FixtureRequest) -> Path:
    """The folder with real items of the environment that the test is about; they are not part of the project."""
    place = DATA / request.path.parent.name
    if not place.is_dir():
        pytest.skip(f"no real items at {place}; SKILLGIT_REAL_DATA names the folder that holds it")
    return place
