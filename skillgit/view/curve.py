"""Curves of scores as drawings for pages: a run with its decisions, or several runs over each other.

Lines and signs differ by more than their colour. ``report/templates/curve.html`` draws what this positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count, groupby, pairwise
from math import ceil, floor
from typing import Final, NamedTuple

from skillgit.domain.evaluation import Metric
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.statistics import wilson_interval
from skillgit.index.event_pages import CurveRow
from skillgit.index.rows import LogRow, RunRow
from skillgit.view import event_marks, numbers
from skillgit.view.event_marks import Entry
from skillgit.view.table import Cell, Column, Table
from skillgit.view.text import fit, one_line

RUNS: Final = 6  # that have a line, a sign and a colour of their own
_SPREAD: Final = 0.55  # the part of a step's width that several events of one step are spread over
_LETTER: Final = 6.3  # about how wide a letter of a tip is
_TIP_HEIGHT: Final = 56
_LABEL_HEIGHT: Final = 15


class Axis(StrEnum):
    """What a curve runs along."""

    STEP = "step"
    CALL = "call"
    DOLLAR = "dollar"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One event: what the gate decided, where on the axis, and how the run did from then on."""

    row: LogRow
    x: float  # the step, or the calls or the dollars that the run had spent with it
    score: float  # the score of the version that the run is at, on the selection split under the run's metric
    interval: tuple[float, float] | None  # its 95 % Wilson interval; absent for means that are not of hard scores
    is_mark: bool  # whether it is a decision with a score of its own, or a bound of it


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCurve:
    """The score of a run over its course, oldest first: a stair, as each score lasts until the next point."""

    run: RunRow
    by: Axis
    points: tuple[CurvePoint, ...]
    left_out: int  # how many events of the run have no point

    @property
    def end(self) -> float:
        """Where the newest event is on the axis."""
        return self.points[-1].x if self.points else 0.0

    def thinned(self, most: int) -> RunCurve:
        """Return about ``most`` of the points: even ones, the first, the last, each new best and the lowest."""
        every, highest, kept = -(-len(self.points) // most), -1.0, []
        lowest = min((point.score for point in self.points), default=0.0)
        for number, point in enumerate(self.points):
            is_peak = point.score > highest
            if is_peak or number % every == 0 or point is self.points[-1] or point.score == lowest < highest:
                kept.append(point)
                lowest = -1.0 if point.score == lowest else lowest
            highest = max(highest, point.score)
        return replace(self, points=tuple(kept), left_out=self.left_out + len(self.points) - len(kept))


def run_curve(
    run: RunRow, rows: Sequence[CurveRow], events: int, by: Axis = Axis.STEP, within: Range | None = None
) -> RunCurve:
    """Return the curve of ``rows``, which are those of ``run`` or a part of its ``events``.

    Of a part of the axis, ``within``, the point before it counts too: its score is the one that the part begins with.
    """
    is_hard = run.metric == Metric.HARD.value
    points = [
        CurvePoint(
            row=row.row,
            x={Axis.STEP: row.row.step, Axis.CALL: row.calls, Axis.DOLLAR: row.usd}[by],
            score=row.score,
            interval=wilson_interval(row.score, row.items) if is_hard and row.items else None,
            is_mark=is_mark(row.row),
        )
        for row in rows
    ]
    if within is not None:
        before = [replace(point, x=within[0], is_mark=False) for point in points if point.x < within[0]]
        points = [*before[-1:], *(point for point in points if within[0] <= point.x <= within[1])]
    return RunCurve(run=run, by=by, points=tuple(points), left_out=0 if within else events - len(points))


Range = tuple[float, float]
"""From where to where on the axis."""


class Baseline(NamedTuple):
    """A version whose score is drawn across, for comparison."""

    name: str
    score: float


NUMBERS: Final[Table[tuple[RunCurve, CurvePoint]]] = Table(
    columns=(
        Column("run", lambda row: row[0].run.name, head="run", only_if=lambda whole, _: len(whole) > 1),
        Column(
            *("event", lambda row: row[1].row.label, "event"),
            show=lambda row: Cell(row[1].row.label, link=("run", row[0].run.name, row[1].row.label)),
        ),
        Column("by", lambda row: row[0].by),
        Column("at", lambda row: row[1].x, head="at", show=lambda row: _amount(row[0].by, row[1].x), right=True),
        Column(
            *("score", lambda row: row[1].row.score, "its score"),
            show=lambda row: event_marks.score(Entry.of_row(row[1].row)).strip(),
            right=True,
        ),
        Column("bound", lambda row: row[1].row.bound),
        Column("against", lambda row: _foot(row[1].row), head="against", right=True),
        Column("run_score", lambda row: row[1].score, head="run at", right=True),
        Column("low", lambda row: (row[1].interval or (None, None))[0]),
        Column("high", lambda row: (row[1].interval or (None, None))[1]),
        Column(
            "",
            head="95 %",
            show=lambda row: " to ".join(map(numbers.score, row[1].interval or ())),
        ),
    )
)
"""What a drawing shows, as numbers; ``whole`` is its curves."""


def _amount(by: Axis, x: float) -> str:
    return numbers.money(x) if by is Axis.DOLLAR else numbers.count(round(x))


def _foot(row: LogRow) -> float | None:
    """Return the score that an event's own was compared with."""
    return None if row.delta is None else (row.score or 0.0) - row.delta


_UNMARKED = frozenset({EventKind.SLOW_PROPOSED, EventKind.MEASURED, EventKind.RUN_FINISHED})


def is_mark(row: LogRow) -> bool:
    """Say whether a decision has a sign on a curve: a slow update that was merged has that of its merge."""
    return row.known is not None and (row.kind not in _UNMARKED or row.decision in {"reject", "indecisive"})


UNITS: Final = {Axis.STEP: "step", Axis.CALL: "paid calls", Axis.DOLLAR: "dollars"}


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
_MOST: Final = {"wide": 240, "narrow": 60}  # points of a run in a drawing, besides new bests
_BASELINE_WIDTH: Final = 110
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
        label: The run's name, as far as there is room; empty where it is the only run.
        label_y: Where its label is: labels of lines that end at one height are below each other.
    """

    run: str
    path: str
    band: str
    marks: tuple[Mark, ...]
    end: tuple[float, float]
    label: str
    label_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A drawing.

    Attributes:
        ends: The amounts at its left and right end.
        curves: What is drawn, whose points are the rows of :data:`NUMBERS`.
        baseline: The height and the name of the line across.
    """

    size: Size
    unit: str
    ends: Range
    curves: tuple[RunCurve, ...]
    baseline: tuple[float, str] | None
    lines: tuple[RunLine, ...]
    scores: tuple[tuple[float, str], ...]  # place and score of the lines across
    ticks: tuple[tuple[float, str], ...]  # place and amount of the numbers below
    epochs: tuple[tuple[float, float, int], ...] = ()  # begin, end and number of each epoch

    @property
    def rows(self) -> list[tuple[RunCurve, CurvePoint]]:
        return [(curve, point) for curve in self.curves for point in curve.points]


class _Track(NamedTuple):
    """A run before it is drawn: places, scores and intervals of its versions, and its decisions."""

    run: str
    stair: Sequence[tuple[float, float, tuple[float, float] | None]]
    marks: Sequence[tuple[LogRow, float, str, str]]  # an event, its place, its sign and its name
    end: float
    label: str = ""


def course(curve: RunCurve, within: Range | None = None, baseline: Baseline | None = None) -> dict[str, Curve]:
    """Return the drawings of one run for ``wide`` and ``narrow`` windows; none without scores.

    While the run is open, its axes hold still: they have the steps to come and every possible score.
    """
    run, drawings = curve.run, {}
    planned = 0 if run.outcome else run.total_steps
    first, last = (0, max(planned, round(curve.end), 1)) if within is None else map(round, within)
    for name, size in _SIZES.items():
        shown = curve.thinned(_MOST[name])
        if not shown.points:
            continue
        x_of: dict[str, float] = {}  # several events of one step are spread over a part of its width
        for step, same in groupby(shown.points, key=lambda point: point.row.step):
            group = list(same)
            x_of |= {
                point.row.commit: max(first, step + _SPREAD * number / len(group)) for number, point in enumerate(group)
            }
        stair = [(x_of[point.row.commit], point.score, point.interval) for point in shown.points]
        marks = [
            (point.row, x_of[point.row.commit], _shape(Entry.of_row(point.row)), point.row.label)
            for point in shown.points
            if point.is_mark
        ]
        every = max(1, round(stride(last - first, size.width // 64)))
        by_epoch: dict[int, int] = {}
        for point in shown.points:
            if point.row.epoch:
                by_epoch[point.row.epoch] = point.row.step
        corners = [
            max(first, min(shown.points[0].row.step - 1, 0) + _SPREAD),
            *(step + _SPREAD for step in by_epoch.values()),
        ]
        drawings[name] = _drawn(
            size,
            [_Track(run.name, stair, marks, min(last, curve.end) + _SPREAD)],
            (first, last + _SPREAD),
            "step",
            [(step, str(step)) for step in range(ceil(first / every) * every, last + 1, every)],
            epochs=[(begin, stop, epoch) for (begin, stop), epoch in zip(pairwise(corners), by_epoch, strict=True)],
            curves=(shown,),
            baseline=baseline,
            is_still=not run.outcome,
        )
    return drawings


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


def overlaid(
    curves: Sequence[RunCurve], within: Range | None = None, baseline: Baseline | None = None
) -> dict[str, Curve]:
    """Return the drawings of at most :data:`RUNS` curves over each other; none without a score."""
    curves = [curve for curve in curves[:RUNS] if curve.points]
    if not curves:
        return {}
    by = curves[0].by
    first, end = within or (0.0, max(curve.end for curve in curves) or 1.0)
    has_bands = len(curves) <= 2  # noqa: PLR2004 - several bands over each other hide the lines
    drawings = {}
    for name, size in _OVERLAY_SIZES.items():
        tracks = [
            _Track(
                curve.run.name,
                [(point.x, point.score, point.interval if has_bands else None) for point in curve.points],
                [
                    (point.row, point.x, "refused" if point.row.version is None else "solid", str(point.row.address))
                    for point in curve.points
                    if point.is_mark
                ],
                curve.end,
                fit(curve.run.name, max(8, size.right // 8)),
            )
            for curve in curves
        ]
        every = stride(end - first, size.width // 100 + 2)
        every = every if by is Axis.DOLLAR else max(1.0, every)
        amounts = [every * number for number in range(ceil(first / every - 1e-9), floor(end / every + 1e-9) + 1)]
        ticks = [(at, _amount(by, at)) for at in amounts]
        drawings[name] = _drawn(size, tracks, (first, end), UNITS[by], ticks, curves=tuple(curves), baseline=baseline)
    return drawings


def _drawn(
    size: Size,
    tracks: Sequence[_Track],
    ends: tuple[float, float],
    unit: str,
    ticks: Sequence[tuple[float, str]],
    *,
    curves: tuple[RunCurve, ...],
    baseline: Baseline | None,
    epochs: Sequence[tuple[float, float, int]] = (),
    is_still: bool = False,
) -> Curve:
    """Return the drawing of ``tracks``, with amounts between ``ends`` left to right; of any score if ``is_still``."""
    if baseline is not None:  # its name is beside the axes
        size = size._replace(right=max(size.right, _BASELINE_WIDTH))
    stairs = [step for track in tracks for step in track.stair]
    values = [row.known.value for track in tracks for row, *_ in track.marks if row.known is not None]
    values += [value for _, score, interval in stairs for value in (score, *(interval or ()))]
    values += [0.0, 1.0] if is_still else []
    values += [baseline.score] if baseline is not None else []
    tick = max(0.01, stride(max(values) - min(values), 5))
    low = floor(min(values) / tick + 1e-9)
    high = max(low + 1, ceil(max(values) / tick - 1e-9))

    def x(amount: float) -> float:
        share = (amount - ends[0]) / (ends[1] - ends[0])
        return round(size.left + share * (size.width - size.left - size.right), 1)

    def y(score: float) -> float:
        return round(size.top + (high - score / tick) / (high - low) * (size.height - size.top - size.bottom), 1)

    def line(track: _Track, label_y: float) -> RunLine:
        steps = [*zip(pairwise([*(x(at) for at, _, _ in track.stair), x(track.end)]), track.stair, strict=True)]
        path = "".join(f"L{begin} {y(score)}H{stop}" for (begin, stop), (_, score, _) in steps)
        above = below = ""
        for (begin, stop), (_, _, interval) in steps:
            if interval is None:
                above = ""
                break
            above += f"L{begin} {y(interval[1])}H{stop}"
            below = f"L{stop} {y(interval[0])}H{begin}{below}"
        return RunLine(
            run=track.run,
            path=f"M{path[1:]}" if path else "",
            band=f"M{above[1:]}{below}Z" if above else "",
            marks=tuple(mark(*parts) for parts in track.marks),
            end=(x(track.end), y(track.stair[-1][1] if track.stair else 0.0)),
            label=track.label,
            label_y=label_y,
        )

    def mark(row: LogRow, position: float, shape: str, name: str) -> Mark:
        place_x, place_y = x(position), y(row.known.value if row.known else 0.0)
        score = numbers.score(row.score) if row.bound is None else f"at most {numbers.score(row.bound)}"
        gain = f" ({numbers.delta(row.delta)})" if row.delta is not None else ""
        words = (
            f"{name}: {event_marks.decision(Entry.of_row(row))}",
            f"{score}{gain} at step {row.step}",
            fit(one_line(row.title), size.letters),
        )
        width = max(map(len, words)) * _LETTER + 20
        tip_x = max(2.0, min(place_x - width / 2, size.width - width - 2))
        tip_y = place_y - _TIP_HEIGHT - 14 if place_y > _TIP_HEIGHT + 14 else place_y + 14
        return Mark(
            label=row.label,
            x=place_x,
            y=place_y,
            shape=shape,
            foot=place_y if (foot := _foot(row)) is None else y(foot),
            words=words,
            tip=(round(tip_x, 1), round(tip_y, 1), round(width, 1)),
        )

    # labels are as near to the ends of their lines as they can be without touching each other
    heights = [y(track.stair[-1][1]) if track.stair else 0.0 for track in tracks]
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    label_heights, before = [0.0] * len(heights), float("-inf")
    for number, index in enumerate(order):
        lowest = size.height - size.bottom - (len(order) - 1 - number) * _LABEL_HEIGHT
        before = max(before + _LABEL_HEIGHT, min(heights[index], lowest))
        label_heights[index] = round(before, 1)
    return Curve(
        size=size,
        unit=unit,
        lines=tuple(map(line, tracks, label_heights)),
        scores=tuple((y(number * tick), f"{number * tick:.2f}".removeprefix("0")) for number in range(low, high + 1)),
        ticks=tuple((x(at), words) for at, words in ticks),
        epochs=tuple((x(begin), x(stop), epoch) for begin, stop, epoch in epochs),
        ends=ends,
        curves=curves,
        baseline=None if baseline is None else (y(baseline.score), fit(baseline.name, size.right // 8)),
    )


def stride(span: float, most: int) -> float:
    """Return the least of 1, 2 and 5 times a power of 10 that divides ``span`` into at most ``most`` parts."""
    return next(
        factor * 10.0**power
        for power in count(-6)
        for factor in (1, 2, 5)
        if span <= factor * 10.0**power * most * (1 + 1e-9)
    )
