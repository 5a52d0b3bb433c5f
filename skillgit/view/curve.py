"""Curves of scores as drawings for pages: a run with its decisions, or several runs over each other.

Lines and signs differ by more than their colour. ``report/templates/curve.html`` draws what this positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby, pairwise
from math import ceil, floor
from typing import Final, NamedTuple

from skillgit.app.history.curves import Axis, CurvePoint, RunCurve, is_mark
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.statistics import wilson_interval
from skillgit.index.rows import LogRow
from skillgit.view import event_marks, numbers
from skillgit.view.event_marks import Entry
from skillgit.view.text import fit, one_line

POINTS: Final = 800  # decisions that are drawn, the newest ones
RUNS: Final = 6  # that have a line, a sign and a colour of their own
UNITS: Final = {Axis.STEP: "step", Axis.CALL: "paid calls", Axis.DOLLAR: "dollars"}
_SPREAD: Final = 0.55  # the part of a step's width that several events of one step are spread over
_LETTER: Final = 6.3  # about how wide a letter of a tip is
_TIP_HEIGHT: Final = 56
_LABEL_HEIGHT: Final = 15


class Size(NamedTuple):
    """How large a drawing is, in its own units."""

    width: int
    height: int
    left: int = 46
    right: int = 16
    top: int = 26
    bottom: int = 38

    @property
    def letters(self) -> int:
        """How many letters of a title a tip has room for."""
        return self.width // 32 + 12


_SIZES: Final = {"wide": Size(1040, 380), "narrow": Size(380, 300)}
_OVERLAY_SIZES: Final = {"wide": Size(1040, 380, right=150, top=16), "narrow": Size(380, 300, right=64, top=16)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    label: str  # the address of the event within its run
    x: float
    y: float
    shape: str  # the name of its sign, as ``best``; ``solid`` or ``refused`` where each run has a sign of its own
    foot: float  # where the score is that it was compared with
    words: tuple[str, ...]  # the lines of its tip
    tip: tuple[float, float, float]  # left, top and width of the tip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """The score of a run over its course.

    Attributes:
        path: The stair of the current version's score.
        band: What the intervals of the scores cover; empty without any.
        label: The run's name, as far as there is room.
        label_y: Where its label is: labels of lines that end at one height are below each other.
    """

    run: str
    path: str
    band: str
    marks: tuple[Mark, ...]
    end: tuple[float, float]
    label: str = ""
    label_y: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    size: Size
    unit: str
    lines: tuple[RunLine, ...]
    scores: tuple[tuple[float, str], ...]  # place and score of the lines across
    ticks: tuple[tuple[float, str], ...]  # place and amount of the numbers below
    epochs: tuple[tuple[float, float, int], ...] = ()  # begin, end and number of each epoch
    left_out: int = 0  # how many older decisions are not drawn


def course(
    run: str, rows: Sequence[LogRow], counts: Mapping[int, int], most: Sequence[int] = (POINTS, POINTS)
) -> dict[str, Curve]:
    """Return the drawings of one run for ``wide`` and ``narrow`` windows; none without scores.

    ``counts`` are the items behind the score of each version, for Wilson intervals. ``most`` decisions are drawn.
    """
    decisions = [row for row in rows if is_mark(row)]
    pairs = zip(_SIZES.items(), most, strict=True)
    return {
        name: _course(run, decisions[-limit:], counts, size, left_out=max(0, len(decisions) - limit))
        for (name, size), limit in pairs
        if decisions
    }


def _course(run: str, rows: Sequence[LogRow], counts: Mapping[int, int], size: Size, *, left_out: int) -> Curve:
    positions = {
        row.commit: step + _SPREAD * number / len(group)
        for step, same in groupby(rows, key=lambda row: row.step)
        for group in [list(same)]
        for number, row in enumerate(group)
    }
    stair = [
        (positions[row.commit], row.score or 0.0, wilson_interval(row.score or 0.0, items) if items else None)
        for row in rows
        if row.version is not None
        for items in [counts.get(row.version) if row.score is not None else None]
    ]
    first, last = rows[0].step, max(rows[-1].step, rows[0].step + 1)
    scores = [row.known.value for row in rows if row.known is not None]
    plot = _Plot(size, [*scores, *_ends(stair)], first, last + _SPREAD)
    marks = tuple(plot.mark(row, positions[row.commit], _shape(Entry.of_row(row)), row.label) for row in rows)
    every = max(1, round(stride(last - first, size.width // 64)))
    steps = range(ceil(first / every) * every, last + 1, every)
    epochs = (
        (epoch, [row.step for row in group])
        for epoch, group in groupby((row for row in rows if row.epoch), key=lambda row: row.epoch)
    )
    return Curve(
        size=size,
        unit="step",
        lines=(plot.line(run, stair, last + _SPREAD, marks),),
        scores=plot.scores(),
        ticks=tuple((plot.x(step), str(step)) for step in steps),
        epochs=tuple(
            (plot.x(max(first, min(steps) - 1 + _SPREAD)), plot.x(max(steps) + _SPREAD), epoch)
            for epoch, steps in epochs
        ),
        left_out=left_out,
    )


def _shape(entry: Entry) -> str:
    if entry.score is not None and entry.score.at_most:
        return "bound"
    match entry.kind:
        case EventKind.SLOW_PROPOSED:
            return "rejected"
        case EventKind.SKIPPED | EventKind.MEASURED | EventKind.RUN_FINISHED:
            return "accepted"
        case _:
            return event_marks.look_of(entry.kind, entry.decision).sign


def overlaid(curves: Sequence[RunCurve]) -> dict[str, Curve]:
    """Return the drawings of at most :data:`RUNS` curves over each other; none without a score."""
    drawn_curves = [curve for curve in curves[:RUNS] if curve.points]
    return {name: _overlaid(drawn_curves, size) for name, size in _OVERLAY_SIZES.items() if drawn_curves}


def _overlaid(curves: Sequence[RunCurve], size: Size) -> Curve:
    has_bands = len(curves) <= 2  # noqa: PLR2004 - several bands over each other hide the lines
    stairs = [
        [(point.x, point.score, point.interval if has_bands else None) for point in curve.points] for curve in curves
    ]
    marks = [[point for point in curve.points if point.is_mark and point.row.known] for curve in curves]
    scores = [point.row.known.value for points in marks for point in points if point.row.known]
    end = max(curve.end for curve in curves) or 1.0
    plot = _Plot(
        size, [*scores, *(score for stair in stairs for score in (*_ends(stair), *(at[1] for at in stair)))], 0, end
    )
    heights = _apart([plot.y(stair[-1][1]) for stair in stairs], size)

    def line(curve: RunCurve, stair: Sequence[_Step], points: Sequence[CurvePoint], height: float) -> RunLine:
        own_marks = (
            plot.mark(
                point.row, point.x, "solid" if point.row.version is not None else "refused", str(point.row.address)
            )
            for point in points
        )
        label = fit(curve.run.name, max(8, size.right // 8))
        return replace(plot.line(curve.run.name, stair, curve.end, [*own_marks]), label=label, label_y=height)

    by = curves[0].by
    every = stride(end, size.width // 100 + 2)
    amounts = [every * number for number in range(floor(end / every + 1e-9) + 1)]
    return Curve(
        size=size,
        unit=UNITS[by],
        lines=tuple(map(line, curves, stairs, marks, heights)),
        scores=plot.scores(),
        ticks=tuple(
            (plot.x(at), numbers.money(at) if by is Axis.DOLLAR else numbers.count(round(at))) for at in amounts
        ),
    )


def _apart(heights: Sequence[float], size: Size) -> list[float]:
    """Return where labels go that belong to ``heights``: as near as they can be without touching each other."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    result = [0.0] * len(heights)
    before = float("-inf")
    for number, index in enumerate(order):
        room_below = (len(order) - 1 - number) * _LABEL_HEIGHT
        before = max(before + _LABEL_HEIGHT, min(heights[index], size.height - size.bottom - room_below))
        result[index] = round(before, 1)
    return result


