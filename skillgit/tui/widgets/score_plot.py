"""The scores of a run over its steps, drawn with the signs of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich.style import Style as Paint
from rich.text import Text
from textual.widget import Widget

from skillgit.index.event_pages import Point
from skillgit.view import numbers
from skillgit.view.event_marks import look_of
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.index.rows import LogRow
    from skillgit.view.surface import Glyphs

_AXIS = 7
"""Columns of the numbers and the line at the left."""
_LEAST_ROWS = 3
_CHOSEN = Paint(reverse=True)


class Mark(NamedTuple):
    """One sign of the plot."""

    sign: str
    style: Style
    rank: int


def mark(point: Point, glyphs: Glyphs) -> Mark:
    """Return the sign of a point; where several meet, the one of the highest rank is seen.

    A bound has a sign of its own: the score is there or anywhere below.
    """
    if point.score.at_most:
        return Mark(glyphs.at_most[:1], Style.REJECTED, -1)
    look = look_of(point.kind, point.decision)
    return Mark(look.drawn(glyphs), look.style, look.rank)


class Scale(NamedTuple):
    """Where scores and steps stand on the plot."""

    steps: tuple[int, int]
    scores: tuple[float, float]
    columns: int
    rows: int

    @classmethod
    def over(cls, points: Sequence[Point], columns: int, rows: int) -> Scale:
        """Return a scale that all ``points`` have a place on."""
        steps, scores = [point.step for point in points], [point.score.value for point in points]
        return cls((min(steps), max(steps)), (min(scores), max(scores)), columns, rows)

    def at(self, point: Point) -> tuple[int, int]:
        """Return the column and the row of a point, from the top left."""
        (first, last), (low, high) = self.steps, self.scores
        x = round((point.step - first) / max(1, last - first) * (self.columns - 1))
        y = round((high - point.score.value) / (high - low) * (self.rows - 1)) if high > low else self.rows // 2
        return x, y

    def score(self, row: int) -> float:
        """Return the score that a row stands for."""
        low, high = self.scores
        return high - (high - low) * row / max(1, self.rows - 1)


def marks(points: Sequence[Point], scale: Scale, glyphs: Glyphs) -> dict[tuple[int, int], Mark]:
    """Return column and row to the sign that is there."""
    grid: dict[tuple[int, int], Mark] = {}
    for point in points:
        where, sign = scale.at(point), mark(point, glyphs)
        if where not in grid or sign.rank >= grid[where].rank:
            grid[where] = sign
    return grid


class ScorePlot(Widget, can_focus=True):
    """A plot of scores; the step under the cursor of the history stands out."""

    points: tuple[Point, ...] = ()
    chosen: Point | None = None

    def show(self, points: Sequence[Point]) -> None:
        self.points = tuple(points)
        self.refresh()

    def point_at(self, row: LogRow) -> None:
        """Let an event stand out, which need not be among the points; one without a score does not."""
        point = None
        if row.known is not None:
            point = Point(step=row.step, score=row.known, kind=row.kind, decision=row.decision, commit=row.commit)
        if point != self.chosen:
            self.chosen = point
            self.refresh()

    def render(self) -> Text:
        app: Any = self.app
        columns, rows = self.size.width - _AXIS, self.size.height - 1
        if not self.points or columns < _AXIS or rows < _LEAST_ROWS:
            return Text("" if self.points else " no scores yet", style=app.paint(Style.FAINT))
        points = self.points if self.chosen is None else (*self.points, self.chosen)
        scale = Scale.over(points, columns, rows)
        grid = marks(points, scale, app.facts.glyphs)
        return self._drawn(scale, grid, scale.at(self.chosen) if self.chosen is not None else None)

    def _drawn(self, scale: Scale, grid: Mapping[tuple[int, int], Mark], highlight: tuple[int, int] | None) -> Text:
        app: Any = self.app
        faint, text = app.paint(Style.FAINT), Text(no_wrap=True, end="")
        for y in range(scale.rows):
            label = numbers.score(scale.score(y)) if y in {0, scale.rows // 2, scale.rows - 1} else ""
            text.append(f"{label:>5} {app.facts.glyphs.line}", faint)
            at = 0
            for x in sorted(column for column, row in grid if row == y):
                sign = grid[x, y]
                style = app.paint(sign.style)
                text.append(" " * (x - at)).append(sign.sign, style + _CHOSEN if (x, y) == highlight else style)
                at = x + 1
            text.append(" " * (scale.columns - at) + "\n")
        first, last = scale.steps
        return text.append(f"{'step':>5}  {first}{str(last).rjust(max(1, scale.columns - len(str(first))))}", faint)
