"""Which cells of a workbook an answer position names, in each way to read it, and what is in them.

Positions were written by people: ``C2:C6``, ``'Sheet 1'!A1:B9,'Sheet 2'!C3``, and also with stray quotes, blanks, small
letters, or without rows. A reading says what such a text means. *official* and *skillopt* follow two scripts to the
letter, so that some positions cannot be read by them; *lenient* reads what was meant. A workbook is opened in the
sandbox, for what a model's program made may harm who opens it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Limits, Sandbox
from skillgit_envs.shipped_environment import PromptWording

LAST_COLUMN, LAST_ROW = 16_384, 1_048_576  # the size of a sheet in the xlsx format
_ALPHABET = 26
_BLANKS = " \t\r\n\xa0"
_QUOTES = "'\"\u2018\u2019\u201c\u201d"
_OUTER = _BLANKS + _QUOTES
_CELLS = r"\$?[A-Za-z]{1,3}\$?\d{1,7}(?:\s*:\s*\$?[A-Za-z]{0,3}\$?\d{1,7})?|\$?[A-Za-z]{1,3}\s*:\s*\$?[A-Za-z]{1,3}"
_END = rf"[\s{_QUOTES}]*(?=,|\Z)"
_PARTS = tuple(
    re.compile(rf"[\s,]*{sheet}[\s{_QUOTES}]*(?P<cells>{_CELLS}){_END}", re.DOTALL)
    # A name in quotes may look like cells; one without may hold anything, so that the comma behind cells ends a part.
    for sheet in (r"(?P<sheet>'(?:[^']|'')+')\s*!", "(?P<sheet>(?!))?", r"(?P<sheet>.+?)\s*!")
)
_QUOTED = re.compile(r"'(?:[^']|'')+'")
_CORNER = re.compile(r"\$?([A-Za-z]*)\$?(\d*)")
_SINGLE = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9]\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A rectangle of cells; columns and rows count from 1, and the last ones belong to it."""

    sheet: str | None  # the sheet; None for the first one of the answer's workbook
    left: int
    top: int
    right: int
    bottom: int

    @property
    def name(self) -> str:
        """The rectangle as spreadsheets write it, without the sheet."""
        first, last = f"{column_name(self.left)}{self.top}", f"{column_name(self.right)}{self.bottom}"
        return first if first == last else f"{first}:{last}"


class UnreadablePositionError(ValueError):
    """A reading cannot say which cells are meant."""


def official(position: str, answer_sheet: str) -> list[Area]:
    """Return the areas as the benchmark's own script finds them; it does not look at ``answer_sheet``.

    It cuts at every comma and drops apostrophes at the ends, nothing else. Column letters are read as numbers by their
    codes, so that small letters lead far to the right. An UnreadablePositionError: it fails, or compares no cell.
    """
    del answer_sheet
    return [_literal(part) for part in position.split(",")]


def skillopt(position: str, answer_sheet: str) -> list[Area]:
    """Return the areas as the reference finds them, or raise as :func:`official` does.

    A position without a sheet gets ``answer_sheet`` put before it unchanged, so that it holds for the first part
    only. Blanks and quotes at the ends of a part are dropped, and all dollar signs.
    """
    whole = f"{answer_sheet}!{position}" if answer_sheet and "!" not in position else position
    areas = []
    for part in whole.split(","):
        sheet, bang, cells = part.strip().replace("$", "").partition("!")
        if not bang:
            sheet, cells = "", sheet
        name = sheet.strip().strip("'\"") if bang else None
        areas.append(_area(name, cells.strip().strip("'\"").strip()))
    return areas


def lenient(position: str, answer_sheet: str) -> list[Area]:
    """Return the areas that were meant; ``answer_sheet`` is not needed for that.

    Any blanks, quotes, full-width signs and small letters are understood, as are names of sheets that hold commas or
    apostrophes, whole columns, and ranges whose last column is left out because it is the first.
    """
    del answer_sheet
    text = position.replace("\uff1a", ":").replace("\uff0c", ",").replace("\uff01", "!").strip(_BLANKS + ",")
    areas, offset = [], 0
    while offset < len(text):
        match = next(filter(None, (pattern.match(text, offset) for pattern in _PARTS)), None)
        if match is None:
            raise UnreadablePositionError(f"'{position}' is not an answer position")
        areas.append(_meant(match["sheet"], match["cells"]))
        offset = match.end()
    if not areas:
        raise UnreadablePositionError("the answer position is empty")
    return areas


