"""What tests of the pages share: a repository to look at, its server, and a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browser import chromium
from program import git
from serving import serving, two_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser
    from serving import Served


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two finished runs, which stays as it is."""
    return two_runs(tmp_path_factory)


@pytest.fixture(autouse=True)
def _unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that changes the repository of all: another worker reads it at the same time."""
    if "repository" not in request.fixturenames:
        yield
        return
    path = request.getfixturevalue("repository")
    before = git("for-each-ref", cwd=path).out
    yield
    assert git("for-each-ref", cwd=path).out == before, "take a copy of the repository"


@pytest.fixture(scope="session")
def served(repository: Path) -> Iterator[Served]:
    with serving(repository) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened
