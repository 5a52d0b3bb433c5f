"""``main`` goes forward to where another repository has it, with the work trees that have it checked out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import ConflictError
from skillgit.store import refs
from skillgit.store.binary import git
from skillgit.store.exchange.adopting import Joined, Joining
from skillgit.store.promotion import move_main
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


def adopt_main(repo: Repo, remote: str, theirs: str | None, *, dry_run: bool = False) -> Joined | None:
    """Let ``main`` go forward to ``theirs``; None if ``remote`` has no such branch.

    Whatever keeps it where it is is told, not raised.
    """
    if theirs is None:
        return None
    mine, reason = repo.tip(refs.MAIN), f"skillgit: pull from {remote}"
    if mine == theirs:
        return Joined(run="", state=Joining.UP_TO_DATE)
    if mine is None:
        if not dry_run:
            update = RefUpdate(name=refs.MAIN, new=theirs, expected=None)
            update_refs(repo, [update], identity=repo.identity(), reason=reason)
        return Joined(run="", state=Joining.NEW, moved=1)
    if _reaches(repo, mine, theirs):
        return Joined(run="", state=Joining.AHEAD)
    if not _reaches(repo, theirs, mine):
        told = f"main went on here and on {remote}; git merge {remote}/main brings both together"
        return Joined(run="", state=Joining.DIVERGED, reason=told)
    try:
        if not dry_run:
            move_main(repo, mine, theirs, reason=reason)
    except ConflictError as error:
        return Joined(run="", state=Joining.REFUSED, reason=error.message)
    return Joined(run="", state=Joining.FORWARD, moved=1)


def _reaches(repo: Repo, tip: str, ancestor: str) -> bool:
    """Say whether ``ancestor`` is ``tip`` or one of its ancestors; git reads dates that libgit2 takes for damage."""
    return git(repo, "merge-base", "--is-ancestor", ancestor, tip).code == 0