_Step = tuple[float, float, tuple[float, float] | None]
"""A place, the score from there on, and its interval, if it has one."""


def _ends(stair: Sequence[_Step]) -> Iterator[float]:
    return (end for _, _, interval in stair for end in interval or ())


class _Plot:
    """Where amounts from ``first`` to ``last`` are from left to right, and scores from the bottom to the top."""

    def __init__(self, size: Size, scores: Sequence[float], first: float, last: float) -> None:
        self._size, self._first, self._last = size, first, last
        low, high = min(scores), max(scores)
        self._tick = max(0.01, stride(high - low, 5))
        self._low = floor(low / self._tick + 1e-9)
        self._high = max(self._low + 1, ceil(high / self._tick - 1e-9))

    def x(self, amount: float) -> float:
        size = self._size
        share = (amount - self._first) / (self._last - self._first)
        return round(size.left + share * (size.width - size.left - size.right), 1)

    def y(self, score: float) -> float:
        size = self._size
        share = (self._high - score / self._tick) / (self._high - self._low)
        return round(size.top + share * (size.height - size.top - size.bottom), 1)

    def scores(self) -> tuple[tuple[float, str], ...]:
        values = [number * self._tick for number in range(self._low, self._high + 1)]
        return tuple((self.y(value), f"{value:.2f}") for value in values)

    def line(self, run: str, stair: Sequence[_Step], end: float, marks: Sequence[Mark]) -> RunLine:
        last = self.x(end)
        positions = [*(self.x(position) for position, _, _ in stair), last]
        path = "".join(
            f"{'L' if number else 'M'}{begin} {self.y(score)}H{stop}"
            for number, ((begin, stop), (_, score, _)) in enumerate(zip(pairwise(positions), stair, strict=True))
        )
        above, below = "", ""
        for (begin, stop), (_, _, interval) in zip(pairwise(positions), stair, strict=True):
            if interval is None:
                above = below = ""
                break
            low, high = map(self.y, interval)
            above += f"{'L' if above else 'M'}{begin} {high}H{stop}"
            below = f"L{stop} {low}H{begin}{below}"
        last_score = stair[-1][1] if stair else 0.0
        return RunLine(
            run=run,
            path=path,
            band=f"{above}{below}Z" if above else "",
            marks=tuple(marks),
            end=(last, self.y(last_score)),
        )

    def mark(self, row: LogRow, position: float, shape: str, label: str) -> Mark:
        size, x, y = self._size, self.x(position), self.y(row.known.value if row.known else 0.0)
        score = numbers.score(row.score) if row.bound is None else f"at most {numbers.score(row.bound)}"
        gain = f" ({numbers.delta(row.delta)})" if row.delta is not None else ""
        words = (
            f"{label}: {event_marks.decision(Entry.of_row(row))}",
            f"{score}{gain} at step {row.step}",
            fit(one_line(row.title), size.letters),
        )
        width = max(map(len, words)) * _LETTER + 20
        top = y - _TIP_HEIGHT - 14
        return Mark(
            label=row.label,
            x=x,
            y=y,
            shape=shape,
            foot=y if row.delta is None else self.y((row.score or 0.0) - row.delta),
            words=words,
            tip=(
                round(max(2.0, min(x - width / 2, size.width - width - 2)), 1),
                round(top if top > 0 else y + 14, 1),
                round(width, 1),
            ),
        )


def stride(span: float, most: int) -> float:
    """Return the least of 1, 2 and 5 times a power of 10 that divides ``span`` into at most ``most`` parts."""
    return next(
        factor * 10.0**power
        for power in count(-6)
        for factor in (1, 2, 5)
        if span <= factor * 10.0**power * most * (1 + 1e-9)
    )
