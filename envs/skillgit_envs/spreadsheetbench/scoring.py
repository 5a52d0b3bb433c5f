"""How the workbooks that a program made are scored: cell by cell in the answer cells, each case for itself.

*official* is the benchmark's pipeline (SpreadsheetBench v0.1, ``evaluation/evaluation.py`` behind
``open_spreadsheet.py``): the formulas of both workbooks are calculated first, and a task has three cases, of which
missing ones fail. *skillopt* is what the reference does: formulas that have not been calculated hold nothing, and the
cases are those that are there. *lenient* is official, but reads what an answer position means, and goes by the cases
that are there. Where a position covers no cell, nothing passes under any rule.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TypeAlias

from skillgit.domain.evaluation import Scored
from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Sandbox
from skillgit.sandbox.libreoffice import recalculate
from skillgit_envs.spreadsheetbench.workbooks import (
    READINGS,
    Area,
    AreaContent,
    Contents,
    UnreadablePositionError,
    contents,
)

_SHOWN_CELLS = 3
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRule:
    name: str  # changes whenever a score can change
    reading: str
    recalculates: bool  # whether the formulas of both workbooks are calculated before cells are compared
    expects_all: bool  # whether cases that a task should have, and has not, fail


RULES: Mapping[str, ScoringRule] = {
    "official": ScoringRule(name="official/2", reading="official", recalculates=True, expects_all=True),
    "skillopt": ScoringRule(name="skillopt/1", reading="skillopt", recalculates=False, expects_all=False),
    "lenient": ScoringRule(name="lenient/2", reading="lenient", recalculates=True, expects_all=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookTask:
    position: str  # the answer cells, as the data name them
    answer_sheet: str
    answers: Mapping[int, bytes]  # number of a case to the workbook that is right
    case_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    fault: str  # what is wrong; empty if it passes
    doubt: str = ""  # which answer cells have no value that can be relied on; empty if all do


async def case_results(
    task: WorkbookTask, workbooks: Mapping[int, bytes], rule: ScoringRule, sandbox: Sandbox
) -> dict[int, CaseResult]:
    """Compare the ``workbooks`` that were made with the right ones; an EnvironmentFaultError if one of those is bad."""
    try:
        areas = READINGS[rule.reading](task.position, task.answer_sheet)
    except UnreadablePositionError as error:
        return dict.fromkeys(task.answers, CaseResult(fault=f"no workbook can pass: {error}"))
    answers, outputs = task.answers, workbooks
    if rule.recalculates:
        answers = await _recalculated(task.answers, sandbox, reference=True)
        outputs = await _recalculated(workbooks, sandbox, reference=False)
        for number in task.answers.keys() - answers.keys():
            problem = f"LibreOffice cannot read the answer of case {number}"
            raise EnvironmentFaultError(problem, hint="is it a whole xlsx file?")
    pairs = await _pairs(answers, outputs, areas, sandbox)
    results = {}
    for number, (right, output) in pairs.items():
        is_lost = number in workbooks and number not in outputs
        fault = "LibreOffice cannot read the workbook" if is_lost else _fault(right, output)
        # A pass by equal errors is reported too; formulas without a value would have to be looked for in every answer.
        asks = fault or rule.recalculates
        doubt = await _doubt(task.answers[number], right, areas, rule, sandbox) if asks else ""
        results[number] = CaseResult(fault=fault, doubt=doubt)
    return results


async def _recalculated(books: Mapping[int, bytes], sandbox: Sandbox, *, reference: bool) -> dict[int, bytes]:
    by_name = {str(number): book for number, book in books.items()}
    return {int(name): book for name, book in (await recalculate(by_name, sandbox, reference=reference)).items()}


async def _doubt(answer: bytes, right: Contents, areas: Sequence[Area], rule: ScoringRule, sandbox: Sandbox) -> str:
    """Return which right values are unknown: errors that the answer was not saved with, or formulas without a value."""
    # LibreOffice lacks newer functions, and errors that it makes of them are compared as any value.
    if rule.recalculates and not any(_is_error(cell) for part in right.parts for cell in (part.cells or {}).values()):
        return ""
    saved = (await contents({"saved": answer}, areas, sandbox, formulas=not rule.recalculates))["saved"]
    unknown = []
    for part, before in zip(right.parts, saved.parts, strict=not saved.error):
        cells, earlier = part.cells or {}, before.cells or {}
        if rule.recalculates:
            for name, cell in cells.items():
                if _is_error(cell) and earlier.get(name) != cell:
                    value = f"as {_told(earlier[name])}" if name in earlier else "without a value"
                    unknown.append(f"{part.sheet}!{name} is {cell[1]}, and was saved {value}")
        else:
            unknown += [f"{part.sheet}!{name}" for name in earlier if name not in cells]
    if not unknown:
        return ""
    reason = "LibreOffice cannot calculate" if rule.recalculates else "nothing has calculated"
    more = f", and {len(unknown) - _SHOWN_CELLS} more" if len(unknown) > _SHOWN_CELLS else ""
    return f"{reason} these cells of the answer: {', '.join(unknown[:_SHOWN_CELLS])}{more}"


def _is_error(cell: tuple[str, str]) -> bool:
    kind, text = cell
    return kind == "text" and text.startswith(("#", "Err:"))


async def _pairs(
    answers: Mapping[int, bytes], workbooks: Mapping[int, bytes], areas: Sequence[Area], sandbox: Sandbox
) -> dict[int, tuple[Contents, Contents | None]]:
    """Return what is in the answer cells of the right workbook of each case, and of the one that was made."""
    books, like = {}, {}
    for number, answer in answers.items():
        books[f"right {number}"] = answer
        if number in workbooks:
            books[f"made {number}"], like[f"made {number}"] = workbooks[number], f"right {number}"
    readings = await contents(books, areas, sandbox, like=like)
    if len(answers) > 1 and any(readings[f"right {number}"].error for number in answers):
        # One workbook may have brought down the job in which all were read.
        alone = [
            _pairs({n: answer}, {n: workbooks[n]} if n in workbooks else {}, areas, sandbox)
            for n, answer in answers.items()
        ]
        return {number: pair for pairs in await asyncio.gather(*alone) for number, pair in pairs.items()}
    for number, answer in answers.items():
        if readings[f"right {number}"].error:
            right = (await contents({"right": answer}, areas, sandbox))["right"]
            if right.error:
                problem = f"the answer of case {number} cannot be read: {right.error}"
                raise EnvironmentFaultError(problem, hint="is it a whole xlsx file?")
            readings[f"right {number}"] = right
    return {number: (readings[f"right {number}"], readings.get(f"made {number}")) for number in answers}


def _fault(right: Contents, output: Contents | None) -> str:
    if output is None:
        return "the program made no workbook"
    if output.error:
        return f"the workbook that was made cannot be read: {output.error}"
    return "; ".join(filter(None, (_difference(*pair) for pair in zip(right.parts, output.parts, strict=True))))


def _difference(right: AreaContent, output: AreaContent) -> str:
    """Return how the cells of an area differ; empty if they do not."""
    if right.cells is None:
        return f"no workbook can pass: the answer has no sheet '{right.sheet}'"
    if output.cells is None:
        return f"there is no sheet '{right.sheet}'"
    wrong = [
        f"{right.sheet}!{cell} is {_told(output.cells.get(cell))}, expected {_told(right.cells.get(cell))}"
        for cell in {**right.cells, **output.cells}
        if not same(_value(right.cells.get(cell)), _value(output.cells.get(cell)))
    ]
    more = f", and {len(wrong) - _SHOWN_CELLS} more cells are wrong" if len(wrong) > _SHOWN_CELLS else ""
    return ", ".join(wrong[:_SHOWN_CELLS]) + more


def _value(cell: tuple[str, str] | None) -> Value | None:
    return None if cell is None else read_value(*cell)


def _told(cell: tuple[str, str] | None) -> str:
    if cell is None:
        return "empty"
    kind, text = cell
    excerpt = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return json.dumps(excerpt, ensure_ascii=False) if kind == "text" else excerpt


def score(results: Mapping[int, CaseResult], count: int, rule: ScoringRule) -> Scored:
    """Return the share of the cases that pass as the soft score; the hard one is whether all do."""
    passes, whole = sum(not result.fault for result in results.values()), len(results)
    if rule.expects_all:
        whole = max(whole, count)
    return Scored(hard=float(passes == whole), soft=passes / whole)


def feedback(results: Mapping[int, CaseResult], count: int, rule: ScoringRule) -> str:
    passes = sum(not result.fault for result in results.values())
    lines = [f"{passes} of {len(results)} cases pass"]
    for number, result in results.items():
        lines += [f"case {number}: {text}" for text in (result.fault, result.doubt) if text]
    if rule.expects_all and count > len(results):
        lines.append(f"{count - len(results)} of the {count} cases of this task are missing, and count as failed")
    return "\n".join(lines)


Value: TypeAlias = str | float | datetime | time | timedelta  # what a cell holds; an empty cell is left out
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - cells have no time zone
_DAY_S = 86_400
_PLACES = 2


def read_value(kind: str, text: str) -> Value:
    """Return the value of a cell from its text and kind: ``number text datetime time microseconds``."""
    if kind == "number":
        return float(text)
    if kind == "datetime":
        return datetime.fromisoformat(text)
    if kind == "time":
        return time.fromisoformat(text)
    return timedelta(microseconds=int(text)) if kind == "microseconds" else text


def same(first: Value | None, second: Value | None) -> bool:
    """Say whether two cells hold the same value; None is a cell without one."""
    ours, theirs = normalised(first), normalised(second)
    return type(ours) is type(theirs) and ours == theirs


def normalised(value: Value | None) -> Value | None:
    if isinstance(value, datetime):
        since = value - _EPOCH
        return round(since.days + since.seconds / _DAY_S, 0)
    if isinstance(value, time):
        return str(value)[:-3]
    if isinstance(value, str):
        return _number(value) if value else None
    return round(float(value), _PLACES) if isinstance(value, int | float) else value


def _number(text: str) -> str | float:
    try:
        return round(float(text), _PLACES)
    except ValueError:
        return text
