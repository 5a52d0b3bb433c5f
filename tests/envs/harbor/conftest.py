"""What the tests of Harbor's bridge share: its Python, and a stand-in for Harbor itself."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from harbor_trials import Played, environment_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def real_python() -> str:
    """The Python that has Harbor."""
    python = os.environ.get("SKILLGIT_HARBOR", "")
    if not python or shutil.which("bwrap") is None:
        pytest.skip("SKILLGIT_HARBOR has to name a Python with the package harbor, and bubblewrap has to be installed")
    return environment_of(python)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return Played(tmp_path)
