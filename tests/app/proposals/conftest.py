"""A repository with two skills and their reviewed tasks, and a host for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from once import copy_folder, once
from town_host import fill, make_host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def two_skills(tmp_path_factory) -> Path:
    """A repository with two skills; whoever changes it takes a copy."""
    return once(tmp_path_factory, "two-skills", fill) / "repository"


@pytest.fixture
def repository(two_skills, tmp_path) -> Path:
    return copy_folder(two_skills, tmp_path / "repository")


@pytest.fixture
def host(repository, tmp_path) -> Path:
    return make_host(repository, tmp_path)
