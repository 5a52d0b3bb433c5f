"""Files of projects as git has them, read from objects alone: no work tree, no filter, no program."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import pygit2

from skillgit.errors import SkillgitError
from skillgit.store.repo import Repo
from skillgit.store.tree import content_of, entry_at, size_of, walk

if TYPE_CHECKING:
    from pathlib import Path


class ProjectFiles:
    """The history of the repository around a folder, which may be a project's or one that a program keeps copies in."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    @classmethod
    def around(cls, folder: Path) -> ProjectFiles | None:
        """Open the repository that contains ``folder``; None if there is none that can be read."""
        try:
            return cls(Repo.discover(folder))
        except SkillgitError:
            return None

    @property
    def folder(self) -> Path | None:
        """The work tree, if there is one."""
        return self._repo.workdir

    def full_id(self, revision: str) -> str:
        """Return the id of the commit that ``revision``, an id or the beginning of one, means; empty if none."""
        commit = self._object(revision)
        return str(commit.id) if isinstance(commit, pygit2.Commit) else ""

    def content(self, revision: str, path: str) -> bytes | None:
        """Return what the file at ``path`` holds in a commit or tree; None where there is none."""
        entry = self._entry(revision, path)
        return content_of(self._repo, entry, path) if isinstance(entry, pygit2.Blob) else None

    def folder_id(self, revision: str, path: str) -> str:
        """Return the id of the tree at ``path`` in a commit or tree; empty if no folder is there."""
        entry = self._entry(revision, path)
        return str(entry.id) if isinstance(entry, pygit2.Tree) else ""

    def listing(self, revision: str, most: int) -> Iterator[tuple[str, int]]:
        """Yield paths, for showing and comparing, and sizes in bytes of the first files of a commit or tree."""
        tree = self._tree(revision)
        for name, entry in islice(walk(tree), most) if tree is not None else ():
            if isinstance(entry, pygit2.Blob):
                yield name, size_of(self._repo, entry.id)

    def _entry(self, revision: str, path: str) -> pygit2.Object | None:
        tree = self._tree(revision)
        return entry_at(tree, path) if tree is not None and path else None

    def _tree(self, revision: str) -> pygit2.Tree | None:
        obj = self._object(revision)
        root = obj.tree if isinstance(obj, pygit2.Commit) else obj
        return root if isinstance(root, pygit2.Tree) else None

    def _object(self, revision: str) -> pygit2.Object | None:
        try:
            return self._repo.raw[revision]
        except (KeyError, ValueError, pygit2.GitError):
            return None
