"""Notes of people on versions."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.inert import inert, one_line
from skillgit.cli.render.items import name
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from skillgit.app.note import Noted
    from skillgit.cli.screen import Screen


_WIDTH = 120
"""So much of a note is enough to know it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """A note as a row of columns."""

    id: str
    name: str
    commit: str
    author: str
    time: datetime
    text: str


def noted(result: Noted) -> Iterator[str]:
    """Yield what was written."""
    yield f"note {result.id} is on {_name(result)}; undo: skillgit note --remove {result.id}"


def removed(result: Noted) -> Iterator[str]:
    """Yield what was withdrawn."""
    yield f"note {result.id} on {_name(result)} counts no more: {shorten(one_line(result.text), _WIDTH)}"


def masked(result: Noted, said: str) -> bool:
    """Say whether the note is not what the user wrote."""
    return result.text != said.strip()


def listed(notes: Sequence[Noted], screen: Screen, now: datetime) -> Iterator[str]:
    """Yield the notes, oldest first."""
    if not notes:
        yield "nobody has noted anything there"
    for note in notes:
        dot = f" {screen.glyphs.dot} "
        head = dot.join((_name(note), one_line(note.author), words.ago(note.time, now)))
        yield f"{screen.paint(Style.OID, note.id)}  {head}"
        yield from (f"    {line}" for line in inert(note.text).splitlines())


def rows(notes: Sequence[Noted]) -> list[NoteRow]:
    """Return notes as rows of columns."""
    return [
        NoteRow(
            id=note.id,
            name=_name(note),
            commit=note.row.commit,
            author=note.author,
            time=note.time,
            text=note.text,
        )
        for note in notes
    ]


def _name(note: Noted) -> str:
    return f"{note.row.run}/{name(note.row)}"
