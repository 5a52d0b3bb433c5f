"""Items by versions: a map with one sign for each outcome, as many versions as the terminal has room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from skillgit.app.workspace.workspace import Absence, measure
from skillgit.domain.score import known
from skillgit.index.rows import LogRow
from skillgit.view import numbers
from skillgit.view.items import name
from skillgit.view.json_values import named_values, picked
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, headed, pad, width

if TYPE_CHECKING:
    from skillgit.app.history.items import ItemColumn, ItemLine, ItemTable
    from skillgit.app.history.matrix import Difference, Matrix, MatrixCell, MatrixRow
    from skillgit.app.recorded.item_history import ItemOutcome


_MARKS: Final[dict[Difference, str]] = {
    "items": "*",
    "environment": "!",
    "judge": "?",
    "server": "^",
    "configuration": "~",
}
_TITLE_LEAST = 12
_MEANINGS: Final[dict[Difference, str]] = {
    "items": "measured on other items than the run's, so that the numbers do not compare",
    "environment": "measured in another version of the environment, so that the numbers do not compare",
    "judge": "scored by another judge than the run's, so that the numbers do not compare",
    "server": "answered by another server than the run's, so that the numbers do not compare",
    "configuration": "measured with other settings than the run's, so that the numbers do not compare",
}


def matrix_records(matrix: Matrix) -> Iterator[Mapping[str, object]]:
    for row in matrix.rows:
        version = {"version": name(row.row), "commit": row.row.commit}
        yield from ({**version, **named_values(cell)} for cell in row.cells)


def matrix_lines(matrix: Matrix, screen: Screen) -> Iterator[str]:
    yield screen.dotted((f"run {matrix.run}", f"{matrix.split} split", f"{matrix.metric} score"))
    yield from _marked(matrix, screen)
    yield ""
    head = ("", *(part for model in matrix.models for part in (model, "n")))
    body = [
        [
            screen.paint(_name_style(row.row), name(row.row)),
            *(part for model in matrix.models for part in _cell(row, model, screen)),
        ]
        for row in matrix.rows
    ]
    lines = list(headed(head, body, screen, align="l" + "rr" * len(matrix.models)))
    widest = max(map(width, lines))
    titles = ["", *(row.row.title for row in matrix.rows)]
    room = screen.width - widest - 3 if screen.width else 60
    for line, title in zip(lines, titles, strict=True):
        excerpt = fit(title, room, screen.glyphs.ellipsis) if room >= _TITLE_LEAST else ""
        yield f"{line}{' ' * (widest - width(line))}   {screen.paint(Style.FAINT, excerpt)}".rstrip()
    yield from _matrix_legend(matrix, screen)


def _name_style(row: LogRow | ItemColumn) -> Style:
    return Style.BEST if row.is_best else Style.REJECTED if row.version is None else Style.STRONG


def _cell(row: MatrixRow, model: str, screen: Screen) -> tuple[str, str]:
    cell = next((cell for cell in row.cells if cell.model == model), None)
    if cell is None:
        return screen.paint(Style.FAINT, screen.glyphs.dot), ""
    count = str(cell.n) if cell.scored == cell.n else f"{cell.scored}/{cell.n}"
    return _matrix_score(cell, screen), screen.paint(Style.FAINT, count)


def _matrix_score(cell: MatrixCell, screen: Screen) -> str:
    text = numbers.score(cell.score)
    if not cell.measured:
        return screen.paint(Style.FAINT, f"({text})")
    marks = "".join(_MARKS[reason] for reason in cell.differs)
    return f"{screen.paint(Style.REVERTED, marks)}{text}"


def _marked(matrix: Matrix, screen: Screen) -> Iterator[str]:
    reasons = {why for row in matrix.rows for cell in row.cells for why in cell.differs}
    for why, mark in _MARKS.items():
        if why in reasons:
            yield screen.paint(Style.REVERTED, f"{mark} {_MEANINGS[why]}")


def _matrix_legend(matrix: Matrix, screen: Screen) -> Iterator[str]:
    cells = [cell for row in matrix.rows for cell in row.cells]
    many = "where a version was measured more than once under a model, the newest stands here; --json counts them"
    brackets = "( ) inherited, not measured" if not all(cell.measured for cell in cells) else ""
    notes = [note for note in (brackets, many if any(cell.others for cell in cells) else "") if note]
    yield from ("", *(screen.paint(Style.FAINT, note) for note in notes)) if notes else ()


_GAP = 1
_TENTHS = 10
_UNKNOWN = "?"
_FULL = 5  # columns of a score with all its digits


def lines(table: ItemTable, screen: Screen, *, every: bool = False) -> Iterator[str]:
    """Yield the table; on a terminal only so many versions as fit, unless ``every`` one is wanted."""
    names = [fit(line.item, 24) for line in table.rows]
    kinds = [line.task_type for line in table.rows]
    sides = [_side(line, screen) for line in table.rows]
    left_width = max(map(width, (*names, "score"))) + 2 + max(map(width, kinds), default=0) + 2
    right_width = 2 + max(map(width, (*sides, _SIDES)))
    space = 0 if every or not screen.width else max(1, screen.width - left_width - right_width + _GAP)
    cells = _cell_width(table.columns, space)
    indices = chosen(table.columns, max(2, space // (cells + _GAP)) if space else 0)
    columns = [table.columns[index] for index in indices]
    heads = [screen.paint(_name_style(column), pad(column.name, cells, right=True)) for column in columns]
    yield f"{' ' * left_width}{(' ' * _GAP).join(heads)}  {screen.paint(Style.FAINT, _SIDES)}"
    type_width = max(map(width, kinds), default=0)
    name_width = left_width - type_width - 4
    for line, label, side in zip(table.rows, names, sides, strict=True):
        marks = (sign(line.cells[index], screen, table.columns[index].absence) for index in indices)
        signs = (" " * _GAP).join(pad(mark, cells, right=True) for mark in marks)
        kind = screen.paint(Style.FAINT, pad(line.task_type, type_width))
        yield f"{pad(label, name_width)}  {kind}  {signs}  {side}".rstrip()
    scores = (" " * _GAP).join(pad(_score(column, screen, cells), cells, right=True) for column in columns)
    yield f"{screen.paint(Style.STRONG, pad('score', name_width))}  {' ' * type_width}  {scores}"
    yield ""
    yield from _legend(table, len(indices), screen)


_SIDES = "first  flips  solved"


def chosen(columns: Sequence[ItemColumn], room: int) -> list[int]:
    """Return the places of at most ``room`` columns: the ends, the best, and others at even distances; 0 is all."""
    count = len(columns)
    if not room or count <= room:
        return list(range(count))
    indices = {0, count - 1}
    if room > len(indices):
        indices |= set([index for index, column in enumerate(columns) if column.is_best][-1:])
    free = room - len(indices)
    even = [round((number + 1) * (count - 1) / (free + 1)) for number in range(free)]
    for index in even:
        choice = next((near for near in _around(index, count) if near not in indices), None)
        if choice is not None:
            indices.add(choice)
    return sorted(indices)


def _around(index: int, count: int) -> Iterator[int]:
    for distance in range(count):
        yield from (near for near in (index - distance, index + distance) if 0 <= near < count)


def sign(cell: ItemOutcome | None, screen: Screen, absence: Absence | None = None) -> str:
    """Return an outcome as a sign: solved or not, tenths, ``!`` failed, in brackets if inherited, ``?`` unknown."""
    if cell is None:
        return screen.paint(Style.FAINT, screen.glyphs.dot if absence is None else _UNKNOWN)
    if cell.value is None or cell.hard is None:
        return screen.paint(Style.REVERTED, "!")
    is_solved = cell.hard >= 1.0
    partly = 0.0 < cell.value < 1.0
    mark = screen.glyphs.passed if is_solved else screen.glyphs.rejected
    mark = str(max(1, min(_TENTHS - 1, int(cell.value * _TENTHS)))) if partly else mark
    if not cell.measured:
        return screen.paint(Style.FAINT, f"({mark})")
    return screen.paint(Style.ACCEPTED if is_solved else Style.SKIPPED if partly else Style.REJECTED, mark)


def records(table: ItemTable, *, cells: bool) -> Iterator[dict[str, object]]:
    """Yield the items for machine formats with their scores by version; ``cells`` writes these as ``v7=1.0``."""
    own = "item task_type first is_first flips solved measured unknown share doubts"
    for line in table.rows:
        pairs = zip(table.columns, line.cells, strict=True)
        scores = {column.name: cell.value for column, cell in pairs if cell is not None}
        texts = [f"{name}={'failed' if value is None else value}" for name, value in scores.items()]
        yield {**picked(line, own), "outcomes": texts if cells else scores}


def _cell_width(columns: Sequence[ItemColumn], space: int) -> int:
    """Return the columns that a cell takes: those of a full score if all versions fit so, else of a short one."""
    names = max(width(column.name) for column in columns)
    full = max(names, 6 if any(column.bound is not None for column in columns) else 5)
    short = 4 if any(column.bound is not None for column in columns) else 3
    return full if not space or len(columns) * (full + _GAP) <= space else max(names, short)


def _score(column: ItemColumn, screen: Screen, cells: int) -> str:
    """Return a score, in two digits where it has to be short; faint or in brackets if it is not of this text."""
    score = known(column.score, column.bound)
    if score is None:
        return ""
    short = cells < _FULL
    text = f"{score.value:.2f}".removeprefix("0") if short else numbers.score(score.value)
    if score.at_most:
        return f"{screen.glyphs.at_most[:1]}{text}" if short else f"{screen.glyphs.at_most}{text}"
    if column.measured:
        return screen.paint(Style.STRONG, text)
    return screen.paint(Style.FAINT, text if short else f"({text})")


def _side(line: ItemLine, screen: Screen) -> str:
    first = _first(line, screen)
    share = f"{line.solved}/{line.measured}"
    noisy = screen.paint(Style.REVERTED, f"  {', '.join(line.doubts)}") if line.doubts else ""
    return f"{pad(first, 5)}  {line.flips:>5}  {share:>6}{noisy}"


def _first(line: ItemLine, screen: Screen) -> str:
    """Return the first version that solves an item; ``≤`` where an earlier one may, too."""
    if line.is_first:
        return line.first or screen.paint(Style.REJECTED, "never")
    return f"{screen.glyphs.at_most}{line.first}" if line.first else _UNKNOWN


def _legend(table: ItemTable, count: int, screen: Screen) -> Iterator[str]:
    glyphs = screen.glyphs
    every = [cell for line in table.rows for cell in line.cells]
    absences = [column.absence for column in table.columns]
    blank = {bool(gap) for line in table.rows for cell, gap in zip(line.cells, absences, strict=True) if cell is None}
    parts = [
        f"{sign_text} {meaning}"
        for sign_text, meaning, is_used in (
            (glyphs.passed, "solved", True),
            (glyphs.rejected, "not solved", True),
            ("1-9", f"tenths of the {table.metric} score", any(c and c.value and c.value < 1.0 for c in every)),
            (glyphs.dot, "not measured", False in blank),
            (_UNKNOWN, "not known", True in blank),
            ("!", "failed to evaluate", any(c is not None and c.value is None for c in every)),
            ("( )", "inherited, not measured", any(c is not None and not c.measured for c in every)),
        )
        if is_used
    ]
    yield screen.paint(Style.FAINT, "   ".join(parts))
    many = len(table.columns)
    part = f"{len(table.rows)} of " if len(table.rows) < table.items else ""
    scope = f"{part}{numbers.plural(table.items, 'item')}"
    noun = "columns" if any(column.version is None for column in table.columns) else "versions"
    remark = f"; {count} of {many} {noun} fit, --all-versions shows every one" if count < many else ""
    yield screen.paint(Style.FAINT, f"{scope} of the selection split, run {table.run}{remark}")
    yield from _unknown(table, screen)


def _unknown(table: ItemTable, screen: Screen) -> Iterator[str]:
    """Yield what is not known for want of evidence, so that nobody takes the rest for all, and what helps."""
    for absence in Absence:
        columns = [column for column in table.columns if column.absence is absence and column.lacking]
        if columns:
            names = f"{columns[0].name} … {columns[-1].name}" if len(columns) > 1 else columns[0].name
            sentence = absence.sentence(f"{numbers.plural(len(columns), 'column')}, {names},")
            yield screen.paint(Style.FAINT, f"{sentence}: flips and solved count what is left")
            yield screen.paint(Style.FAINT, absence.remedy(measure(f"{table.run}/{columns[-1].name}")))
