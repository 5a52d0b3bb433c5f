"""The command line in this process, without pytest's fixtures, which examples of one property would share."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from skillgit.cli import main

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *arguments: str) -> tuple[int, bytes, str]:
    """Run a command line in ``folder`` at a fixed time; return its exit code and what it wrote."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLGIT_CLOCK", "2026-11-22T12:00:00+00:00")
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = main.run(["-C", str(folder), *arguments])
    return code, out.buffer.getvalue(), err.buffer.getvalue().decode()
