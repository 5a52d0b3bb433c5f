"""Whether git itself works in a repository now, as far as this machine tells, and writing while it prunes.

git takes away what no ref led to when it looked, also what a ref leads to by now, with the folders that became empty
and the files of a write that has not ended. The same content makes the same objects however often it is written. So it
is written again where something of it went (:func:`until_kept`), and once more when every git has ended that may have
looked before its refs moved (:func:`keep`).
"""

from __future__ import annotations

import atexit
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from skillgit.errors import RevisionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.store.repo import Repo

_T = TypeVar("_T")
_PROCESSES = Path("/proc")
_TRIES = 20
"""How often something is written though nobody is seen who may have pruned a part of it."""
_PATIENCE_S = 60.0
_LONG_PATIENCE_S = 600.0
"""How long a process that ends waits for a git that may prune what it wrote."""
_PAUSE_S = 0.01
_PRUNING = frozenset({"gc", "maintenance", "prune", "repack", "git-gc", "git-maintenance", "git-prune", "git-repack"})
_writes: list[tuple[Repo, frozenset[int], Callable[[], object]]] = []
"""What git may prune yet: where, which processes may do it, and what writes it again."""
_holding = threading.RLock()


def git_is_at_work(repo: Repo) -> bool:
    """Say whether a process of git's runs in a folder of ``repo``; False where processes cannot be listed."""
    return any(True for _ in _processes(repo))


def _pruning(repo: Repo) -> frozenset[int]:
    return frozenset(process for process, words in _processes(repo) if not _PRUNING.isdisjoint(words))


def _processes(repo: Repo) -> Iterator[tuple[int, list[str]]]:
    """Yield git's processes that run in a folder of ``repo`` and their command lines, except other users'."""
    inside = [folder.resolve() for folder in (repo.workdir, repo.common_dir) if folder is not None]
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
            if name == "git" or name.startswith("git-"):
                folder = (process / "cwd").readlink()
                if any(folder.is_relative_to(own) for own in inside):
                    words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    yield int(process.name), [word.rpartition("/")[2] for word in words]
        except OSError:
            # it has ended, or is someone else's
            continue


def until_kept(repo: Repo, write: Callable[[], _T]) -> _T:
    """Return what ``write`` returns, repeated while git prunes what it needs; that makes the same objects again."""
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
        write_again()


def keep(repo: Repo, write: Callable[[], object]) -> None:
    """Make sure that nothing is lost of what ``write`` writes and refs lead to by now.

    It is written again now, with the next that is kept, and before the process ends, as long as a git is at work that
    may have looked before the refs moved.
    """
    with _holding:
        if not _writes:
            atexit.unregister(_settle)
            atexit.register(_settle)
        _writes.append((repo, _pruning(repo), write))
        write_again()


def write_again() -> None:
    """Write again what git may have pruned though refs lead to it; forget what it cannot prune any more."""
    with _holding:
        entries = list(_writes)
        _writes.clear()  # what is written here asks for nothing of it
        try:
            working = {repo: _pruning(repo) for repo, _, _ in entries}
            for repo, _, write in entries:
                until_kept(repo, write)
            entries = [(repo, processes, write) for repo, processes, write in entries if processes & working[repo]]
        finally:
            _writes[:] = entries


def _settle() -> None:
    patience = time.monotonic() + _LONG_PATIENCE_S
    try:
        while _writes and time.monotonic() < patience:
            time.sleep(_PAUSE_S)
            write_again()
    except KeyboardInterrupt:
        return
