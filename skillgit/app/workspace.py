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
        past: Whether both end with an event of the past.
    """

    repo: Repo
    index: Index
    past: bool = False

    def live(self) -> dict[str, int]:
        """Return the runs that are being trained on this machine, with their processes."""
        if self.past:
            return {}
        try:
            return live_runs(self.repo)
        except OSError:
            # nobody can hold a lock where nobody can write
            return {}


@contextmanager
def open_workspace(context: Context) -> Iterator[Workspace]:
    """Open the repository that the context's folder lies in, as it is or as it was.

    Raises:
        RepositoryNotFoundError: It lies in none that skillgit can use.
        RevisionNotFoundError: The context's ``as_of`` names no event.
    """
    repo = Repo.discover(context.directory)
    with open_index(repo) as index:
        workspace = Workspace(repo=repo, index=index)
        if context.as_of:
            from skillgit.app.as_of import cut_off  # noqa: PLC0415 - most looks are at the present

            workspace = cut_off(workspace, context.as_of)
        yield workspace
