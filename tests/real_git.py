"""Real git in a folder, with an identity of nobody."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: str | Path, *words: object, **more: object) -> str:
    """Return what ``git`` says, without line feeds at its end; an error if it fails."""
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@localhost", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout.rstrip("\n")
