"""One event as a row of the history list: graph, label, score, title, age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.tui.widgets.painted_lines import Painted, Part
from skillgit.view import event as cells
from skillgit.view import words
from skillgit.view.event import Entry
from skillgit.view.screen import Style
from skillgit.view.text import fit, one_line, pad, width

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.index.rows import LogRow
    from skillgit.view.screen import Screen

_BESIDE = frozenset({"rejected", "skipped", "slow-proposed", "measured"})
_DIM = frozenset({"rejected", "skipped", "run-finished", "measured"})
_DELTA_FROM = 58
"""Columns from which on there is room for the difference of scores, and for more than one word on the state."""
_OID_FROM = 76
"""Columns from which on there is room for the commit."""
_LEAST = 8
"""Columns of a title, however narrow the list is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What rows look like besides what they tell.

    Attributes:
        ink: What the terminal can show.
        now: What ages are counted from.
        graph: Whether to draw how events hang together.
        marked: The commit that is marked for comparison; empty without one.
        held: The commit that the work tree holds.
        runs: Whether to name each event's run.
    """

    ink: Screen
    now: datetime
    graph: bool = True
    marked: str = ""
    held: str = ""
    runs: bool = False


def event_row(row: LogRow, above: LogRow | None, setting: Setting) -> Painted:
    """Return the parts of an event's row; ``above`` is the event in the row above it."""
    entry, ink = Entry.of_row(row), setting.ink
    front = (
        Part(ink.glyphs.running if row.commit == setting.marked else " ", Style.REVERTED),
        *_sign(row, above, setting),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(f"{ink.encodable(cells.score(entry)):<{7 if ink.unicode else 8}}", cells.style(entry)),
        *([Part(_delta(entry), Style.FAINT)] if ink.width >= _DELTA_FROM else []),
        *([Part(f"{one_line(row.run)}  ", Style.FAINT)] if setting.runs else []),
    )
    back = (
        Part(_state(row, setting), Style.REF),
        Part(f"{words.age(row.time, setting.now):>4}", Style.FAINT),
        *([Part(f"  {words.short(row.commit)}", Style.OID)] if ink.width >= _OID_FROM else []),
        Part(" "),
    )
    room = max(_LEAST, ink.width - sum(width(part.text) for part in (*front, *back)))
    title = fit(ink.encodable(one_line(row.title)), room, ink.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.kind in _DIM else ""), *back)


def _delta(entry: Entry) -> str:
    return f"{words.delta(entry.delta) if entry.measured else '':<7}"


def _state(row: LogRow, setting: Setting) -> str:
    held = " held" if row.commit == setting.held else ""
    best = " best" if row.is_best else ""
    return best + held if setting.ink.width >= _DELTA_FROM else held or best


def _sign(row: LogRow, above: LogRow | None, setting: Setting) -> Iterator[Part]:
    entry, glyphs = Entry.of_row(row), setting.ink.glyphs
    sign, style = cells.glyph(entry, glyphs), cells.style(entry)
    if not setting.graph:
        yield Part(f"{sign} ", style)
    elif row.kind not in _BESIDE:
        yield Part(f"{sign}   ", style)
    elif row.kind == "slow-proposed" and above is not None and (above.kind, above.step) == ("slow-merged", row.step):
        yield Part(glyphs.branch, Style.FAINT)
        yield Part(f"{sign}  ", style)
    else:
        yield Part(f"{glyphs.line if above is not None else ' '} ", Style.FAINT)
        yield Part(f"{sign} ", style)
