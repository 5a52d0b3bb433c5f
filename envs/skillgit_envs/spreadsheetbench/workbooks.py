"""Owns reading workbooks: each is opened in the sandbox, for what a model's program made may harm who opens it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Limits
from skillgit_envs.prompt_files import PromptWording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.sandbox import Sandbox
    from skillgit_envs.spreadsheetbench.answer_positions import Area

REQUEST, ANSWER = "request.json", "answer.json"
"""As the program has them, which is not imported: only jobs load what opens workbooks."""
LIMITS = Limits(wall_s=600.0, cpu_s=60)
"""Reading takes a processor and nothing else: where it takes long without one, the machine is at fault."""
ROWS = {PromptWording.OWN: 6, PromptWording.REFERENCE: 5}
"""How many rows of each sheet a model sees."""
SHOWN = {"sheets": 8, "rows": ROWS[PromptWording.OWN], "columns": 20, "characters": 40}
"""How much of a workbook a model sees: sheets, rows and columns of each, and characters of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaContent:
    """What is in one area.

    Attributes:
        cells: Cell to kind and text of its value, empty cells left out; None if there is no such sheet.
    """

    sheet: str
    cells: Mapping[str, tuple[str, str]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in the areas of a workbook.

    Attributes:
        parts: One for each area; none if the workbook cannot be read.
    """

    parts: tuple[AreaContent, ...] = ()
    error: str = ""


async def contents(
    books: Mapping[str, bytes],
    areas: Sequence[Area],
    sandbox: Sandbox,
    *,
    like: Mapping[str, str] | None = None,
    formulas: bool = False,
) -> dict[str, Contents]:
    """Return what is in the same areas of several workbooks.

    Args:
        like: Name of a workbook to one before it, whose first sheet an area without a sheet means.
        formulas: Whether formulas are reported as they are written, instead of the values that they were saved with.
    """
    corners = [[area.sheet, area.left, area.top, area.right, area.bottom] for area in areas]
    answer = await _asked(books, like or {}, {"areas": corners, "formulas": formulas}, sandbox)
    return {name: _contents(answer[name]) for name in books}


async def preview(book: bytes, sandbox: Sandbox, rows: int = ROWS[PromptWording.OWN]) -> str:
    """Return the beginning of each sheet of a workbook as lines of text."""
    answer = (await _asked({"book": book}, {}, {"limits": SHOWN | {"rows": rows}}, sandbox))["book"]
    if "error" in answer:
        raise EnvironmentFaultError(
            f"the workbook of a task cannot be read: {answer['error']}", hint="is it a whole file?"
        )
    hidden = answer["names"][len(answer["sheets"]) :]
    more = [f"[more sheets: {', '.join(hidden)}]"] if hidden else []
    return "\n\n".join([*(_sheet(sheet) for sheet in answer["sheets"]), *more])


def _sheet(sheet: Mapping[str, Any]) -> str:
    head = f"Sheet {json.dumps(sheet['name'], ensure_ascii=False)}, cells {sheet['size']}"
    return "\n".join([head, *(f"{number}: {' | '.join(row)}" for number, row in enumerate(sheet["rows"], start=1))])


def _contents(answer: Mapping[str, Any]) -> Contents:
    if "error" in answer:
        return Contents(error=answer["error"])
    parts = (
        AreaContent(
            sheet=sheet, cells=None if cells is None else {name: (kind, text) for name, (kind, text) in cells.items()}
        )
        for sheet, cells in answer["areas"]
    )
    return Contents(parts=tuple(parts))


async def _asked(
    books: Mapping[str, bytes], like: Mapping[str, str], request: Mapping[str, object], sandbox: Sandbox
) -> Mapping[str, Any]:
    """Carry out a request about workbooks; where that takes too much or fails, all of them are at fault."""
    files = {name: f"{number}.xlsx" for number, name in enumerate(books)}
    counterparts = {file: files[like[name]] if name in like else None for name, file in files.items()}
    workbooks = {file: books[name] for name, file in files.items()}
    body = json.dumps({**request, "books": counterparts}).encode()
    job = sandbox.python_job(_program(), files={**workbooks, REQUEST: body}, limits=LIMITS, collect=(ANSWER,))
    result = await sandbox.run(job)
    if result.ended == "timeout":
        raise EnvironmentFaultError("reading workbooks took too long", hint="is the machine overloaded?")
    if not result.ok:
        last = (result.stderr.strip().splitlines() or [""])[-1]
        error = f"reading it failed: {last}" if result.ended == "exit" else f"reading it broke a limit: {result.ended}"
        return {name: {"error": error} for name in books}
    answer = json.loads(result.files[ANSWER])
    return {name: answer[file] for name, file in files.items()}


@cache
def _program() -> str:
    return Path(__file__).with_name("workbook_viewer.py").read_text(encoding="utf-8")
