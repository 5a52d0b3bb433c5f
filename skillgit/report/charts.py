"""The charts of the page as SVG: the curve of scores, and the intervals of gates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.statistics import wilson_interval
from skillgit.report.figures import cut, delta, score
from skillgit.view import event_marks as cells
from skillgit.view.event_marks import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.app.deliver.report import SplitProgress, VersionStanding
    from skillgit.index.rows import LogRow


POINTS = 800
"""Events that are drawn, the newest ones."""
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_TICKS_AT_MOST = 6
_SPREAD = 0.55
"""The part of a step's width that several events of one step are spread over."""
_LETTER = 6.3
"""About how wide a letter of a tip is."""
_TIP_HEIGHT = 56
_TIP_TITLE = 44


class Size(NamedTuple):
    """How large a drawing is, in its own units."""

    width: int
    height: int
    left: int = 46
    right: int = 16
    top: int = 26
    bottom: int = 38


WIDE = Size(1040, 380)
NARROW = Size(380, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """The sign of one event.

    Attributes:
        foot: Where the score stands that it was compared with.
        tip_x: Where what is told of it begins.
    """

    x: float
    y: float
    shape: str
    foot: float
    tip_x: float
    tip_y: float
    tip_width: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A drawing.

    Attributes:
        line: The path of the current version's score.
        band: The path around it that the intervals make; empty without intervals.
        scores: Place and score of the lines across.
        steps: Place and number of the steps below.
        epochs: Begin, end and number of each epoch.
        left_out: How many older events are not drawn.
    """

    size: Size
    line: str
    band: str
    marks: tuple[ChartMark, ...]
    scores: tuple[tuple[float, str], ...]
    steps: tuple[tuple[float, int], ...]
    epochs: tuple[tuple[float, float, int], ...]
    left_out: int


def drawn_rows(rows: Sequence[LogRow]) -> list[LogRow]:
    """Return the events that have a place on the curve: a slow update that was merged is told by its merge."""
    return [
        row
        for row in rows
        if row.known is not None
        and (
            row.kind not in {EventKind.SLOW_PROPOSED, EventKind.MEASURED, EventKind.RUN_FINISHED}
            or row.decision in {"reject", "indecisive"}
        )
    ]


def curve(rows: Sequence[LogRow], counts: Mapping[int, int], size: Size, *, intervals: bool) -> Curve | None:
    """Return the drawing of a run; None if nothing has a score.

    Args:
        counts: Version to the number of items that its score is a mean of.
        intervals: Whether scores are shares of solved items, so that each has a Wilson interval.
    """
    every = drawn_rows(rows)
    window = every[-POINTS:]
    if not window:
        return None
    plot = _Plot(window, counts if intervals else {}, size)
    return Curve(
        size=size,
        line=plot.line(),
        band=plot.band(),
        marks=tuple(plot.marks()),
        scores=plot.score_ticks(),
        steps=plot.step_ticks(),
        epochs=tuple(plot.epochs()),
        left_out=len(every) - len(window),
    )


class _Plot:
    """Knows the scales of one drawing."""

    def __init__(self, rows: Sequence[LogRow], counts: Mapping[int, int], size: Size) -> None:
        self._rows, self._size = rows, size
        self._places = _places(rows)
        self._bands = {
            row.version: wilson_interval(min(1.0, row.score), counts[row.version])
            for row in rows
            if row.version is not None and row.score is not None and counts.get(row.version)
        }
        self._versions = [row for row in rows if row.version is not None]
        steps = [row.step for row in rows]
        self._first, self._last = min(steps), max(*steps, min(steps) + 1)
        scores = [row.known.value for row in rows if row.known is not None]
        ends = [end for band in self._bands.values() for end in band]
        self._low, self._high, self._tick = _scale(min([*scores, *ends]), max([*scores, *ends]))

    def _x(self, position: float) -> float:
        size = self._size
        share = (position - self._first) / (self._last + _SPREAD - self._first)
        return round(size.left + share * (size.width - size.left - size.right), 1)

    def _y(self, value: float) -> float:
        size = self._size
        share = (self._high - value) / (self._high - self._low)
        return round(size.top + share * (size.height - size.top - size.bottom), 1)

    def _corners(self) -> Iterator[tuple[float, float, LogRow]]:
        """Yield begin and end of the time in which each version was the current one."""
        begins = [self._x(self._places[row.commit]) for row in self._versions]
        ends = [*begins[1:], float(self._size.width - self._size.right)]
        yield from zip(begins, ends, self._versions, strict=True)

    def line(self) -> str:
        parts: list[str] = []
        for begin, end, row in self._corners():
            y = self._y(row.score or 0.0)
            parts.append(f"{'L' if parts else 'M'}{begin} {y}H{end}")
        return "".join(parts)

    def band(self) -> str:
        above: list[str] = []
        below: list[str] = []
        for begin, end, row in self._corners():
            interval = self._bands.get(row.version or 0)
            if interval is None:
                return ""
            low, high = self._y(interval[0]), self._y(interval[1])
            above.append(f"{'L' if above else 'M'}{begin} {high}H{end}")
            below.append(f"L{end} {low}H{begin}")
        return f"{''.join(above)}{''.join(reversed(below))}Z" if above else ""

    def marks(self) -> Iterator[ChartMark]:
        for row in self._rows:
            entry = Entry.of_row(row)
            x, y = self._x(self._places[row.commit]), self._y(row.known.value if row.known else 0.0)
            lines = _lines(row, entry, _TIP_TITLE if self._size.width >= WIDE.width else _TIP_TITLE - 12)
            width = max(len(line) for line in lines) * _LETTER + 20
            foot = y if row.delta is None else self._y((row.score or 0.0) - row.delta)
            tip_y = y - _TIP_HEIGHT - 14 if y - _TIP_HEIGHT - 14 > 0 else y + 14
            yield ChartMark(
                x=x,
                y=y,
                shape=_shape(entry),
                foot=foot,
                tip_x=round(max(2.0, min(x - width / 2, self._size.width - width - 2)), 1),
                tip_y=round(tip_y, 1),
                tip_width=round(width, 1),
                lines=lines,
            )

    def score_ticks(self) -> tuple[tuple[float, str], ...]:
        count = round((self._high - self._low) / self._tick)
        values = [self._low + self._tick * number for number in range(count + 1)]
        return tuple((self._y(value), f"{value:.2f}") for value in values)

    def step_ticks(self) -> tuple[tuple[float, int], ...]:
        most = 16 if self._size.width >= WIDE.width else 8
        every = next(n for n in _stride() if (self._last - self._first) / n <= most)
        first = ceil(self._first / every) * every
        return tuple((self._x(step), step) for step in range(first, self._last + 1, every))

    def epochs(self) -> Iterator[tuple[float, float, int]]:
        rows = [row for row in self._rows if row.epoch]
        for epoch, group in groupby(rows, key=lambda row: row.epoch):
            steps = [row.step for row in group]
            yield self._x(max(self._first, min(steps) - 1 + _SPREAD)), self._x(max(steps) + _SPREAD), epoch


def _places(rows: Sequence[LogRow]) -> dict[str, float]:
    """Return where each event is among the steps; those of one step stand side by side."""
    positions: dict[str, float] = {}
    for step, group in groupby(rows, key=lambda row: row.step):
        same = list(group)
        for number, row in enumerate(same):
            positions[row.commit] = step + _SPREAD * number / len(same)
    return positions


def _stride() -> Iterator[int]:
    factor = 1
    while True:
        yield from (factor, 2 * factor, 5 * factor)
        factor *= 10


def _scale(low: float, high: float) -> tuple[float, float, float]:
    """Return the ends of the axis of scores and the distance of its lines."""
    for tick in _TICKS:
        least, most = floor(low / tick + 1e-9) * tick, ceil(high / tick - 1e-9) * tick
        if most <= least:
            most = least + tick
        if round((most - least) / tick) <= _TICKS_AT_MOST:
            return least, most, tick
    return min(0.0, low), max(1.0, high), _TICKS[-1]


def _shape(entry: Entry) -> str:
    if entry.score is not None and entry.score.at_most:
        return "bound"
    match entry.kind:
        case EventKind.SLOW_PROPOSED:
            return "rejected"
        case EventKind.SKIPPED | EventKind.MEASURED | EventKind.RUN_FINISHED:
            return "accepted"
        case _:
            return cells.look_of(entry.kind, entry.decision).sign


def _lines(row: LogRow, entry: Entry, most: int) -> tuple[str, ...]:
    text = score(row.score) if row.bound is None else f"at most {score(row.bound)}"
    gain = f" ({delta(row.delta)})" if row.delta is not None else ""
    return f"{entry.label}: {cells.decision(entry)}", f"{text}{gain} at step {row.step}", cut(row.title, most)


WIDTH = 400
_MARGIN = 14
_ROWS = {"seed": 18, "best": 46}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One version's score with its interval.

    Attributes:
        sort: ``seed`` or ``best``.
    """

    sort: str
    y: int
    x: float
    low: float
    high: float


def chart(progress: SplitProgress) -> tuple[Bar, ...]:
    """Return the bars of those versions that have a score; the scale goes from 0 to 1."""
    standings = (("seed", progress.seed), ("best", progress.best))
    return tuple(_bar(sort, standing) for sort, standing in standings if standing is not None)


def _bar(sort: str, standing: VersionStanding) -> Bar:
    low, high = standing.interval
    return Bar(sort=sort, y=_ROWS[sort], x=_place(standing.hard), low=_place(low), high=_place(high))


def _place(score: float) -> float:
    return round(_MARGIN + score * (WIDTH - 2 * _MARGIN), 1)
