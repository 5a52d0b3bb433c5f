"""A plot of scores that fills the room that there is: of one run by what happened, or of several over each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import ceil, floor, log10
from typing import Final, NamedTuple

from rich.style import Style as Paint
from rich.text import Text
from textual.widget import Widget

from skillgit.domain.event_kinds import EventKind
from skillgit.index.event_pages import Point
from skillgit.index.rows import LogRow
from skillgit.tui.reading import app_of
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.surface import Glyphs, Screen, Style


class Dot(NamedTuple):
    """One score in a plot; where several signs meet, the one of the highest rank is seen."""

    x: float
    score: float
    sign: str
    style: Style
    rank: int = 0
    is_kept: bool = True  # whether the line of the best score so far may rise to it


class PlottedRun(NamedTuple):
    dots: Sequence[Dot]  # from left to right
    style: Style  # that of the line of its best score so far


_RUN_SIGNS: Final = {True: "●▲■◆▼○△□", False: "o^#xv+*="}
_RUN_STYLES: Final = (Style.BEST, Style.REJECTED, Style.SLOW, Style.RUNNING, Style.REVERTED, Style.EDITED)
_REFUSED: Final = frozenset({EventKind.REJECTED, EventKind.SLOW_PROPOSED})
_TOP: Final = 99  # the rank of what is under the cursor


def run_look(number: int, screen: Screen) -> tuple[str, Style]:
    """Return the sign and the colour of the run with that number, from 0, among several in one plot."""
    signs = _RUN_SIGNS[screen.unicode]
    return signs[number % len(signs)], _RUN_STYLES[number % len(_RUN_STYLES)]


def overlaid(curves: Sequence[Sequence[tuple[float, float]]], screen: Screen) -> tuple[PlottedRun, ...]:
    """Return several runs, each the places and the scores of its versions from left to right, with distinct signs."""
    looks = [run_look(number, screen) for number in range(len(curves))]
    return tuple(
        PlottedRun([Dot(x, score, sign, style, len(curves) - number) for x, score in curve], style)
        for number, (curve, (sign, style)) in enumerate(zip(curves, looks, strict=True))
    )


def by_event(points: Sequence[Point], glyphs: Glyphs) -> PlottedRun:
    """Return one run by step, with the signs of its events; a bound's says that the score is there or below."""
    return PlottedRun([_dot(point, glyphs) for point in points], Style.FAINT)


def _dot(point: Point, glyphs: Glyphs) -> Dot:
    look, score = cells.look_of(point.kind, point.decision), point.score
    if score.at_most:
        return Dot(point.step, score.value, glyphs.at_most[:1], Style.REJECTED, -1, is_kept=False)
    return Dot(point.step, score.value, look.drawn(glyphs), look.style, look.rank, is_kept=point.kind not in _REFUSED)


class Scale(NamedTuple):
    """Where a score is among columns and rows; the highest is in row 0."""

    sides: tuple[float, float]
    scores: tuple[float, float]
    columns: int
    rows: int

    @classmethod
    def over(cls, dots: Sequence[Dot], columns: int, rows: int, last: float = 0, *, is_still: bool = False) -> Scale:
        """Return the scale that shows all of ``dots``, the places up to ``last``, and if ``is_still`` any score."""
        xs, scores = [dot.x for dot in dots], [*(dot.score for dot in dots), *((0.0, 1.0) if is_still else ())]
        return cls((min(xs), max(*xs, last)), (min(scores), max(scores)), columns, rows)

    def column(self, x: float) -> int:
        first, last = self.sides
        return round((x - first) / ((last - first) or 1) * (self.columns - 1))

    def row(self, score: float) -> int:
        low, high = self.scores
        return round((high - score) / (high - low) * (self.rows - 1)) if high > low else self.rows // 2

    def at(self, dot: Dot) -> tuple[int, int]:
        return self.column(dot.x), self.row(dot.score)

    def score(self, row: int) -> float:
        low, high = self.scores
        return high - (high - low) * row / max(1, self.rows - 1)


_Cells = dict[tuple[int, int], tuple[str, Style]]
"""Column and row to the sign that is there."""


def drawing(runs: Sequence[PlottedRun], scale: Scale, glyphs: Glyphs) -> _Cells:
    """Return every sign of a plot: the lines of the best scores so far, and over them the scores themselves."""
    grid: _Cells = {}
    for run in reversed(runs):  # of lines that meet, the first run's is seen
        versions = [dot for dot in run.dots if dot.is_kept]
        if not versions:
            continue
        heights = accumulate((scale.row(dot.score) for dot in versions), min)
        corners = [*zip((scale.column(dot.x) for dot in versions), heights, strict=True)]
        end = scale.column(max(dot.x for dot in run.dots))
        for (start, row), (right, higher) in pairwise([*corners, (end, corners[-1][1])]):
            grid |= {(column, row): (glyphs.rule, run.style) for column in range(start + 1, right + 1)}
            if higher < row:
                grid |= {(right, between): (glyphs.line, run.style) for between in range(higher + 1, row)}
                grid |= {(right, row): (glyphs.up_left, run.style), (right, higher): (glyphs.down_right, run.style)}
    for dot in sorted((dot for run in runs for dot in run.dots), key=lambda dot: dot.rank):
        grid[scale.at(dot)] = (dot.sign, dot.style)
    return grid


