"""The items of SpreadsheetBench: rows of its data set, each with the workbooks of its cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.names import path_fault, shown
from skillgit.errors import DataError
from skillgit.plugin.rows import read_each, text_field
from skillgit_envs.spreadsheetbench.cases import digest, expected_cases, find_cases

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.plugin.rows import Row
    from skillgit_envs.spreadsheetbench.cases import WorkbookCase

_HINT = "skillgit envs spreadsheetbench lists the fields of an item"
TASK_TYPES = ("cell-level", "sheet-level", "default")


class WorkbookTasks:
    """Reads items, and keeps where their workbooks are.

    Args:
        folder: The folder that the paths of the data are relative to; None for those of the data files themselves.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.cases: dict[str, tuple[WorkbookCase, ...]] = {}
        """Item id to its cases."""

    def read(self, files: Sequence[Path]) -> list[Item]:
        """Return the items of data files.

        Raises:
            DataError: A row lacks a field, or its workbooks are not there.
        """
        return read_each(files, lambda row, path: [self._item(row, self._folder or path.parent)])

    def _item(self, row: Row, folder: Path) -> Item:
        identity = text_field(row.where, row.fields, "id") or row.name
        for name, value in (
            ("id", identity),
            *((name, text_field(row.where, row.fields, name)) for name in ("instruction", "answer_position")),
        ):
            if not value:
                raise DataError(f"{row.where} has no {name}", hint=_HINT)
        path = text_field(row.where, row.fields, "spreadsheet_path") or f"spreadsheet/{identity}"
        if fault := path_fault(path):
            raise DataError(
                f"{row.where} has the spreadsheet_path {shown(path)}, which cannot be used: {fault}",
                hint="set env.data_root to the folder that it is relative to",
            )
        cases = find_cases(row.where, folder / path)
        self.cases[identity] = tuple(cases)
        kind = text_field(row.where, row.fields, "instruction_type")
        content = {
            "instruction": text_field(row.where, row.fields, "instruction"),
            "instruction_type": kind,
            # Blanks at its ends may decide whether a script can read it.
            "answer_position": str(row.fields["answer_position"]),
            "answer_sheet": text_field(row.where, row.fields, "answer_sheet"),
            "cases": [
                {"number": case.number, "input": digest(case.question), "answer": digest(case.answer)} for case in cases
            ],
            "expected_cases": expected_cases(cases),
        }
        return Item(id=identity, content=content, task_type=_type(kind))


def _type(kind: str) -> str:
    return next((name for name in TASK_TYPES if kind.lower().startswith(name)), "default")
