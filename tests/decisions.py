"""What training decided, apart from who was asked: to compare runs through different backends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from program import git, skillgit

if TYPE_CHECKING:
    from pathlib import Path

_DECIDED = ("kind", "version", "base", "step", "epoch", "title", "score", "delta", "decision", "is_best")


def decisions(repository: Path, run: str) -> list[dict[str, object]]:
    """Return the events of a run with what was decided in each."""
    rows = json.loads(skillgit("log", run, "--json", cwd=repository).out)["events"]
    return [{name: row[name] for name in _DECIDED} for row in rows]


def skills(repository: Path, run: str) -> dict[str, str]:
    """Return every version of a run with the id of its tree, which is the same for the same texts."""
    listed = git("for-each-ref", "--format=%(refname) %(tree)%(*tree)", f"refs/tags/{run}", cwd=repository).out
    return dict(line.split() for line in listed.splitlines())
