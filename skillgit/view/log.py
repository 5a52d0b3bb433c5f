"""The log: one line for each event, with or without a graph in front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.diff import coloured, plain
from skillgit.view.event_marks import Entry
from skillgit.view.graph import Drawn, Graph, draw
from skillgit.view.surface import Style
from skillgit.view.text import fit, pad, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from skillgit.index.rows import LogRow
    from skillgit.view.surface import Screen


_TITLE_WIDTH = 40
_TITLE_LEAST = 16
_GRAPH_LEAST = 8
_SPACES = 6
"""Columns between graph, scores, title and age."""
_EVENT_REST = 33
"""Columns of an event's line besides its title: sign, label, scores, commit and the space between them."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One event of the log, and what is in front of the lines between it and the next one."""

    text: str
    margin: str = ""


def lines(rows: Sequence[LogRow], screen: Screen, now: datetime) -> Iterator[str]:
    return (line.text for line in log_lines(rows, screen, now))


def log_lines(
    rows: Sequence[LogRow],
    screen: Screen,
    now: datetime,
    *,
    graph: Mapping[str, Sequence[str]] | None = None,
    runs: bool = False,
    flips: Mapping[str, str] | None = None,
) -> Iterator[LogLine]:
    """Yield the log.

    ``graph`` are the events that one rests on besides the one before it in its run, to be drawn; ``flips`` is what an
    event did to an item, to be said before its title. Both go by commit.
    """
    if not rows:
        return
    entries = [Entry.of_row(row) for row in rows]
    fronts = [front(entry) for entry in entries]
    backs = [back(row, screen, now) for row in rows]
    names = _names(rows, flips or {}, runs=runs)
    texts = [name + cells.title(entry) for name, entry in zip(names, entries, strict=True)]
    fixed_width = max(map(width, fronts)) + max(map(width, backs)) + _SPACES
    drawing = _signs(entries, screen) if graph is None else draw(rows, graph, screen, _graph_room(screen, fixed_width))
    room = _room(screen, drawing.width + fixed_width, max(map(width, texts)))
    for cell, before, text, after, name in zip(drawing.rows, fronts, texts, backs, names, strict=True):
        title = fit(text, room, screen.glyphs.ellipsis)
        label = screen.paint(Style.FAINT, title[: len(name)]) + title[len(name) :]
        yield LogLine(f"{cell.row} {before}   {pad(label, room)}  {after}".rstrip(), cell.below)


def _signs(entries: Sequence[Entry], screen: Screen) -> Graph:
    return Graph(tuple(Drawn(f"{cells.sign(entry, screen)} ", "") for entry in entries), 2)


def with_changes(lines: Iterable[LogLine], changes: Iterable[bytes], screen: Screen) -> Iterator[str | bytes]:
    """Yield each event with what it changed under it, an empty line on both sides.

    Where nobody looks and no graph is drawn, changes are git's own bytes.
    """
    gap: str | None = None
    for line, change in zip(lines, changes, strict=True):
        if gap is not None:
            yield gap
        yield line.text
        margin = line.margin.rstrip()
        gap = margin if change else None
        if not change:
            continue
        yield margin
        if screen.colour or screen.terminal or line.margin:
            text = change.decode(errors="replace")
            for part in coloured(text, screen) if screen.colour else plain(text):
                yield f"{line.margin}{part}"
        else:
            yield change


def _names(rows: Sequence[LogRow], flips: Mapping[str, str], *, runs: bool) -> list[str]:
    """Return what is in front of each title: the run, and what happened to an item."""
    columns = [[row.run for row in rows] if runs else [], [flips.get(row.commit, "") for row in rows] if flips else []]
    names = [""] * len(rows)
    for column in filter(None, columns):
        widest = max(map(width, column))
        names = [f"{before}{pad(cell, widest)}  " for before, cell in zip(names, column, strict=True)]
    return names


def _graph_room(screen: Screen, fixed_width: int) -> int:
    """Return how many columns the graph may take, so that titles can be read beside it; 0 for any number."""
    return min(screen.width // 2, max(_GRAPH_LEAST, screen.width - fixed_width - _TITLE_LEAST))


def _room(screen: Screen, fixed_width: int, longest: int) -> int:
    target = max(_TITLE_WIDTH, longest)
    if not screen.width:
        return target
    return max(_TITLE_LEAST, min(target, screen.width - fixed_width))


def front(entry: Entry) -> str:
    """Return label, score and difference in 17 columns."""
    return f"{entry.label:<4}{cells.score(entry):<7}{cells.delta(entry):<6}"


def back(row: LogRow, screen: Screen, now: datetime) -> str:
    """Return age, commit and the branches that point at it."""
    names = ref_names(row)
    refs = f"  {screen.paint(Style.REF, ' '.join(names))}" if names else ""
    age = screen.paint(Style.FAINT, f"{numbers.age(row.time, now):>3}")
    return f"{age}  {screen.paint(Style.OID, numbers.short(row.commit))}{refs}"


def ref_names(row: LogRow) -> list[str]:
    """Return the branches that point at an event, those of its own run without the run's name."""
    names: list[str] = []
    for ref in row.refs:
        kind, _, rest = ref.partition("/")
        own = rest == row.run and kind in {"run", "best", "slow"}
        if not rest.startswith(f"{row.run}/"):
            names.append(kind if own else ref)
    return names


def line(row: LogRow, screen: Screen, now: datetime) -> str:
    return next(lines([row], screen, now))


def event_line(entry: Entry, commit: str, screen: Screen, *, columns: int = 0) -> str:
    """Return an event that was written just now, without its age; 0 columns leave the title as long as it is."""
    sign = cells.sign(entry, screen)
    title = cells.title(entry)
    room = max(_TITLE_LEAST, min(_TITLE_WIDTH, columns - _EVENT_REST)) if columns else max(_TITLE_WIDTH, width(title))
    text = pad(fit(title, room, screen.glyphs.ellipsis), room)
    return f"{sign}  {front(entry)}   {text}  {screen.paint(Style.OID, numbers.short(commit))}"
