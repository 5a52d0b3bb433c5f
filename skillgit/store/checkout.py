"""A version in the work tree, on the user's request and never over changes that would be lost."""

from __future__ import annotations

import re
from os.path import lexists
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.untrusted.file_names import COMPONENT_BYTES, PATH_BYTES, entry_name, escaped, git_fault, shown
from skillgit.errors import ConflictError, RevisionNotFoundError, UnsafeNameError, UsageError
from skillgit.store import diff
from skillgit.store.git_binary import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillgit.store.repo import Repo

_SHOWN = 5
_BRANCHES = "refs/heads/"
_MOVE = re.compile(r"checkout: moving from (?P<left>\S+) to ")
"""What git writes into the log of HEAD when it goes elsewhere."""


def checkout(repo: Repo, commit: str, branch: str = "") -> tuple[str, ...]:
    """Detach HEAD at ``commit``, or put it on ``branch``, whose tip that is; return the files that changed."""
    _work_tree(repo)
    repo.commit(commit)
    before = repo.head()[1]
    target = (branch,) if branch else ("--detach", commit)
    answer = git(repo, "checkout", "--quiet", *target, "--", hooks=True)
    if answer.code != 0:
        list(_blobs(repo, commit, ""))  # where a name is at fault, that is what is to be said
        raise ConflictError(
            f"git will not check out {branch or commit[:12]}: {escaped(answer.error)}",
            hint="commit or stash the changes: git stash" if "overwritten" in answer.error else "git status",
        )
    if not before:
        return tuple(sorted(_as_text(path) for path, _ in _blobs(repo, commit, "")))
    names = diff.diff(repo, before, commit, options=("--name-only", "-z", "--no-renames"))
    return tuple(path.decode(errors="replace") for path in names.split(b"\0") if path)


def is_branch(repo: Repo, name: str) -> bool:
    return repo.tip(f"{_BRANCHES}{name}") is not None


def last_branch(repo: Repo) -> str:
    """Return the branch that HEAD is on, or was on last; empty if that is unknown or gone."""
    name, _ = repo.head()
    if name:
        return name.removeprefix(_BRANCHES)
    moves = (_MOVE.match(entry.message) for entry in repo.raw.lookup_reference("HEAD").log())
    branches = (move["left"] for move in moves if move is not None)
    return next((branch for branch in branches if is_branch(repo, branch)), "")


def write_paths(repo: Repo, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Write the files or folders ``paths`` as they are in ``commit``; return the names of the files.

    HEAD, branches and the index stay. A file is overwritten only if git has its content, as of any version, somewhere.
    """
    root = _work_tree(repo)
    files: dict[str, pygit2.Oid] = {}
    for path in paths:
        blobs = dict(_blobs(repo, commit, path.strip("/")))
        if not blobs:
            raise RevisionNotFoundError(
                f"{commit[:12]} has no '{path}'", hint=f"git ls-tree -r --name-only {commit[:12]}"
            )
        files.update(blobs)
    conflicts = [path for path in sorted(files) if not _is_safe(repo, root / path)]
    if conflicts:
        more = " …" if conflicts[_SHOWN:] else ""
        raise ConflictError(
            f"{escaped(', '.join(conflicts[:_SHOWN]))}{more} would lose changes",
            hint="commit them or put them away: git stash",
        )
    answer = git(repo, "--literal-pathspecs", "restore", f"--source={commit}", "--worktree", "--overlay", "--", *files)
    if answer.code != 0:
        raise ConflictError(f"git cannot write the files: {escaped(answer.error)}", hint="git status")
    return tuple(sorted(map(_as_text, files)))


def _work_tree(repo: Repo) -> Path:
    if repo.workdir is None:
        raise UsageError("a bare repository has no work tree", hint="clone it, then check out there")
    return repo.workdir


def _blobs(repo: Repo, commit: str, path: str) -> Iterator[tuple[str, pygit2.Oid]]:
    """Yield the files at or under ``path``; links are files too."""
    root: pygit2.Object = repo.commit(commit).tree
    if path:
        try:
            root = repo.commit(commit).tree[path]
        except (KeyError, ValueError):
            return
    waiting = [(path, root)]
    while waiting:
        name, entry = waiting.pop()
        if isinstance(entry, pygit2.Blob):
            yield name, entry.id
        elif isinstance(entry, pygit2.Tree) and len(name) <= PATH_BYTES:
            # as git takes it on a command line: not every name is UTF-8
            waiting.extend((f"{name}/{_checked(child)}".lstrip("/"), child) for child in entry)


def _as_text(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _checked(entry: pygit2.Object) -> str:
    """Return the name of ``entry`` unless it is unsafe, on whatever system; git would not check it out either."""
    raw = entry.raw_name or b""
    # git would find only half-way that no file can be called so
    long = f"it is longer than {COMPONENT_BYTES} bytes" if len(raw) > COMPONENT_BYTES else ""
    if fault := git_fault(name := entry_name(raw)) or long:
        raise UnsafeNameError(
            f"{shown(name)} cannot be checked out: {fault}", hint="skillgit show and diff show what it holds"
        )
    return raw.decode(errors="surrogateescape")


def _is_safe(repo: Repo, file: Path) -> bool:
    if not lexists(file):  # nor if its name is too long for this system
        return True
    return not file.is_symlink() and file.is_file() and pygit2.hash(file.read_bytes()) in repo.raw
