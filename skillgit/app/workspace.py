"""The repository of a use case together with its index, open for as long as the use case lasts."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.index.refresh import Index, open_index
from skillgit.store.lock import live_runs
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A repository and its index.

    Attributes:
        repo: The repository.
        index: Its index, up to date.
    """

    repo: Repo
    index: Index

    def live(self) -> dict[str, int]:
        """Return the runs that are being trained on this machine, with their processes."""
        try:
            return live_runs(self.repo)
        except OSError:
            # nobody can hold a lock where nobody can write
            return {}


@contextmanager
def open_workspace(context: Context) -> Iterator[Workspace]:
    """Open the repository that the context's folder lies in.

    Raises:
        RepositoryNotFoundError: It lies in none that skillgit can use.
    """
    repo = Repo.discover(context.directory)
    with open_index(repo) as index:
        yield Workspace(repo=repo, index=index)