READINGS: Mapping[str, Callable[[str, str], list[Area]]] = {
    reading.__name__: reading for reading in (official, skillopt, lenient)
}


def answer_cells(position: str) -> list[Area]:
    """Return the areas that were meant; none if that is unclear.

    >>> answer_cells("'Sheet1'!B2:C4")
    [Area(sheet='Sheet1', left=2, top=2, right=3, bottom=4)]
    """
    try:
        return lenient(position, "")
    except UnreadablePositionError:
        return []


def column_name(number: int) -> str:
    """Return the letters of a column.

    >>> column_name(28)
    'AB'
    """
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, _ALPHABET)
        letters = chr(ord("A") + rest) + letters
    return letters


def column_number(letters: str) -> int:
    """Return the number of a column by the codes of its letters, which is right for capitals only."""
    number = 0
    for letter in letters:
        number = number * _ALPHABET + ord(letter) - ord("A") + 1
    return number


def _literal(part: str) -> Area:
    pieces = part.split("!")
    if len(pieces) > 2:  # noqa: PLR2004 - a sheet and its cells
        raise UnreadablePositionError(f"'{part}' has more than one '!'")
    return _area(pieces[0].strip("'") if len(pieces) > 1 else None, pieces[-1].strip("'"))


def _area(sheet: str | None, cells: str) -> Area:
    corners = cells.split(":")
    single = _SINGLE.fullmatch(cells)
    if single:
        column, row = column_number(single[1].upper()), int(single[2])
        return _checked(cells, Area(sheet=sheet, left=column, top=row, right=column, bottom=row))
    if len(corners) != 2:  # noqa: PLR2004 - two opposite cells
        raise UnreadablePositionError(f"'{cells}' is not a range of cells")
    (first_column, first_row), (last_column, last_row) = (_corner(corner) for corner in corners)
    return _checked(cells, Area(sheet=sheet, left=first_column, top=first_row, right=last_column, bottom=last_row))


def _corner(text: str) -> tuple[int, int]:
    letters = "".join(sign for sign in text if not sign.isdigit())
    digits = "".join(sign for sign in text if sign.isdigit())
    if not digits:
        raise UnreadablePositionError(f"'{text}' names no row")
    return column_number(letters), int(digits)


def _checked(cells: str, area: Area) -> Area:
    if not (1 <= area.left <= area.right <= LAST_COLUMN and 1 <= area.top <= area.bottom <= LAST_ROW):
        raise UnreadablePositionError(f"'{cells}' covers no cell")
    return area


def _meant(sheet: str | None, cells: str) -> Area:
    (first_column, first_row), (last_column, last_row) = _corners(cells)
    columns, rows = sorted((first_column, last_column or first_column)), sorted((first_row or 1, last_row or LAST_ROW))
    area = Area(sheet=_sheet(sheet), left=columns[0], top=rows[0], right=columns[1], bottom=rows[1])
    return _checked(cells, area)


def _corners(cells: str) -> Iterator[tuple[int, int]]:
    """Yield column and row of two corners, 0 for what is left out; a single cell is both of them."""
    corners = [corner.strip() for corner in cells.split(":")]
    for corner in (corners[0], corners[-1]):
        match = _CORNER.fullmatch(corner)
        letters, digits = match.groups() if match else ("", "")
        yield column_number(letters.upper()), int(digits or 0)


def _sheet(text: str | None) -> str | None:
    if text is None:
        return None
    if _QUOTED.fullmatch(text):
        return text[1:-1].replace("''", "'")
    # Some positions name the sheet twice.
    return text.rpartition("!")[2].strip(_OUTER)


