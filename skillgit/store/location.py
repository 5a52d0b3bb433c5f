"""Where a repository lies and what its configuration says, without opening it: for what has to be there at once.

Completing a word on a prompt must not wait until pygit2 is loaded.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from skillgit.store.git_binary import command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def common_dir(directory: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the folder of refs and objects of the repository that ``directory`` lies in; None if it lies in none."""
    output = _git(directory, environ, "rev-parse", "--git-common-dir")
    return (directory / output).resolve() if output else None


def configured(directory: Path, environ: Mapping[str, str], key: str) -> str:
    """Return the value of ``key`` in git's configuration; empty if it is not set."""
    return _git(directory, environ, "config", "--get", key)


def _git(directory: Path, environ: Mapping[str, str], *arguments: str) -> str:
    try:
        process = subprocess.run(  # noqa: S603 - a list
            command(*arguments),
            cwd=directory,
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
