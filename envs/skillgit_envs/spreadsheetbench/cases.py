"""Owns the cases of a task, found by their names: pairs of workbooks, what a program gets and what it should make."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import DataError, EnvironmentFaultError
from skillgit.files import read_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NUMBERED = re.compile(r"(\d+)_.*_(input|answer|init|golden)\s*\.xlsx", re.IGNORECASE)
_ALONE = {"initial": "input", "input": "input", "golden": "answer", "answer": "answer"}
_PARTS = {"input": "input", "init": "input", "answer": "answer", "golden": "answer"}
OFFICIAL_CASES = 3
"""The cases that each task of the first release should have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookCase:
    """One case of a task."""

    number: int
    question: Path
    answer: Path


def find_cases(where: str, folder: Path) -> list[WorkbookCase]:
    """Return the cases in the folder of a task, by their numbers.

    The first release calls them ``1_<id>_input.xlsx`` and ``1_<id>_answer.xlsx``, the verified one ``1_<id>_init.xlsx``
    and ``1_<id>_golden.xlsx``, or ``initial.xlsx`` and ``golden.xlsx``. The id in a name may be wrong, and is not read.

    Raises:
        DataError: There is no pair, or a workbook is there twice.
    """
    workbooks: dict[tuple[int, str], Path] = {}
    for number, part, path in _named(folder):
        if (number, part) in workbooks:
            raise DataError(
                f"{where}: {folder} has two workbooks for the {part} of case {number}", hint="keep one of them"
            )
        workbooks[number, part] = path
    numbers = sorted(
        {number for number, part in workbooks if (number, "answer") in workbooks and (number, "input") in workbooks}
    )
    if not numbers:
        raise DataError(
            f"{where}: there is no pair of workbooks in {folder}",
            hint="set env.data_root to the folder that spreadsheet_path is relative to",
        )
    return [
        WorkbookCase(number=number, question=workbooks[number, "input"], answer=workbooks[number, "answer"])
        for number in numbers
    ]


def expected_cases(cases: list[WorkbookCase]) -> int:
    """Return how many cases the benchmark's own script looks for: the first release should have three of each task."""
    match = _NUMBERED.fullmatch(cases[0].question.name)
    return OFFICIAL_CASES if match and match[2].lower() == "input" else len(cases)


def book(path: Path) -> bytes:
    """Return a workbook that was there when the items were read.

    Raises:
        EnvironmentFaultError: It has gone since.
    """
    try:
        return read_plain(path, most=None, follow=True)
    except OSError as error:
        raise EnvironmentFaultError(f"{path} cannot be read: {error.strerror}", hint="check the folder") from error


def digest(path: Path) -> str:
    """Return the digest of a workbook's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _named(folder: Path) -> Iterator[tuple[int, str, Path]]:
    for path in sorted(folder.glob("*.xlsx")):
        match = _NUMBERED.fullmatch(path.name)
        if match:
            yield int(match[1]), _PARTS[match[2].lower()], path
        elif path.stem.lower() in _ALONE:
            yield 1, _ALONE[path.stem.lower()], path
