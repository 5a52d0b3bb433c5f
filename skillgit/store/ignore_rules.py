"""Which files of a folder git leaves out, by the rules of the folder itself and of the repository that holds it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pygit2

from skillgit.errors import SkillgitError
from skillgit.store.repo import Repo


class IgnoreRules:
    """What git ignores below a folder; a file that git tracks is never ignored."""

    def __init__(self, raw: pygit2.Repository, root: Path) -> None:
        self._raw, self._root = raw, root
        self._index = raw.index

    def ignores(self, path: Path) -> bool:
        inside = path.absolute().relative_to(self._root).as_posix()
        try:
            inside.encode()
        except UnicodeEncodeError:
            return False  # a name that no skill may have; who reads it says so
        return inside not in self._index and bool(self._raw.path_is_ignored(inside))


@contextmanager
def ignore_rules(folder: Path) -> Iterator[IgnoreRules]:
    """Read the rules that hold in ``folder``.

    They are those of its repository. Where there is none, or where it ignores ``folder`` as a whole, which someone
    named all the same, they are those of the ``.gitignore`` files in it.
    """
    folder = folder.resolve()
    try:
        repo = Repo.discover(folder)
    except SkillgitError:
        repo = None
    if repo is not None and repo.workdir is not None:
        root = repo.workdir.resolve()
        rules = IgnoreRules(repo.raw, root)
        if folder == root or (folder.is_relative_to(root) and not rules.ignores(folder)):
            yield rules
            return
    with tempfile.TemporaryDirectory() as git_dir:
        raw = pygit2.init_repository(git_dir, bare=True)
        raw.workdir = str(folder)
        yield IgnoreRules(raw, folder)
