"""A repository with the sample run, and the context of a user who works in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contexts import context_in
from sample_run import write_run

from skillgit.index.refresh import open_index, path_of

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
    """The events of the sample run, which stands in the repository of ``context`` and in its index."""
    records = write_run(repo)
    if _INDEX:
        path_of(repo).write_bytes(_INDEX[0])
    else:
        open_index(repo).close()
        _INDEX.append(path_of(repo).read_bytes())
    return records


_INDEX: list[bytes] = []
"""The index of the sample run, once it was built."""
