"""A repository with the sample run, and the context of a user who works in it."""

from __future__ import annotations

import pytest
from contexts import context_in
from sample_run import write_run

from skillgit.app.workspace.context import Context


@pytest.fixture
def context(repo) -> Context:
    return context_in(repo.workdir.resolve())


@pytest.fixture
def records(repo):
    """The events of the sample run, which stands in the repository of ``context``."""
    return write_run(repo)
