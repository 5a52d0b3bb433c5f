"""A run whose skill is long: every version changes a tenth of its lines, here and there."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from itertools import count, islice
from typing import TYPE_CHECKING

from bench.histories.fast_import import START
from bench.histories.story import run_story

from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.store.event_writer import RunWriter
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = "---\nname: demo\ndescription: Answers questions about texts and tables.\n---\n# Demo\n\n"
_EVENTS = 12
_TENTH = 10


def write_long(path: Path, lines: int) -> None:
    """Make the repository ``path`` with a run whose skill has so many lines."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    minutes = count()
    writer = RunWriter(Repo.discover(path), "long", lambda: START + timedelta(minutes=next(minutes)))
    for number, chapter in enumerate(islice(run_story("long", 1), _EVENTS)):
        skill = None if chapter.skill is None else Skill("demo", {DOCUMENT: _document(lines, number).encode()})
        writer.append(chapter.event, skill, chapter.evidence)


def _document(lines: int, edition: int) -> str:
    return _HEAD + "".join(
        f"- In case {line} write the number with its unit, as edition {edition if line % _TENTH == 0 else 0} of it has,"
        " and quote the line of the table that it was read from.\n"
        for line in range(lines)
    )
