"""What tests of the sandbox use to find processes of jobs on this machine."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path


def marked() -> str:
    """Return seconds to sleep that no other process sleeps."""
    return f"{600 + secrets.randbelow(300)}.{secrets.randbelow(10**9):09}"


def living(mark: str) -> list[int]:
    """Return the processes of this machine that have ``mark`` in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found
