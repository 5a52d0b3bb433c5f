"""Versions by models: a table of scores, with what cannot be compared marked and explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillgit.view import numbers
from skillgit.view.items import name
from skillgit.view.surface import Style
from skillgit.view.text import fit, table, width

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.history.matrix import Difference, Matrix, MatrixCell, MatrixRow
    from skillgit.view.surface import Screen

MATRIX_COLUMNS = (
    "version",
    "commit",
    "model",
    "score",
    "hard",
    "soft",
    "n",
    "scored",
    "measured",
    "differs",
    "source",
    "time",
    "others",
)
"""The columns of ``matrix --plain``."""

_MARKS: Final[dict[Difference, str]] = {"items": "*", "environment": "!", "judge": "?"}
_TITLE_LEAST = 12
_MEANINGS: Final[dict[Difference, str]] = {
    "items": "measured on other items than the run's, so that the numbers do not compare",
    "environment": "measured in another version of the environment, so that the numbers do not compare",
    "judge": "scored by another judge than the run's, so that the numbers do not compare",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRecord:
    """One version under one model, for machine formats."""

    version: str
    commit: str
    model: str
    score: float
    hard: float
    soft: float
    n: int
    scored: int
    measured: bool
    differs: tuple[str, ...]
    source: str
    time: datetime | None
    others: int


def matrix_records(matrix: Matrix) -> list[MatrixRecord]:
    """Return one row for each version and model."""
    return [
        MatrixRecord(
            version=name(row.row),
            commit=row.row.commit,
            model=cell.model,
            score=cell.score,
            hard=cell.hard,
            soft=cell.soft,
            n=cell.n,
            scored=cell.scored,
            measured=cell.measured,
            differs=cell.differs,
            source=cell.source,
            time=cell.time,
            others=cell.others,
        )
        for row in matrix.rows
        for cell in row.cells
    ]


def matrix_lines(matrix: Matrix, screen: Screen) -> Iterator[str]:
    """Yield the table and what its marks mean."""
    dot = f" {screen.glyphs.dot} "
    yield dot.join((f"run {matrix.run}", f"{matrix.split} split", f"{matrix.metric} score"))
    yield from _marked(matrix, screen)
    yield ""
    head = [
        screen.paint(Style.FAINT, cell) for cell in ("", *(part for model in matrix.models for part in (model, "n")))
    ]
    body = [
        [_label(row, screen), *(part for model in matrix.models for part in _cell(row, model, screen))]
        for row in matrix.rows
    ]
    lines = list(table([head, *body], align="l" + "rr" * len(matrix.models)))
    widest = max(map(width, lines))
    titles = ["", *(row.row.title for row in matrix.rows)]
    room = screen.width - widest - 3 if screen.width else 60
    for line, title in zip(lines, titles, strict=True):
        excerpt = fit(title, room, screen.glyphs.ellipsis) if room >= _TITLE_LEAST else ""
        yield f"{line}{' ' * (widest - width(line))}   {screen.paint(Style.FAINT, excerpt)}".rstrip()
    yield from _legend(matrix, screen)


def _label(row: MatrixRow, screen: Screen) -> str:
    style = Style.BEST if row.row.is_best else Style.REJECTED if row.row.version is None else Style.STRONG
    return screen.paint(style, name(row.row))


def _cell(row: MatrixRow, model: str, screen: Screen) -> tuple[str, str]:
    cell = next((cell for cell in row.cells if cell.model == model), None)
    if cell is None:
        return screen.paint(Style.FAINT, screen.glyphs.dot), ""
    return _score(cell, screen), screen.paint(Style.FAINT, _count(cell))


def _score(cell: MatrixCell, screen: Screen) -> str:
    text = numbers.score(cell.score)
    if not cell.measured:
        return screen.paint(Style.FAINT, f"({text})")
    marks = "".join(_MARKS[reason] for reason in cell.differs)
    return f"{screen.paint(Style.REVERTED, marks)}{text}"


def _count(cell: MatrixCell) -> str:
    return str(cell.n) if cell.scored == cell.n else f"{cell.scored}/{cell.n}"


def _marked(matrix: Matrix, screen: Screen) -> Iterator[str]:
    """Yield what keeps numbers from being compared, with the marks that these bear."""
    reasons = {why for row in matrix.rows for cell in row.cells for why in cell.differs}
    for why, mark in _MARKS.items():
        if why in reasons:
            yield screen.paint(Style.REVERTED, f"{mark} {_MEANINGS[why]}")


def _legend(matrix: Matrix, screen: Screen) -> Iterator[str]:
    cells = [cell for row in matrix.rows for cell in row.cells]
    notes = []
    if any(not cell.measured for cell in cells):
        notes.append("( ) inherited, not measured")
    if any(cell.others for cell in cells):
        notes.append(
            "where a version was measured more than once under a model, the newest stands here; --json counts them"
        )
    if notes:
        yield ""
    for note in notes:
        yield screen.paint(Style.FAINT, note)
