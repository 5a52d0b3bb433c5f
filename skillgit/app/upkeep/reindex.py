"""``skillgit reindex``: drop the index and build it again from git."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError
from skillgit.index import queries, refresh
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What the new index holds."""

    runs: int
    events: int
    seconds: float


def reindex(context: Context) -> Reindexed:
    """Drop the index and build it again from git.

    Raises:
        RepositoryNotFoundError: There is no repository.
    """
    start = context.clock()
    repo = Repo.discover(context.directory)
    with refresh.rebuild(repo) as index:
        if not index.on_disk:
            folder = repo.common_dir / "skillgit"
            raise ConflictError(
                f"the index in {folder} cannot be written", hint=f"look who owns or locks it: ls -l {folder}"
            )
        runs, events = queries.counts(index)
    return Reindexed(runs=runs, events=events, seconds=(context.clock() - start).total_seconds())
