"""Crosstabs: items by versions as a map with one sign for each outcome, checks by versions, versions by models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from skillgit.app.workspace.workspace import Absence, measure
from skillgit.domain.score import known
from skillgit.index.rows import LogRow
from skillgit.view import numbers
from skillgit.view.items import outcome_mark
from skillgit.view.json_values import named_values, picked
from skillgit.view.surface import UNICODE, Screen, Style
from skillgit.view.table import Cell, Column, Table, pivot
from skillgit.view.text import fit, one_line, pad, width

if TYPE_CHECKING:
    from skillgit.app.history.items import CheckLine, CheckTable, ItemColumn, ItemTable
    from skillgit.app.history.matrix import Difference, Matrix, MatrixRow
    from skillgit.app.recorded.outcomes import ItemLine, ItemOutcome


_TITLE_LEAST = 12
_CHECK_WIDTH, _SCORE_WIDTH = 48, 8
_MARKS: Final[dict[Difference, tuple[str, str]]] = {
    "items": ("*", "measured on other items than the run's"),
    "environment": ("!", "measured in another version of the environment"),
    "judge": ("?", "scored by another judge than the run's"),
    "server": ("^", "answered by another server than the run's"),
    "configuration": ("~", "measured with other settings than the run's"),
}
"""What keeps a score from being compared with those of the run: its mark, and what it says."""


def _name_style(row: LogRow | ItemColumn) -> Style:
    return Style.BEST if row.is_best else Style.REJECTED if row.version is None else Style.STRONG


CHECK_SCORES: Final[Table[Mapping[str, object]]] = Table(
    "checks/1", "checks", "check version items score", head="run versions"
)


def check_records(table: CheckTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        for version, score in zip(table.versions, row.scores, strict=True):
            if score is not None:
                yield {"check": row.check, "version": version, "items": row.items, "score": score}


def check_lines(checks: CheckTable, screen: Screen) -> Iterator[str]:
    """Yield the mean score of each check under the first version and as many of the newest ones as fit."""
    room = (screen.width - _CHECK_WIDTH) // _SCORE_WIDTH if screen.width else len(checks.versions)
    first, *newer = range(len(checks.versions))
    indices = [first, *newer[-max(room - 1, 1) :]]

    def score(row: CheckLine, at: int) -> str:
        return numbers.score(row.scores[indices[at]])

    columns: tuple[Column[CheckLine], ...] = (
        Column("check", head="check", show=lambda row: fit(one_line(row.check), _CHECK_WIDTH)),
        Column("items", head="items", right=True),
        *pivot([checks.versions[index] for index in indices], score),
    )
    yield from Table(columns=columns).lines(checks.rows, screen)


MODEL_SCORES: Final[Table[Mapping[str, object]]] = Table(
    "matrix/1",
    "scores",
    "version commit model score hard soft n scored measured differs source time others",
    head="run split metric models",
)


def matrix_records(matrix: Matrix) -> Iterator[Mapping[str, object]]:
    for entry in matrix.rows:
        version = {"version": entry.row.label, "commit": entry.row.commit}
        yield from ({**version, **named_values(cell)} for cell in entry.cells)


def matrix_lines(matrix: Matrix, screen: Screen) -> Iterator[str]:
    """Yield a line for each version, with its score and the number of items under each model."""
    cells = [cell for row in matrix.rows for cell in row.cells]
    yield screen.dotted((f"run {matrix.run}", f"{matrix.split} split", f"{matrix.metric} score"))
    reasons = {reason for cell in cells for reason in cell.differs}
    for reason, (mark, meaning) in _MARKS.items():
        if reason in reasons:
            yield screen.paint(Style.REVERTED, f"{mark} {meaning}, so that the numbers do not compare")
    yield ""

    def score(entry: MatrixRow, at: int) -> Cell:
        cell = next((cell for cell in entry.cells if cell.model == matrix.models[at // 2]), None)
        if cell is None:
            return Cell(UNICODE.dot, Style.FAINT) if at % 2 == 0 else Cell("")
        if at % 2:
            return Cell(str(cell.n) if cell.scored == cell.n else f"{cell.scored}/{cell.n}", Style.FAINT)
        text = numbers.score(cell.score)
        if not cell.measured:
            return Cell(f"({text})", Style.FAINT)
        return Cell(screen.paint(Style.REVERTED, "".join(_MARKS[reason][0] for reason in cell.differs)) + text)

    columns: tuple[Column[MatrixRow], ...] = (
        Column("", head="", show=lambda entry: Cell(entry.row.label, _name_style(entry.row))),
        *pivot([part for model in matrix.models for part in (model, "n")], score),
    )
    lines = list(Table(columns=columns).lines(matrix.rows, screen))
    widest = max(map(width, lines), default=0)
    room = screen.width - widest - 3 if screen.width else 60
    for line, title in zip(lines, ("", *(entry.row.title for entry in matrix.rows)), strict=bool(lines)):
        excerpt = fit(title, room, screen.glyphs.ellipsis) if room >= _TITLE_LEAST else ""
        yield f"{pad(line, widest)}   {screen.paint(Style.FAINT, excerpt)}".rstrip()
    notes = (
        "" if all(cell.measured for cell in cells) else "( ) inherited, not measured",
        "where a version was measured more than once under a model, the newest score is shown; --json counts them"
        if any(cell.others for cell in cells)
        else "",
    )
    if any(notes):
        yield from ("", *(screen.paint(Style.FAINT, note) for note in notes if note))


ITEMS: Final[Table[Mapping[str, object]]] = Table(
    "items/1", "items", "item task_type first flips solved measured share doubts outcomes"
)
_SIDES = "first  flips  solved"
_UNKNOWN = "?"
_QUESTION_LEAST = 24  # columns
_FULL = 5  # columns of a score with all its digits


def records(table: ItemTable, *, cells: bool) -> Iterator[dict[str, object]]:
    """Yield the items for machine formats with their scores by version; ``cells`` writes these as ``v7=1.0``."""
    own = "item task_type first is_first flips solved measured unknown share doubts"
    for line in table.rows:
        pairs = zip(table.columns, line.cells, strict=True)
        scores = {column.name: cell.value for column, cell in pairs if cell is not None}
        texts = [f"{name}={'failed' if value is None else value}" for name, value in scores.items()]
        yield {**picked(line, own), "outcomes": texts if cells else scores}


def lines(
    table: ItemTable,
    screen: Screen,
    *,
    every: bool = False,
    questions: Callable[[Sequence[ItemLine]], Sequence[str]] | None = None,
) -> Iterator[str]:
    """Yield the table; on a terminal only so many versions as fit, unless ``every`` one is wanted.

    In the room that is left, ``questions`` says what the items ask.
    """

    def side(line: ItemLine) -> str:
        if line.is_first:
            first = line.first or screen.paint(Style.REJECTED, "never")
        else:  # an earlier version may solve it, too
            first = f"{screen.glyphs.at_most}{line.first}" if line.first else _UNKNOWN
        noisy = screen.paint(Style.REVERTED, f"  {', '.join(line.doubts)}") if line.doubts else ""
        return f"{pad(first, 5)}  {line.flips:>5}  {f'{line.solved}/{line.measured}':>6}{noisy}"

    names = [fit(line.item, 24) for line in table.rows]
    sides = [side(line) for line in table.rows]
    name_width = max(map(width, (*names, "score")))
    type_width = max((width(line.task_type) for line in table.rows), default=0)
    front_width = name_width + type_width + 4
    side_width = max(map(width, (*sides, _SIDES)))
    room = screen.width - front_width - side_width - 1 if screen.width and not every else 0
    # a cell takes the columns of a full score if all versions fit so, else those of a short one
    bounds = any(column.bound is not None for column in table.columns)
    label_width = max(width(column.name) for column in table.columns)
    full_width = max(_FULL, *(width(_score(column, screen, short=False)) for column in table.columns))
    cell_width = max(label_width, full_width)
    if screen.width and not every and len(table.columns) * (cell_width + 1) > max(1, room):
        cell_width = max(label_width, 4 if bounds else 3)
    fitting = max(2, max(1, room) // (cell_width + 1)) if screen.width and not every else 0
    columns = [(index, table.columns[index]) for index in chosen(table.columns, fitting)]

    def row(cells: Sequence[str]) -> str:
        return " ".join(pad(cell, cell_width, right=True) for cell in cells)

    spare = (
        screen.width - front_width - len(columns) * (cell_width + 1) - side_width - 3
        if screen.width and not every
        else 0
    )
    texts = questions(table.rows) if questions and spare >= _QUESTION_LEAST else [""] * len(table.rows)
    heads = row([screen.paint(_name_style(column), column.name) for _, column in columns])
    yield f"{' ' * front_width}{heads}  {screen.paint(Style.FAINT, _SIDES)}"
    for line, label, after, question in zip(table.rows, names, sides, texts, strict=True):
        signs = row([sign(line.cells[index], screen, column.absence) for index, column in columns])
        kind = screen.paint(Style.FAINT, pad(line.task_type, type_width))
        text = screen.paint(Style.FAINT, fit(screen.encodable(question), spare, screen.glyphs.ellipsis))
        yield f"{pad(label, name_width)}  {kind}  {signs}  {pad(after, side_width)}  {text}".rstrip()
    scores = row([_score(column, screen, short=cell_width < full_width) for _, column in columns])
    yield f"{screen.paint(Style.STRONG, pad('score', name_width))}  {' ' * type_width}  {scores}"
    yield ""
    yield from _legend(table, len(columns), screen)


def chosen(columns: Sequence[ItemColumn], room: int) -> list[int]:
    """Return the indices of at most ``room`` columns: the ends, the best, and others at even distances; 0 is all."""
    count = len(columns)
    if not room or count <= room:
        return list(range(count))
    indices = {0, count - 1}
    if room > len(indices):
        indices |= set([index for index, column in enumerate(columns) if column.is_best][-1:])
    free = room - len(indices)
    for number in range(free):
        even = round((number + 1) * (count - 1) / (free + 1))
        near = (index for distance in range(count) for index in (even - distance, even + distance))
        indices.add(next(index for index in near if 0 <= index < count and index not in indices))
    return sorted(indices)


def sign(cell: ItemOutcome | None, screen: Screen, absence: Absence | None = None) -> str:
    """Return an outcome as a sign: solved or not, tenths, ``!`` failed, in brackets if inherited, ``?`` unknown."""
    _, text, _, style = outcome_mark(cell, absence)
    text = screen.encodable(text)
    if cell is None or cell.value is None:
        return screen.paint(style, text)
    if 0.0 < cell.value < 1.0:
        text, style = str(max(1, min(9, int(cell.value * 10)))), style if cell.solved else Style.SKIPPED
    return screen.paint(style, text) if cell.measured else screen.paint(Style.FAINT, f"({text})")


def _score(column: ItemColumn, screen: Screen, *, short: bool) -> str:
    """Return a score, in two digits where it has to be short; faint or in brackets if it is not of this text."""
    score = known(column.score, column.bound)
    if score is None:
        return ""
    text = f"{score.value:.2f}".removeprefix("0") if short else numbers.score(score.value)
    if score.at_most:
        return f"{screen.glyphs.at_most[:1]}{text}" if short else f"{screen.glyphs.at_most}{text}"
    if column.measured:
        return screen.paint(Style.STRONG, text)
    return screen.paint(Style.FAINT, text if short else f"({text})")


def _legend(table: ItemTable, count: int, screen: Screen) -> Iterator[str]:
    """Yield what the signs mean, how much is shown, and what is not known for want of evidence with what helps."""
    cells = [cell for line in table.rows for cell in line.cells]
    absences = [column.absence for column in table.columns] * len(table.rows)
    blanks = {absence is not None for cell, absence in zip(cells, absences, strict=True) if cell is None}
    outcomes = [cell for cell in cells if cell is not None]
    meanings = (
        (screen.glyphs.passed, "solved", True),
        (screen.glyphs.rejected, "not solved", True),
        ("1-9", f"tenths of the {table.metric} score", any(cell.value and cell.value < 1.0 for cell in outcomes)),
        (screen.glyphs.dot, "not measured", False in blanks),
        (_UNKNOWN, "not known", True in blanks),
        ("!", "failed to evaluate", any(cell.value is None for cell in outcomes)),
        ("( )", "inherited, not measured", any(not cell.measured for cell in outcomes)),
    )
    yield screen.paint(Style.FAINT, "   ".join(f"{mark} {meaning}" for mark, meaning, is_used in meanings if is_used))
    many = len(table.columns)
    part = f"{len(table.rows)} of " if len(table.rows) < table.items else ""
    noun = "columns" if any(column.version is None for column in table.columns) else "versions"
    remark = f"; {count} of {many} {noun} fit, --all-versions shows every one" if count < many else ""
    scope = f"{part}{numbers.plural(table.items, 'item')} of the selection split, run {table.run}{remark}"
    yield screen.paint(Style.FAINT, scope)
    for absence in Absence:
        columns = [column for column in table.columns if column.absence is absence and column.lacking]
        if columns:
            span = f"{columns[0].name} … {columns[-1].name}" if len(columns) > 1 else columns[0].name
            sentence = absence.sentence(f"{numbers.plural(len(columns), 'column')}, {span},")
            yield screen.paint(Style.FAINT, f"{sentence}: flips and solved count what is left")
            yield screen.paint(Style.FAINT, absence.remedy(measure(f"{table.run}/{columns[-1].name}")))
