"""Differences as git prints them, byte for byte, by asking git."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import RevisionNotFoundError
from skillgit.store.binary import git

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


def diff(repo: Repo, old: str, new: str, path: str = "", *, options: tuple[str, ...] = ()) -> bytes:
    """Return what ``git diff OLD NEW -- PATH`` prints to a pipe; an empty ``path`` is the whole tree.

    Args:
        repo: The repository.
        old: A commit.
        new: A commit.
        path: A folder or file of the repository.
        options: More options for ``git diff``.

    Raises:
        RevisionNotFoundError: One of the commits does not exist.
    """
    for commit in (old, new):
        repo.commit(commit)
    answer = git(repo, "diff", *options, old, new, "--", *([path] if path else []))
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot compare {old[:12]} with {new[:12]}: {answer.error}", hint="git fsck")
    return answer.out


def stat(repo: Repo, old: str, new: str, path: str = "") -> str:
    """Return what ``git diff --stat OLD NEW -- PATH`` prints.

    Raises:
        RevisionNotFoundError: One of the commits does not exist.
    """
    return diff(repo, old, new, path, options=("--stat",)).decode(errors="replace")


def change(repo: Repo, commit: str, path: str = "") -> bytes:
    """Return what ``commit`` changed against its first parent; for a first commit, all that it holds.

    Raises:
        RevisionNotFoundError: There is no such commit.
    """
    parents = repo.commit(commit).parent_ids
    if parents:
        return diff(repo, str(parents[0]), commit, path)
    arguments = ("--root", "-p", "--no-commit-id", "-r", commit, "--", *([path] if path else []))
    answer = git(repo, "diff-tree", *arguments)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show {commit[:12]}: {answer.error}", hint="git fsck")
    return answer.out
