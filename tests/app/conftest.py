"""A repository with the sample run, and the context of a user who works in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contexts import context_in
from sample_run import write_run

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context


@pytest.fixture
def empty(tmp_path) -> Context:
    """A user in an empty folder."""
    folder = tmp_path / "mine"
    folder.mkdir()
    return context_in(folder)


@pytest.fixture
def context(repo) -> Context:
    """A user in an empty repository."""
    return context_in(repo.workdir.resolve())


@pytest.fixture
def records(repo):
    """The events of the sample run, which stands in the repository of ``context``."""
    return write_run(repo)
