"""Differences as git prints them, byte for byte, by asking git."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import RevisionNotFoundError
from skillgit.store.binary import NO_PROGRAMS, git

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


WHOLE_FILES = 1_000_000
"""More lines of context than a file of a skill has."""
# colours and prefixes of the user's are for reading, and this is read by a program
_AS_DATA = ("--no-color", "--src-prefix=a/", "--dst-prefix=b/")


def diff(repo: Repo, old: str, new: str, *paths: str, options: tuple[str, ...] = ()) -> bytes:
    """Return what ``git diff OLD NEW -- PATHS`` prints to a pipe; without a path that of the whole tree.

    Args:
        repo: The repository.
        old: A commit.
        new: A commit.
        paths: Folders or files of the repository, taken literally; empty ones are left out.
        options: More options for ``git diff``.

    Raises:
        RevisionNotFoundError: One of the commits does not exist.
    """
    for commit in (old, new):
        repo.commit(commit)
    answer = git(repo, "--literal-pathspecs", "diff", *NO_PROGRAMS, *options, old, new, "--", *filter(None, paths))
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot compare {old[:12]} with {new[:12]}: {answer.error}", hint="git fsck")
    return answer.out


def stat(repo: Repo, old: str, new: str, *paths: str) -> str:
    """Return what ``git diff --stat OLD NEW -- PATHS`` prints.

    Raises:
        RevisionNotFoundError: One of the commits does not exist.
    """
    return diff(repo, old, new, *paths, options=("--stat",)).decode(errors="replace")


def whole(repo: Repo, old: str, new: str, *paths: str) -> str:
    """Return the difference with all lines of the files that differ, in a form that no setting of the user changes.

    Raises:
        RevisionNotFoundError: One of the commits does not exist.
    """
    text = diff(repo, old, new, *paths, options=(*_AS_DATA, f"-U{WHOLE_FILES}"))
    return text.decode(errors="replace")


def change(repo: Repo, commit: str, path: str = "") -> bytes:
    """Return what ``commit`` changed against its first parent; for a first commit, all that it holds.

    Raises:
        RevisionNotFoundError: There is no such commit.
    """
    parents = repo.commit(commit).parent_ids
    if parents:
        return diff(repo, str(parents[0]), commit, path)
    arguments = (*NO_PROGRAMS, "--root", "-p", "--no-commit-id", "-r", commit, "--", *([path] if path else []))
    answer = git(repo, "diff-tree", *arguments)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show {commit[:12]}: {answer.error}", hint="git fsck")
    return answer.out
