"""Whether git itself works in a repository now, as far as this machine tells, and writing while it prunes.

git takes away what no ref led to when it looked, with the folders that became empty and the files of a write that has
not ended.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from skillgit.errors import RevisionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.store.repo import Repo

_T = TypeVar("_T")
_PROCESSES = Path("/proc")
_TRIES = 5
"""How often something is written though nobody is seen who may have pruned a part of it."""
_PATIENCE_S = 60.0
_PAUSE_S = 0.01


def git_is_at_work(repo: Repo) -> bool:
    """Say whether a process of git's runs in a folder of ``repo``; False where processes cannot be looked at."""
    return bool(git_processes(repo))


def git_processes(repo: Repo) -> frozenset[int]:
    """Return the ids of git's processes that run in a folder of ``repo``; none where they cannot be looked at."""
    inside = [folder.resolve() for folder in (repo.workdir, repo.common_dir) if folder is not None]
    return frozenset(
        process for process, folder in _folders_of_git() if any(folder.is_relative_to(own) for own in inside)
    )


def _folders_of_git() -> Iterator[tuple[int, Path]]:
    """Yield the processes of git's and the folders that they run in; those of other people are left out."""
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
            if name == "git" or name.startswith("git-"):
                yield int(process.name), (process / "cwd").readlink()
        except OSError:
            # it has ended, or is somebody else's
            continue


def until_kept(repo: Repo, write: Callable[[], _T]) -> _T:
    """Return what ``write`` does, done anew as long as git prunes what it needs; that makes the same objects again.

    Raises:
        OSError: The repository cannot be written, whoever works in it.
    """
    import pygit2  # noqa: PLC0415 - screens are ready before it is loaded

    patience, unseen = time.monotonic() + _PATIENCE_S, 0
    while True:
        try:
            return write()
        except (pygit2.GitError, KeyError, OSError, RevisionNotFoundError):
            unseen += not git_is_at_work(repo)
            if unseen == _TRIES or time.monotonic() > patience:
                raise
        time.sleep(_PAUSE_S)
