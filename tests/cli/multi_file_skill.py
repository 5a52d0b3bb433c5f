"""A repository with a skill of several files on main: text in regions, a script, a binary file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from program import skillgit

if TYPE_CHECKING:
    from pathlib import Path

NAME = "sums"
DOCUMENT = """---
name: sums
description: Adds numbers. Use when numbers are to be added.
---

# Sums

<!-- skillgit:keep -->
Never guess.
<!-- /skillgit:keep -->

- Add from the right.

<!-- skillgit:slow -->
Check the sum once more.
<!-- /skillgit:slow -->
"""
FILES = {
    "SKILL.md": DOCUMENT.encode(),
    "references/carry.md": "# Carry\n\nÜbertrag: one to the left.\n".encode(),
    "scripts/add.sh": b"#!/bin/sh\necho $(($1 + $2))\n",
    "assets/logo.bin": bytes(range(256)),
}
PROGRAMS = {"scripts/add.sh"}


def sums_repository(folder: Path) -> Path:
    """Return a new repository with the skill on main."""
    seed = folder / "seed" / NAME
    for path, content in FILES.items():
        (seed / path).parent.mkdir(parents=True, exist_ok=True)
        (seed / path).write_bytes(content)
        (seed / path).chmod(0o755 if path in PROGRAMS else 0o644)
    skillgit("init", "repository", "--skill", seed, cwd=folder)
    return folder / "repository"


def files_in(folder: Path) -> dict[str, bytes]:
    """Return path and content of every file in a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(found)}


def programs_in(folder: Path) -> set[str]:
    """Return the files that may be run."""
    return {path for path in files_in(folder) if (folder / path).stat().st_mode & 0o111}
