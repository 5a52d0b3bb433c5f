"""What two commits have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


def common_ancestor(repo: Repo, one: str, other: str) -> str | None:
    """Return the best common ancestor of two commits, as ``git merge-base`` does; None if they have none.

    Raises:
        RevisionNotFoundError: One of them does not exist.
    """
    for commit in (one, other):
        repo.commit(commit)
    found = repo.raw.merge_base(pygit2.Oid(hex=one), pygit2.Oid(hex=other))
    return str(found) if found is not None else None
