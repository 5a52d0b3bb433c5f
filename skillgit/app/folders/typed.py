"""Paths as people type them, and where a repository would lead them with links of its own."""

from __future__ import annotations

import os
from contextlib import suppress
from os.path import normpath
from pathlib import Path

from skillgit.domain.untrusted.names import git_fault
from skillgit.errors import UsageError


def typed_path(directory: Path, text: str) -> Path:
    """Return the path that ``text`` means in ``directory``, without ``..``; links on it are not followed.

    A leading ``~`` is the user's home also where the shell leaves it alone, as in ``--to=~/skills``.
    """
    path = Path(text)
    with suppress(RuntimeError):  # nobody is called so: it is a name like any other
        path = path.expanduser()
    return Path(normpath(directory / path))


def refuse_way_out(place: Path, *, followed: bool = False) -> Path:
    """Return ``place``, which is to be written, unless a link in a work tree leads from it to somewhere else.

    A commit can hold links, so that whoever checks a stranger's commit out has them: ``.claude`` could lead to the
    user's home, ``report.html`` to a file of his. A place outside of every work tree is as the user has made it.

    Args:
        place: An absolute path.
        followed: Whether it is written through where it is a link itself; else what is written takes its place.

    Raises:
        UsageError: It lies in a work tree by its name, and elsewhere, or in git's own folder, in fact.
    """
    meant = Path(normpath(place))
    top = _work_tree(meant)
    if top is None:
        return place
    real = place.resolve() if followed else place.parent.resolve() / place.name
    kept = real.is_relative_to(top.resolve()) and not _is_gits(real.relative_to(top.resolve()))
    if not kept and not _is_gits(meant.relative_to(top)) and not _is_device(real):
        raise UsageError(f"{place} leads out of the repository at {top}, over a link, to {real}", hint=f"name {real}")
    return place


def _work_tree(place: Path) -> Path | None:
    """Return the work tree that ``place`` lies in by its name; links in a work tree lead to no other one."""
    top = None
    for folder in reversed(place.parents):
        if top is not None and folder.is_symlink():
            break
        if os.path.lexists(folder / ".git"):
            top = folder
    return top


def _is_gits(inside: Path) -> bool:
    return any(git_fault(part) for part in inside.parts)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