_PROGRAM = Path(__file__).with_name("workbook_viewer.py").read_text(encoding="utf-8")
REQUEST, ANSWER = "request.json", "answer.json"
"""As the program has them, which is not imported: only jobs load what opens workbooks."""
LIMITS = Limits(wall_s=600.0, cpu_s=60)
"""Reading takes a processor and nothing else: where it takes long without one, the machine is at fault."""
ROWS = {PromptWording.OWN: 6, PromptWording.REFERENCE: 5}  # how many rows of each sheet a model sees
SHOWN = {"sheets": 8, "rows": ROWS[PromptWording.OWN], "columns": 20, "characters": 40}
"""How much of a workbook a model sees: sheets, rows and columns of each, and characters of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaContent:
    sheet: str
    cells: Mapping[str, tuple[str, str]] | None  # cell to kind and text, empty ones left out; None without such a sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    parts: tuple[AreaContent, ...] = ()  # one for each area; none if the workbook cannot be read
    error: str = ""


async def contents(
    books: Mapping[str, bytes],
    areas: Sequence[Area],
    sandbox: Sandbox,
    *,
    like: Mapping[str, str] | None = None,
    formulas: bool = False,
) -> dict[str, Contents]:
    """Return what is in the same areas of several workbooks, formulas as they are written or as their saved values."""
    # ``like`` names for a workbook one before it, whose first sheet an area without a sheet means.
    corners = [[area.sheet, area.left, area.top, area.right, area.bottom] for area in areas]
    answer = await _asked(books, like or {}, {"areas": corners, "formulas": formulas}, sandbox)
    return {name: _contents(answer[name]) for name in books}


async def preview(book: bytes, sandbox: Sandbox, rows: int = ROWS[PromptWording.OWN]) -> str:
    """Return the beginning of each sheet of a workbook as lines of text."""
    answer = (await _asked({"book": book}, {}, {"limits": SHOWN | {"rows": rows}}, sandbox))["book"]
    if "error" in answer:
        problem = f"the workbook of a task cannot be read: {answer['error']}"
        raise EnvironmentFaultError(problem, hint="is it a whole file?")
    hidden = answer["names"][len(answer["sheets"]) :]
    more = [f"[more sheets: {', '.join(hidden)}]"] if hidden else []
    return "\n\n".join([*(_sheet_lines(sheet) for sheet in answer["sheets"]), *more])


def _sheet_lines(sheet: Mapping[str, Any]) -> str:
    head = f"Sheet {json.dumps(sheet['name'], ensure_ascii=False)}, cells {sheet['size']}"
    return "\n".join([head, *(f"{number}: {' | '.join(row)}" for number, row in enumerate(sheet["rows"], start=1))])


def _contents(answer: Mapping[str, Any]) -> Contents:
    if "error" in answer:
        return Contents(error=answer["error"])
    parts = []
    for sheet, cells in answer["areas"]:
        pairs = None if cells is None else {name: (kind, text) for name, (kind, text) in cells.items()}
        parts.append(AreaContent(sheet=sheet, cells=pairs))
    return Contents(parts=tuple(parts))


async def _asked(
    books: Mapping[str, bytes], like: Mapping[str, str], request: Mapping[str, object], sandbox: Sandbox
) -> Mapping[str, Any]:
    """Carry out a request about workbooks; where that takes too much or fails, all of them are at fault."""
    files = {name: f"{number}.xlsx" for number, name in enumerate(books)}
    counterparts = {file: files[like[name]] if name in like else None for name, file in files.items()}
    workbooks = {file: books[name] for name, file in files.items()}
    body = json.dumps({**request, "books": counterparts}).encode()
    job = sandbox.python_job(_PROGRAM, files={**workbooks, REQUEST: body}, limits=LIMITS, collect=(ANSWER,))
    result = await sandbox.run(job)
    if result.ended == "timeout":
        raise EnvironmentFaultError("reading workbooks took too long", hint="is the machine overloaded?")
    if not result.ok:
        last = (result.stderr.strip().splitlines() or [""])[-1]
        error = f"reading it failed: {last}" if result.ended == "exit" else f"reading it broke a limit: {result.ended}"
        return {name: {"error": error} for name in books}
    answer = json.loads(result.files[ANSWER])
    return {name: answer[file] for name, file in files.items()}
