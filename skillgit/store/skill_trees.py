"""The skill folders of a commit by the ids of their trees: equal ids are equal texts, whatever commits hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

from skillgit.store.mainline import skills_at

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


def skill_trees(repo: Repo, commit: str) -> dict[str, str]:
    """Return the path of every skill folder under ``skills/`` at ``commit`` with the id of its tree.

    Raises:
        RevisionNotFoundError: There is no such commit.
    """
    return {path: skill_tree(repo, commit, path) for path in skills_at(repo, commit)}


def skill_tree(repo: Repo, commit: str, path: str) -> str:
    """Return the id of the tree at ``path`` of ``commit``; empty if the commit or the folder is not here."""
    if not repo.has_object(commit):
        return ""
    found = repo.raw[commit]
    if not isinstance(found, pygit2.Commit):
        return ""
    try:
        folder = found.tree[path]
    except KeyError:
        return ""
    return str(folder.id) if isinstance(folder, pygit2.Tree) else ""
