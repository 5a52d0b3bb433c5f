"""Differences as git prints them, byte for byte, by asking git."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pygit2

from skillgit.errors import RevisionNotFoundError
from skillgit.store.git_binary import NO_PROGRAMS, git

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.store.repo import Repo


def common_ancestor(repo: Repo, first: str, second: str) -> str | None:
    """Return the best common ancestor of two commits, as ``git merge-base`` does; None if they have none."""
    for commit in (first, second):
        repo.commit(commit)
    ancestor = repo.raw.merge_base(pygit2.Oid(hex=first), pygit2.Oid(hex=second))
    return str(ancestor) if ancestor is not None else None


WHOLE_FILES = 1_000_000
"""More lines of context than a file of a skill has."""
# colours and prefixes of the user's are for reading, and this is read by a program
_AS_DATA = ("--no-color", "--src-prefix=a/", "--dst-prefix=b/")
PATCH = ("-p", "-U3", *_AS_DATA)
"""The form of a patch that no setting of the user changes."""


def diff(repo: Repo, old: str, new: str, *paths: str, options: tuple[str, ...] = ()) -> bytes:
    """Return what ``git diff OLD NEW -- PATHS`` prints to a pipe; empty ``paths``, taken literally, do not count."""
    for commit in (old, new):
        repo.commit(commit)
    answer = git(repo, "--literal-pathspecs", "diff", *NO_PROGRAMS, *options, old, new, "--", *filter(None, paths))
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot compare {old[:12]} with {new[:12]}: {answer.error}", hint="git fsck")
    return answer.out


def stat(repo: Repo, old: str, new: str, *paths: str) -> str:
    return diff(repo, old, new, *paths, options=("--stat",)).decode(errors="replace")


def whole(repo: Repo, old: str, new: str, *paths: str) -> str:
    """Return the difference with all lines of the files that differ, in a form that no setting of the user changes."""
    text = diff(repo, old, new, *paths, options=(*_AS_DATA, f"-U{WHOLE_FILES}"))
    return text.decode(errors="replace")


def change(repo: Repo, commit: str, path: str = "") -> bytes:
    """Return what ``commit`` changed against its first parent; for a first commit, all that it holds."""
    parents = repo.commit(commit).parent_ids
    if parents:
        return diff(repo, str(parents[0]), commit, path)
    arguments = (*NO_PROGRAMS, "--root", "-p", "--no-commit-id", "-r", commit, "--", *([path] if path else []))
    answer = git(repo, "diff-tree", *arguments)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show {commit[:12]}: {answer.error}", hint="git fsck")
    return answer.out


_AT_FIRST, _AT_MOST = 64, 1024
"""Commits for one git process: at first few enough to have them soon, later enough to make its start cheap."""
_COMMAND = (
    # what `git diff PARENT COMMIT` prints: no notes, the first parent of a merge, everything of a root
    *("-c", "log.showRoot=true", "log", "--no-walk=unsorted", "--stdin"),
    *("--diff-merges=first-parent", "--no-color", *NO_PROGRAMS),
)


def patches(repo: Repo, commits: Sequence[str], path: str, options: tuple[str, ...] = ("-p",)) -> Iterator[bytes]:
    """Yield what each of ``commits`` changed in ``path`` against its first parent, as ``git diff`` prints it, in order.

    An empty path is the whole tree; ``options`` are ``-p``, ``--stat`` or both. A root commit shows all that it holds.
    """
    start, count = 0, _AT_FIRST
    while part := commits[start : start + count]:
        changes = _changes(repo, part, path, options)
        yield from (changes.get(commit, b"") for commit in part)
        start, count = start + count, min(2 * count, _AT_MOST)


def _changes(repo: Repo, commits: Sequence[str], path: str, options: tuple[str, ...]) -> dict[str, bytes]:
    # a skill could hold any mark that is known beforehand
    mark = secrets.token_hex()
    query = "".join(f"{line}\n" for line in (*commits, "--", *([path] if path else []))).encode()
    answer = git(repo, *_COMMAND, f"--format=tformat:{mark}%H", *options, stdin=query)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show what changed: {answer.error}", hint="git fsck")
    changes: dict[str, bytes] = {}
    for entry in answer.out.split(mark.encode())[1:]:
        commit, _, rest = entry.partition(b"\n")
        changes[commit.decode()] = rest.removeprefix(b"\n")
    return changes
