from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says something of the machine and nothing of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def real() -> Path:
    """Return the folder with real SearchQA rows, which are not part of the project."""
    checkout = Path(__file__).parents[3]
    place = Path(os.environ.get("SKILLGIT_REAL_DATA", checkout.parent / "shared" / "data")) / "searchqa"
    if not place.is_dir():
        pytest.skip(f"no real data: set SKILLGIT_REAL_DATA to a folder with searchqa in it (looked at {place})")
    return place
