"""What each of many commits changed, as git prints it, with one git process for many of them."""

from __future__ import annotations

import os
import secrets
import subprocess
from typing import TYPE_CHECKING

from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.store.binary import NO_PROGRAMS, command, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.store.repo import Repo

_AT_FIRST, _AT_MOST = 64, 1024
"""Commits for one git process: at first few enough to have them soon, later enough to make its start cheap."""
_COMMAND = (
    # what `git diff PARENT COMMIT` prints: no notes, the first parent of a merge, everything of a root
    *("-c", "log.showRoot=true", "log", "--no-walk=unsorted", "--stdin"),
    *("--diff-merges=first-parent", "--no-color", *NO_PROGRAMS),
)


def patches(repo: Repo, commits: Sequence[str], path: str, options: tuple[str, ...] = ("-p",)) -> Iterator[bytes]:
    """Yield what each of ``commits`` changed in ``path`` against its first parent, in the order given.

    The bytes are those of ``git diff PARENT COMMIT -- PATH``; of a commit without a parent they show all that it holds.

    Args:
        repo: The repository.
        commits: The commits.
        path: A folder or file of the repository; empty for the whole tree.
        options: The form: ``-p``, ``--stat`` or both.

    Raises:
        NotFoundError: There is no git on this machine.
        RevisionNotFoundError: A commit does not exist.
    """
    start, count = 0, _AT_FIRST
    while part := commits[start : start + count]:
        found = _changes(repo, part, path, options)
        yield from (found.get(commit, b"") for commit in part)
        start, count = start + count, min(2 * count, _AT_MOST)


def _changes(repo: Repo, commits: Sequence[str], path: str, options: tuple[str, ...]) -> dict[str, bytes]:
    # a skill could hold any mark that is known beforehand
    mark = secrets.token_hex()
    asked = "".join(f"{line}\n" for line in (*commits, "--", *([path] if path else []))).encode()
    answer = _git(repo, (*_COMMAND, f"--format=tformat:{mark}%H", *options), asked)
    found: dict[str, bytes] = {}
    for entry in answer.split(mark.encode())[1:]:
        commit, _, rest = entry.partition(b"\n")
        found[commit.decode()] = rest.removeprefix(b"\n")
    return found


def _git(repo: Repo, arguments: tuple[str, ...], given: bytes) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - a list
            command(f"--git-dir={repo.raw.path}", *arguments),
            cwd=repo.workdir or repo.common_dir,
            env=quiet(os.environ),
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise NotFoundError("there is no git on the PATH", hint="install git") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise RevisionNotFoundError(f"git cannot show what changed: {said}", hint="git fsck")
    return done.stdout
