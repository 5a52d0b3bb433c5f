"""The git binary, for what has to be exactly as git does it, and whether it works here now; writing while it prunes.

git takes away what no ref led to when it looked, also what a ref leads to by now, with the folders that became empty
and the files of a write that has not ended. The same content makes the same objects however often it is written. So it
is written again where something of it went (:func:`until_kept`), and once more when every git has ended that may have
looked before its refs moved (:func:`keep`).
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Protocol, TypeVar

from skillgit.errors import HistoryError, NotFoundError, RevisionNotFoundError, UsageError
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    import pygit2


class Folders(Protocol):
    """A repository as far as its folders say all: for git, for locks and for the files of this user."""

    git_dir: Path
    common_dir: Path
    workdir: Path | None

    @property
    def private_dir(self) -> Path: ...


def common_dir(directory: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the folder of refs and objects of the repository that contains ``directory``, if any."""
    output = _answer(environ, "-C", str(directory), "rev-parse", "--git-common-dir")
    return (directory / output).resolve() if output else None


def configured(directory: Path, environ: Mapping[str, str], key: str) -> str:
    """Return the value of ``key`` in git's configuration; empty if it is not set."""
    return _answer(environ, "-C", str(directory), "config", "--get", key)


def git_version() -> str:
    """Return the version of git on this machine; empty if there is none."""
    return _answer(os.environ, "--version").removeprefix("git version ")


def _answer(environ: Mapping[str, str], *arguments: str) -> str:
    """Return what git prints; empty if it fails, or there is none."""
    try:
        result = _run(command(*arguments), environ)
    except (OSError, NotFoundError):
        return ""
    return os.fsdecode(result.out).strip() if result.code == 0 else ""


_SETTINGS = (
    "core.fsmonitor=false",
    # a signature is verified by the program that gpg.program names
    "log.showSignature=false",
    # a tree is checked out alike on every system, and none of them lets it into git's own folder
    "core.protectHFS=true",
    "core.protectNTFS=true",
    # what is larger is reported as different, and not read whole; no text of a skill is as large
    "core.bigFileThreshold=16m",
)
_NO_HOOKS = f"core.hooksPath={os.devnull}"
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv")
"""Options of commands that print differences, which attributes and configuration may hand to programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitResult:
    code: int
    out: bytes
    error: str


def command(*arguments: str, hooks: bool = False) -> list[str]:
    """Return a git command line that starts no program which only the repository names; ``hooks`` as for a push."""
    settings = _SETTINGS if hooks else (*_SETTINGS, _NO_HOOKS)
    return ["git", "--no-pager", *(word for setting in settings for word in ("-c", setting)), *arguments]


def place_of(repo: Folders) -> list[str]:
    """Return the options that lead git to ``repo`` even if the environment sets GIT_DIR, as in a hook."""
    return [f"--git-dir={repo.git_dir}", *([f"--work-tree={repo.workdir}"] if repo.workdir else [])]


_ELSEWHERE = frozenset(
    {
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE"),
        *("GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"),
    }
)
"""What git sets for hooks, and users for scripts: it would send git to another repository than libgit2."""


def at_home(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` without what leads git away from the repository that its command line names."""
    return {name: value for name, value in environ.items() if name not in _ELSEWHERE}


def quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` for a command that only reads: it takes no locks for its own sake."""
    return at_home(environ) | {"GIT_OPTIONAL_LOCKS": "0"}


def git(
    repo: Folders, *arguments: str, hooks: bool = False, stdin: bytes = b"", beside: Mapping[str, str] | None = None
) -> GitResult:
    """Run git at the top of ``repo``, with the variables ``beside`` added; a NotFoundError without git."""
    line = command("-C", str(repo.workdir or repo.common_dir), *place_of(repo), *arguments, hooks=hooks)
    return _run(line, quiet(os.environ) | dict(beside or {}), stdin)


def _run(line: Sequence[str], environ: Mapping[str, str], stdin: bytes = b"") -> GitResult:
    try:
        process = subprocess.run(line, env=dict(environ), input=stdin, capture_output=True, check=False)  # noqa: S603 - a list
    except FileNotFoundError as error:
        raise NotFoundError("there is no git on the PATH", hint="install git") from error
    return GitResult(code=process.returncode, out=process.stdout, error=process.stderr.decode(errors="replace").strip())


_DAY = 24 * 60 * 60
_PRESENT = frozenset({"now", "today"})
_HINT = "write it like 2026-11-21T12:00:00Z, 2026-11-21, yesterday or '2 days ago'"


def moment(repo: Folders, text: str, now: datetime) -> int:
    """Return the seconds since 1970 that ``text`` names: RFC 3339 (local midnight by default), else as git reads it."""
    expression = text.strip()
    if expression.lower() == "tomorrow":
        # git knows yesterday, and takes this for the present
        return _ask_git(repo, "yesterday", now) + 2 * _DAY
    try:
        return int(datetime.fromisoformat(expression).timestamp())
    except ValueError:
        pass
    answer = _ask_git(repo, expression, now)
    # git takes what it does not understand for the present
    if answer == int(now.timestamp()) and expression.lower() not in _PRESENT and not re.search(r"\d", expression):
        raise UsageError(f"'{text}' is not a time", hint=_HINT)
    return answer


def _ask_git(repo: Folders, text: str, now: datetime) -> int:
    present = {"GIT_TEST_DATE_NOW": str(int(now.timestamp()))}
    answer = git(repo, "rev-parse", f"--since={text}", beside=present).out.decode(errors="replace")
    match = re.fullmatch(r"--max-age=(\d+)", answer.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a time", hint=_HINT)
    return int(match[1])


_T = TypeVar("_T")
_PROCESSES = Path("/proc")
_TRIES = 20
"""How often something is rewritten although no prune was seen."""
_PATIENCE_S = 60.0
_LONG_PATIENCE_S = 600.0
"""How long a process that ends waits for a git that may prune what it wrote."""
_PAUSE_S = 0.01
_PRUNING = frozenset({"gc", "maintenance", "prune", "repack", "git-gc", "git-maintenance", "git-prune", "git-repack"})
_writes: list[tuple[Folders, frozenset[int], Callable[[], object]]] = []
"""What git may prune yet: where, which processes may do it, and what writes it again."""
_holding = threading.RLock()


def git_is_at_work(repo: Folders) -> bool:
    """Say whether a process of git's runs in a folder of ``repo``; False where processes cannot be listed."""
    return any(True for _ in _processes(repo))


def _pruning(repo: Folders) -> frozenset[int]:
    return frozenset(process for process, words in _processes(repo) if not _PRUNING.isdisjoint(words))


def _processes(repo: Folders) -> Iterator[tuple[int, list[str]]]:
    """Yield git's processes that run in a folder of ``repo`` and their command lines, except other users'."""
    inside = [folder.resolve() for folder in (repo.workdir, repo.common_dir) if folder is not None]
    for process in list(os.scandir(_PROCESSES)) if _PROCESSES.is_dir() else ():
        if not process.name.isdecimal():
            continue
        try:
            with FileIO(f"{process.path}/comm") as comm:  # a machine has hundreds, and each event looks at all
                name = comm.read().strip()
            if name == b"git" or name.startswith(b"git-"):
                folder = Path(process.path, "cwd").readlink()
                if any(folder.is_relative_to(own) for own in inside):
                    words = Path(process.path, "cmdline").read_bytes().decode(errors="replace").split("\0")
                    yield int(process.name), [word.rpartition("/")[2] for word in words]
        except OSError:
            # it has ended, or is someone else's
            continue


def until_kept(repo: Folders, write: Callable[[], _T]) -> _T:
    """Return what ``write`` returns, repeated while git prunes what it needs; that makes the same objects again."""
    patience, unseen = time.monotonic() + _PATIENCE_S, 0
    while True:
        try:
            return write()
        except (pygit2.GitError, KeyError, OSError, HistoryError, RevisionNotFoundError):
            unseen += not git_is_at_work(repo)
            if unseen == _TRIES or time.monotonic() > patience:
                raise
        time.sleep(_PAUSE_S)
        write_again()


def keep(repo: Folders, write: Callable[[], object]) -> None:
    """Write ``write``'s objects again, now, later and at exit, while a git runs that may prune what refs lead to."""
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
            working = {repo: _pruning(repo) for repo, processes, _ in entries if processes}
            for repo, _, write in entries:
                until_kept(repo, write)
            entries = [entry for entry in entries if entry[1] & working.get(entry[0], frozenset())]
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
