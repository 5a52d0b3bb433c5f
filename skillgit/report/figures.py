"""Figures of the page: numbers, times and names, and charts as SVG: the curve of scores, the intervals of gates.

Scores have a zero in front, for readers who do not know the terminal's form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

from skillgit.app.history.curves import is_mark
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.statistics import wilson_interval
from skillgit.domain.text_diff import Line
from skillgit.index.rows import LogRow
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry

if TYPE_CHECKING:
    from skillgit.app.deliver.summary import SplitProgress

_MINUS = "\u2212"
_SENTENCE_CUT = 400


def score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"  # noqa: RUF001 - a dash


def delta(value: float | None) -> str:
    return "" if value is None else f"{_MINUS if value < 0 else '+'}{abs(value):.4f}"


def cut(text: str, most: int = _SENTENCE_CUT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def pieces(line: Line) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line of a difference, each with whether it stands out."""
    at = 0
    for start, end in line.spans:
        if start > at:
            yield line.text[at:start], False
        yield line.text[start:end], True
        at = end
    if at < len(line.text) or not line.text:
        yield line.text[at:], False


FILTERS = {
    "score": score,
    "delta": delta,
    "interval": lambda value: f"{value[0]:.2f} to {value[1]:.2f}",
    "percent": lambda share: f"{share * 100:.1f} %",
    "number": "{:,}".format,
    "date": "{:%Y-%m-%d %H:%M} UTC".format,
    "rfc3339": numbers.rfc3339,
    "cut": cut,
    "paragraphs": paragraphs,
    "pieces": pieces,
    "short": numbers.short,
    "count": numbers.count,
    "money": numbers.money,
    "price": numbers.price,
    "duration": numbers.duration,
    "chance": numbers.chance,
}
"""What templates can do with a value."""


POINTS = 800  # events that are drawn, the newest ones
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_TICKS_AT_MOST = 6
_SPREAD = 0.55  # the part of a step's width that several events of one step are spread over
_LETTER = 6.3  # about how wide a letter of a tip is
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
    label: str  # the address of the event within its run
    x: float
    y: float
    shape: str
    foot: float  # where the score stands that it was compared with
    tip_x: float  # where its tip begins
    tip_y: float
    tip_width: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    size: Size
    line: str  # the path of the current version's score
    band: str  # the path around it that the intervals make; empty without intervals
    marks: tuple[ChartMark, ...]
    scores: tuple[tuple[float, str], ...]  # place and score of the lines across
    steps: tuple[tuple[float, int], ...]  # place and number of the steps below
    epochs: tuple[tuple[float, float, int], ...]  # begin, end and number of each epoch
    left_out: int  # how many older events are not drawn


def drawn_rows(rows: Sequence[LogRow]) -> list[LogRow]:
    return [row for row in rows if is_mark(row)]


def curve(
    rows: Sequence[LogRow], counts: Mapping[int, int], size: Size, *, intervals: bool, most: int = POINTS
) -> Curve | None:
    """Return the drawing, None without scores; ``counts`` are items per version, for Wilson ``intervals``."""
    every = drawn_rows(rows)
    window = every[-most:]
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


class ScoreScale:
    """A drawing with scores from the bottom to the top, as far as ``values`` go."""

    def __init__(self, size: Size, values: Sequence[float]) -> None:
        self._size = size
        self._low, self._high, self._tick = scale(min(values), max(values))

    def _y(self, value: float) -> float:
        size = self._size
        share = (self._high - value) / (self._high - self._low)
        return round(size.top + share * (size.height - size.top - size.bottom), 1)

    def score_ticks(self) -> tuple[tuple[float, str], ...]:
        ticks = round((self._high - self._low) / self._tick)
        values = [self._low + self._tick * number for number in range(ticks + 1)]
        return tuple((self._y(value), f"{value:.2f}") for value in values)

    def _around(self, stretches: Iterable[tuple[float, float, tuple[float, float] | None]]) -> str:
        """Return the path around intervals, each from a begin to an end; empty where one is absent."""
        above: list[str] = []
        below: list[str] = []
        for begin, end, interval in stretches:
            if interval is None:
                return ""
            low, high = map(self._y, interval)
            above.append(f"{'L' if above else 'M'}{begin} {high}H{end}")
            below.append(f"L{end} {low}H{begin}")
        return f"{''.join(above)}{''.join(reversed(below))}Z" if above else ""


class _Plot(ScoreScale):
    def __init__(self, rows: Sequence[LogRow], counts: Mapping[int, int], size: Size) -> None:
        self._rows = rows
        self._places = _places(rows)
        self._bands = {
            row.version: wilson_interval(row.score, counts[row.version])
            for row in rows
            if row.version is not None and row.score is not None and counts.get(row.version)
        }
        self._versions = [row for row in rows if row.version is not None]
        steps = [row.step for row in rows]
        self._first, self._last = min(steps), max(*steps, min(steps) + 1)
        scores = [row.known.value for row in rows if row.known is not None]
        ends = [end for band in self._bands.values() for end in band]
        super().__init__(size, [*scores, *ends])

    def _x(self, position: float) -> float:
        size = self._size
        share = (position - self._first) / (self._last + _SPREAD - self._first)
        return round(size.left + share * (size.width - size.left - size.right), 1)

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
        return self._around((begin, end, self._bands.get(row.version or 0)) for begin, end, row in self._corners())

    def marks(self) -> Iterator[ChartMark]:
        for row in self._rows:
            entry = Entry.of_row(row)
            x, y = self._x(self._places[row.commit]), self._y(row.known.value if row.known else 0.0)
            lines = _lines(row, entry, _TIP_TITLE if self._size.width >= WIDE.width else _TIP_TITLE - 12)
            width = max(len(line) for line in lines) * _LETTER + 20
            foot = y if row.delta is None else self._y((row.score or 0.0) - row.delta)
            tip_y = y - _TIP_HEIGHT - 14 if y - _TIP_HEIGHT - 14 > 0 else y + 14
            yield ChartMark(
                label=row.label,
                x=x,
                y=y,
                shape=_shape(entry),
                foot=foot,
                tip_x=round(max(2.0, min(x - width / 2, self._size.width - width - 2)), 1),
                tip_y=round(tip_y, 1),
                tip_width=round(width, 1),
                lines=lines,
            )

    def step_ticks(self) -> tuple[tuple[float, int], ...]:
        most = 16 if self._size.width >= WIDE.width else 8
        strides = (factor * 10**power for power in count() for factor in (1, 2, 5))
        every = next(stride for stride in strides if (self._last - self._first) / stride <= most)
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


def scale(low: float, high: float) -> tuple[float, float, float]:
    """Return the lowest and the highest score of an axis, and the distance of its lines."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    sort: str  # ``seed`` or ``best``
    y: int
    x: float
    low: float
    high: float


def chart(progress: SplitProgress) -> tuple[Bar, ...]:
    """Return the bars of those versions that have a score; the scale goes from 0 to 1."""
    bars = []
    for sort, y, standing in (("seed", 18, progress.seed), ("best", 46, progress.best)):
        if standing is not None:
            shares = (standing.hard, *standing.interval)
            x, low, high = (round(_MARGIN + share * (WIDTH - 2 * _MARGIN), 1) for share in shares)
            bars.append(Bar(sort=sort, y=y, x=x, low=low, high=high))
    return tuple(bars)
