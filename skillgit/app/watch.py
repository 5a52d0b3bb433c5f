"""A cheap look at whether history, or who trains, has changed since an earlier look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.app.context import Context


def standing(context: Context) -> str:
    """Return a text that changes when a ref moves, the work tree gets another commit, or a training starts or ends.

    The index is not asked: every read of it takes in what refs say before it answers.

    Raises:
        RepositoryNotFoundError: There is no repository.
        HistoryError: git's refs cannot be read.
    """
    from skillgit.store.lock import live_runs  # noqa: PLC0415 - the first look at a screen does not wait for it
    from skillgit.store.repo import Repo  # noqa: PLC0415 - as above

    repo = Repo.discover(context.directory)
    look = repo.look()
    try:
        live = live_runs(repo)
    except OSError:
        # nobody can hold a lock where nobody can write
        live = {}
    return f"{look.packed} {sorted(look.loose.items())} {sorted(live.items())} {repo.head()}"
