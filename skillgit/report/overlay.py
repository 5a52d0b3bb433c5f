"""The curves of several runs over each other, as SVG: lines and signs differ by more than their colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from skillgit.app.history.curves import Axis, CurvePoint, RunCurve
from skillgit.report.figures import ScoreScale, Size, cut, delta, score
from skillgit.view import event_marks, numbers
from skillgit.view.event_marks import Entry

RUNS = 6  # that have a line, a sign and a colour of their own
WIDE = Size(1040, 380, right=150, top=16)
NARROW = Size(380, 300, right=64, top=16)
UNITS = {Axis.STEP: "step", Axis.CALL: "paid calls", Axis.DOLLAR: "dollars"}
_LABEL_HEIGHT = 15
_LETTERS = {WIDE: 19, NARROW: 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayMark:
    x: float
    y: float
    is_version: bool  # whether the candidate became a version; otherwise it was refused
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayLine:
    run: str
    label: str  # the run's name, as far as there is room
    path: str
    band: str  # what the intervals of the scores cover; empty without any
    marks: tuple[OverlayMark, ...]
    end: tuple[float, float]
    label_y: float  # labels of lines that end side by side are below each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    size: Size
    unit: str
    lines: tuple[OverlayLine, ...]
    scores: tuple[tuple[float, str], ...]  # place and score of the lines across
    ticks: tuple[tuple[float, str], ...]  # place and amount of the numbers below


def overlay(curves: Sequence[RunCurve], size: Size) -> Overlay | None:
    """Return the drawing of at most :data:`RUNS` curves; None without a score."""
    drawn_curves = [curve for curve in curves[:RUNS] if curve.points]
    return _OverlayPlot(drawn_curves, size).drawing() if drawn_curves else None


class _OverlayPlot(ScoreScale):
    def __init__(self, curves: Sequence[RunCurve], size: Size) -> None:
        self._curves = curves
        self._by = curves[0].by
        self._end = max(curve.end for curve in curves) or 1.0
        marks = [point.row.known for curve in curves for point in curve.points if point.is_mark]
        scores = [point.score for curve in curves for point in curve.points]
        scores += [value.value for value in marks if value is not None]
        ends = [end for curve in curves for point in curve.points for end in point.interval or ()]
        # several bands over each other hide the lines
        self._has_bands = len(curves) <= 2  # noqa: PLR2004 - a pair can be told apart
        ends = ends if self._has_bands else []
        super().__init__(size, [*scores, *ends])

    def drawing(self) -> Overlay:
        ends = [(self._x(curve.end), self._y(curve.points[-1].score)) for curve in self._curves]
        heights = _apart([y for _, y in ends], self._size)
        return Overlay(
            size=self._size,
            unit=UNITS[self._by],
            lines=tuple(
                OverlayLine(
                    run=curve.run.name,
                    label=cut(curve.run.name, _LETTERS[self._size]),
                    path=self._path(curve),
                    band=self._band(curve) if self._has_bands else "",
                    marks=tuple(self._marks(curve)),
                    end=end,
                    label_y=height,
                )
                for curve, end, height in zip(self._curves, ends, heights, strict=True)
            ),
            scores=self.score_ticks(),
            ticks=self._ticks(),
        )

    def _x(self, amount: float) -> float:
        size = self._size
        return round(size.left + amount / self._end * (size.width - size.left - size.right), 1)

    def _path(self, curve: RunCurve) -> str:
        first, *rest = curve.points
        parts, before = [f"M{self._x(first.x)} {self._y(first.score)}"], first.score
        for point in rest:
            if point.score != before:
                parts.append(f"H{self._x(point.x)}V{self._y(point.score)}")
                before = point.score
        return f"{''.join(parts)}H{self._x(curve.end)}"

    def _band(self, curve: RunCurve) -> str:
        begins = [self._x(point.x) for point in curve.points]
        ends = [*begins[1:], self._x(curve.end)]
        return self._around(zip(begins, ends, (point.interval for point in curve.points), strict=True))

    def _marks(self, curve: RunCurve) -> Iterator[OverlayMark]:
        for point in curve.points:
            value = point.row.known
            if point.is_mark and value is not None:
                x, y = self._x(point.x), self._y(value.value)
                yield OverlayMark(x=x, y=y, is_version=point.row.version is not None, words=_words(point))

    def _ticks(self) -> tuple[tuple[float, str], ...]:
        most = 10 if self._size is WIDE else 5
        least = -6 if self._by is Axis.DOLLAR else 0
        strides = (factor * 10.0**power for power in count(least) for factor in (1, 2, 5))
        stride = next(stride for stride in strides if self._end / stride <= most)
        amounts = [stride * number for number in range(int(self._end / stride + 1e-9) + 1)]
        return tuple((self._x(amount), self._amount(amount)) for amount in amounts)

    def _amount(self, amount: float) -> str:
        return numbers.money(amount) if self._by is Axis.DOLLAR else numbers.count(round(amount))


def _words(point: CurvePoint) -> str:
    row = point.row
    text = score(row.score) if row.bound is None else f"at most {score(row.bound)}"
    gain = f" ({delta(row.delta)})" if row.delta is not None else ""
    return f"{row.address}: {event_marks.decision(Entry.of_row(row))}, {text}{gain}, step {row.step}"


def _apart(heights: Sequence[float], size: Size) -> list[float]:
    """Return where labels go that belong beside ``heights``: as near as they can be without touching each other."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    lowest = size.height - size.bottom
    result = [0.0] * len(heights)
    before = float("-inf")
    for number, index in enumerate(order):
        room_below = (len(order) - 1 - number) * _LABEL_HEIGHT
        before = max(before + _LABEL_HEIGHT, min(heights[index], lowest - room_below))
        result[index] = round(before, 1)
    return result
