"""The git binary, for what has to be exactly as git does it: differences for people and checking out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import NotFoundError

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a git command said.

    Attributes:
        code: Its exit status.
        out: Its standard output.
        error: Its standard error, as text.
    """

    code: int
    out: bytes
    error: str


def git_version() -> str:
    """Return the version of git on this machine; empty if there is none."""
    import subprocess  # noqa: PLC0415 - as below

    try:
        done = subprocess.run(["git", "--version"], capture_output=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S607 - the one on PATH
    except OSError:
        return ""
    return done.stdout.decode(errors="replace").strip().removeprefix("git version ")


def git(repo: Repo, *arguments: str) -> Answer:
    """Run git in the top folder of ``repo``'s work tree, or in the repository if it is bare.

    Raises:
        NotFoundError: There is no git on this machine.
    """
    import subprocess  # noqa: PLC0415 - reading history does not need it

    # Said in full, so that GIT_DIR in the environment, as in a hook, does not send git elsewhere.
    place = [f"--git-dir={repo.raw.path}", *([f"--work-tree={repo.workdir}"] if repo.workdir else [])]
    command = ["git", "-C", str(repo.workdir or repo.common_dir), *place, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - a list
    except FileNotFoundError as error:
        raise NotFoundError("there is no git on the PATH", hint="install git") from error
    return Answer(code=done.returncode, out=done.stdout, error=done.stderr.decode(errors="replace").strip())