def ticks(first: float, last: float, most: int) -> Iterator[float]:
    """Yield at most about ``most`` round numbers from ``first`` to ``last``."""
    span = last - first
    if span <= 0:
        yield first
        return
    rough = span / max(1, most)
    power = 10.0 ** floor(log10(rough))
    apart = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    if float(first).is_integer() and float(last).is_integer():
        apart = max(1.0, apart)
    yield from (number * apart for number in range(ceil(first / apart), floor(last / apart) + 1))


_AXIS = 8  # columns of the numbers and the line at the left
_LEAST_ROWS = 3
_ROWS_APART = 4  # rows between two numbers at the left, where there are many
_TICK = 12  # columns between two numbers below, at least
WHOLE = "{:,.0f}".format


class ScorePlot(Widget, can_focus=True):
    """A plot of scores; the event under the cursor of the history stands out."""

    runs: tuple[PlottedRun, ...] = ()
    cursor: Dot | None = None
    _axis, _last, _is_still = "step", 0.0, False
    _label: Callable[[float], str] = WHOLE

    def show(self, points: Sequence[Point], *, steps: int = 0, is_still: bool = False) -> None:
        """Show one run by what happened at each step, up to ``steps``; ``is_still`` if its axes must not move."""
        if is_still != self._is_still:
            self._is_still = is_still
            self.refresh()
        run = by_event(points, app_of(self).facts.glyphs)
        self.show_runs((run,) if points else (), last=steps)

    def show_runs(
        self, runs: Sequence[PlottedRun], *, axis: str = "step", last: float = 0, label: Callable[[float], str] = WHOLE
    ) -> None:
        """Show runs over each other (see :func:`overlaid`) by ``axis``, whose places ``label`` writes."""
        self._label = label
        if (picture := (tuple(runs), axis, last)) != (self.runs, self._axis, self._last):
            self.runs, self._axis, self._last = picture
            self.refresh()

    def point_at(self, row: LogRow) -> None:
        dot = None
        if row.known is not None:
            point = Point(step=row.step, score=row.known, kind=row.kind, decision=row.decision, commit=row.commit)
            dot = _dot(point, app_of(self).facts.glyphs)._replace(rank=_TOP, is_kept=False)
        if dot != self.cursor:
            self.cursor = dot
            self.refresh()

    def render(self) -> Text:
        app = app_of(self)
        faint, glyphs = app.paint(Style.FAINT), app.facts.glyphs
        columns, rows = self.size.width - _AXIS, self.size.height - 1
        cursor = [self.cursor] if self.cursor is not None else []
        runs = (*self.runs, PlottedRun(cursor, Style.FAINT))
        dots = [dot for run in runs for dot in run.dots]
        if len(dots) == len(cursor) or columns < _AXIS or rows < _LEAST_ROWS:
            return Text("" if len(dots) > len(cursor) else " no scores yet", style=faint)
        scale = Scale.over(dots, columns, rows, self._last, is_still=self._is_still)
        lines = defaultdict[int, list[tuple[int, str, Paint]]](list)
        for (x, y), (sign, meaning) in sorted(drawing(runs, scale, glyphs).items()):
            stands_out = any((x, y) == scale.at(dot) for dot in cursor)
            lines[y].append((x, sign, app.paint(meaning) + Paint(reverse=True) if stands_out else app.paint(meaning)))
        gaps = max(2, rows // _ROWS_APART)  # the first row has a number, the last, and some between
        label_rows = {(number * (rows - 1) + gaps // 2) // gaps for number in range(gaps + 1)}
        low, high = scale.scores
        text = Text(no_wrap=True, end="")
        for y in range(rows):
            score = numbers.score(scale.score(y)) if y in (label_rows if high > low else {rows // 2}) else ""
            text.append(f"{score:>6} {glyphs.line}", faint)
            end = 0
            for x, sign, style in lines[y]:
                text.append(" " * (x - end)).append(sign, style)
                end = x + 1
            text.append(" " * (columns - end) + "\n")
        return text.append(f"{self._axis:>6}  {self._places(scale)}", faint)

    def _places(self, scale: Scale) -> str:
        """Return the numbers of the places, each under its own."""
        line = " " * scale.columns
        for tick in ticks(*scale.sides, scale.columns // _TICK):
            label = self._label(tick)
            begin = max(0, min(scale.column(tick) - len(label) // 2, scale.columns - len(label)))
            if not line[max(0, begin - 1) : begin + len(label) + 1].strip():
                line = line[:begin] + label + line[begin + len(label) :]
        return line
