"""Which folders of a commit are skills, and what stands in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.skill import DOCUMENT
from skillgit.errors import HistoryError
from skillgit.store import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.repo import Repo

_NAMES = frozenset({DOCUMENT, "skill.md"})


def skill_folders(repo: Repo, commit: str, only: str = "") -> dict[str, dict[str, bytes]]:
    """Return the skill folders of a commit by path, each with the content of its files; links are left out.

    Args:
        repo: The repository.
        commit: The commit.
        only: The one folder to return; empty for all.

    Raises:
        RevisionNotFoundError: There is no such commit.
        HistoryError: An object of it is missing or damaged.
    """
    root = repo.commit(commit).tree
    try:
        found = dict(_folders(root, ""))
        wanted = {only: found[only]} if only and only in found else {} if only else found
        return {path: tree.read_files(folder, tree.SKILL_FILES) for path, folder in wanted.items()}
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read commit {commit[:12]}: {error}", hint="skillgit fsck") from error


def _folders(folder: pygit2.Tree, path: str) -> Iterator[tuple[str, pygit2.Tree]]:
    if path and any(entry.name in _NAMES and isinstance(entry, pygit2.Blob) for entry in folder):
        yield path, folder
        return
    for entry in folder:
        if isinstance(entry, pygit2.Tree) and not str(entry.name).startswith("."):
            yield from _folders(entry, f"{path}/{entry.name}" if path else str(entry.name))
