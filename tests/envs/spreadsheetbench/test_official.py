"""Real answers as outputs, by our scorer and by the benchmark's rules, which are written down here once more."""

from __future__ import annotations

import asyncio
import io
from datetime import datetime, time
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.sandbox import Sandbox
from skillgit.sandbox.libreoffice import office_program, recalculate
from skillgit_envs.shipped_environment import read_again
from skillgit_envs.spreadsheetbench import SpreadsheetBench
from skillgit_envs.spreadsheetbench.scoring import RULES, WorkbookTask, case_results

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

openpyxl = pytest.importorskip("openpyxl")


def named_cells(cells: str) -> Iterator[str]:
    """Yield the cells of a range; one without a colon is a cell."""
    if ":" not in cells:
        yield cells
        return
    corners = [(end.rstrip("0123456789"), "".join(filter(str.isdigit, end))) for end in cells.split(":")]
    (left, top), (right, bottom) = ((openpyxl.utils.column_index_from_string(c), int(r)) for c, r in corners)
    for column in range(left, right + 1):
        for row in range(top, bottom + 1):
            yield f"{openpyxl.utils.get_column_letter(column)}{row}"


def compared(value: object) -> object:
    if isinstance(value, str):
        try:
            return round(float(value), 2)
        except ValueError:
            return value or None
    if isinstance(value, int | float):
        return round(float(value), 2)
    if isinstance(value, datetime):
        days = value - datetime(1899, 12, 30)  # noqa: DTZ001 - cells have no time zone
        return round(days.days + days.seconds / 86400, 0)
    return str(value)[:-3] if isinstance(value, time) else value


def passes(right: bytes, made: bytes, position: str) -> bool:
    """Say whether two workbooks are the same in the cells of ``position``, whatever cannot be read being wrong."""
    one, other = (openpyxl.load_workbook(io.BytesIO(content), data_only=True) for content in (right, made))
    try:
        for part in position.split(","):
            *sheets, cells = part.split("!")
            (name,) = sheets or [one.sheetnames[0]]
            name = name.strip("'")
            for cell in named_cells(cells.strip("'")):
                pair = [compared(workbook[name][cell].value) for workbook in (one, other)]
                if type(pair[0]) is not type(pair[1]) or pair[0] != pair[1]:
                    return False
    except (KeyError, ValueError, AttributeError):
        return False
    return True


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::UserWarning")  # of openpyxl, about extensions that it does not read
def test_answers_pass_where_they_pass_officially(real: Path):
    try:
        box, _ = Sandbox(), office_program()
    except (SandboxError, EnvironmentFaultError) as error:
        pytest.skip(error.message)
    tasks = SpreadsheetBench({"data_path": "dataset.json"}, real)
    items = [item for item in tasks._read([real / "dataset.json"]) if item.id != "283-32"]
    position = {item.id: str(item.content["answer_position"]) for item in items}
    answers = {item.id: {case.number: read_again(case.answer) for case in tasks.cases[item.id]} for item in items}

    async def scored(name: str, books: dict[int, bytes]) -> list[bool]:
        task = WorkbookTask(position=position[name], answer_sheet="", answers=books, case_count=len(books))
        outcome = await case_results(task, books, RULES["official"], box)
        return [not outcome[number].fault for number in books]

    async def officially(name: str, books: dict[int, bytes]) -> list[bool]:
        ready = await recalculate({str(number): content for number, content in books.items()}, box)
        return [passes(ready[str(number)], ready[str(number)], position[name]) for number in books]

    async def by_item(judge: Callable[[str, dict[int, bytes]], Awaitable[list[bool]]]) -> dict[str, list[bool]]:
        # Together, so that LibreOffice is started a few times and not for each of them.
        return dict(zip(answers, await asyncio.gather(*(judge(*entry) for entry in answers.items())), strict=True))

    ours = asyncio.run(by_item(scored))
    assert ours == asyncio.run(by_item(officially))
    formulas = [name for name, books in answers.items() if has_formulas(next(iter(books.values())), position[name])]
    whole = [name for name in formulas if all(ours[name])]
    assert (len(items), len(formulas), len(whole)) == (40, 25, 24)


def has_formulas(content: bytes, position: str) -> bool:
    workbook = openpyxl.load_workbook(io.BytesIO(content))
    for part in position.split(","):
        *sheets, cells = part.split("!")
        name = sheets[0].strip("'") if sheets else workbook.sheetnames[0]
        try:
            values = [workbook[name][cell].value for cell in named_cells(cells.strip("'"))]
        except (KeyError, ValueError, AttributeError):
            continue
        if any(hasattr(value, "text") or str(value).startswith("=") for value in values):
            return True
    return False
