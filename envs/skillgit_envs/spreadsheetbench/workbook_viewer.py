"""The program that looks into workbooks; it runs as a job, for a workbook may be what a model's program made.

It reads a request, JSON, from a file in the work folder, and writes the answer, JSON, to another. Of this project it
knows nothing.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openpyxl
from openpyxl.utils import get_column_letter

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

REQUEST, ANSWER = "request.json", "answer.json"


def cells(path: Path, areas: list[list[Any]], first: str | None, *, formulas: bool) -> dict[str, Any]:
    """Return what is in areas, each of sheet or None, left, top, right, bottom; None stands for the sheet ``first``.

    Formulas are reported as written, or as the values that they were saved with. The answer is ``error`` for what is no
    workbook; else ``first``, its first sheet, and ``areas``: of each its sheet, and the cells that hold something, or
    None where there is no such sheet.
    """
    try:
        book = openpyxl.load_workbook(path, data_only=not formulas)
    except Exception as error:  # noqa: BLE001 - a file that a model's program made can be wrong in any way
        return {"error": f"{type(error).__name__}: {error}"}
    parts = []
    for sheet, *corners in areas:
        name = sheet if sheet is not None else first if first is not None else book.sheetnames[0]
        there = name in book.sheetnames and hasattr(book[name], "iter_rows")
        parts.append([name, dict(_filled(book[name], *corners)) if there else None])
    return {"first": book.sheetnames[0], "areas": parts}


def _filled(
    sheet: Worksheet, first_column: int, first_row: int, last_column: int, last_row: int
) -> Iterator[tuple[str, list[str]]]:
    last_column, last_row = min(last_column, sheet.max_column), min(last_row, sheet.max_row)
    if last_column < first_column or last_row < first_row:
        return
    for row in sheet.iter_rows(min_row=first_row, max_row=last_row, min_col=first_column, max_col=last_column):
        for cell in row:
            if cell.value is not None and cell.value != "":
                yield f"{get_column_letter(cell.column)}{cell.row}", written(cell.value)


def written(value: object) -> list[str]:
    if isinstance(value, datetime):
        return ["datetime", value.replace(tzinfo=None).isoformat()]
    if isinstance(value, date):
        return ["datetime", datetime(value.year, value.month, value.day).isoformat()]  # noqa: DTZ001 - as cells are
    if isinstance(value, time):
        return ["time", value.isoformat()]
    if isinstance(value, timedelta):
        return ["microseconds", str(value // timedelta(microseconds=1))]
    if isinstance(value, bool | int | float):
        return ["number", repr(float(value))]
    # A formula over several cells is an object that holds its text.
    return ["text", str(getattr(value, "text", value))]


def shown(path: Path, limits: dict[str, int]) -> dict[str, Any]:
    """Return the first rows and columns of each sheet as texts, with formulas as they are written."""
    try:
        book = openpyxl.load_workbook(path)
    except Exception as error:  # noqa: BLE001 - a file that a model's program made can be wrong in any way
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "names": book.sheetnames,
        "sheets": [
            {"name": sheet.title, "size": sheet.dimensions, "rows": list(_rows(sheet, limits))}
            for sheet in book.worksheets[: limits["sheets"]]
        ],
    }


def _rows(sheet: Worksheet, limits: dict[str, int]) -> Iterator[list[str]]:
    last_row, last_column = min(sheet.max_row, limits["rows"]), min(sheet.max_column, limits["columns"])
    for row in sheet.iter_rows(min_row=1, max_row=last_row, max_col=last_column):
        yield [_cut(cell.value, limits["characters"]) for cell in row]


def _cut(value: object, characters: int) -> str:
    if value is None:
        return ""
    text = " ".join(str(getattr(value, "text", value)).split())
    return text if len(text) <= characters else f"{text[:characters]}..."


def main() -> None:
    warnings.simplefilter("ignore")
    request = json.loads(Path(REQUEST).read_text(encoding="utf-8"))
    answer: dict[str, Any] = {}
    for name, like in request["books"].items():
        if "limits" in request:
            answer[name] = shown(Path(name), request["limits"])
        else:
            first = answer[like].get("first") if like else None
            answer[name] = cells(Path(name), request["areas"], first, formulas=request["formulas"])
    Path(ANSWER).write_text(json.dumps(answer), encoding="utf-8", errors="replace")


if __name__ == "__main__":
    main()
