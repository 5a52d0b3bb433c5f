"""SpreadsheetBench: write a program that changes a workbook as its user asks."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.domain.untrusted.file_names import path_fault, shown
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, text_field
from skillgit.plugin.environment import Judge, Target
from skillgit.plugin.plugin_identity import install_command
from skillgit.sandbox.libreoffice import office_program
from skillgit_envs.shipped_environment import PackagedEnvironment, PromptWording, read_again
from skillgit_envs.spreadsheetbench.rollout import CHECK, FAILED, NO_PROGRAM, TASK, Work, roll_out
from skillgit_envs.spreadsheetbench.scoring import RULES, WorkbookTask, case_results, feedback, score
from skillgit_envs.spreadsheetbench.workbooks import ROWS, SHOWN, answer_cells

_NUMBERED = re.compile(r"(\d+)_.*_(input|answer|init|golden)\s*\.xlsx", re.IGNORECASE)
_ALONE = {"initial": "input", "input": "input", "golden": "answer", "answer": "answer"}
_PARTS = {"input": "input", "init": "input", "answer": "answer", "golden": "answer"}
OFFICIAL_CASES = 3  # the cases that each task of the first release should have


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookCase:
    number: int
    question: Path
    answer: Path


def find_cases(where: str, folder: Path) -> list[WorkbookCase]:
    """Return the cases in the folder of a task, by their numbers.

    The first release calls them ``1_<id>_input.xlsx`` and ``1_<id>_answer.xlsx``, the verified one ``1_<id>_init.xlsx``
    and ``1_<id>_golden.xlsx``, or ``initial.xlsx`` and ``golden.xlsx``. The id in a name may be wrong, and is not read.
    """
    workbooks: dict[tuple[int, str], Path] = {}
    for path in sorted(folder.glob("*.xlsx")):
        match, stem = _NUMBERED.fullmatch(path.name), path.stem.lower()
        number, part = (int(match[1]), _PARTS[match[2].lower()]) if match else (1, _ALONE.get(stem, ""))
        if not part:
            continue
        if (number, part) in workbooks:
            problem = f"{where}: {folder} has two workbooks for the {part} of case {number}"
            raise DataError(problem, hint="keep one of them")
        workbooks[number, part] = path
    numbers = sorted(number for number, part in workbooks if part == "input" and (number, "answer") in workbooks)
    if not numbers:
        problem = f"{where}: there is no pair of workbooks in {folder}"
        raise DataError(problem, hint="set env.data_root to the folder that spreadsheet_path is relative to")
    return [
        WorkbookCase(number=number, question=workbooks[number, "input"], answer=workbooks[number, "answer"])
        for number in numbers
    ]


def expected_cases(cases: list[WorkbookCase]) -> int:
    """Return how many cases the benchmark's own script looks for: the first release should have three of each task."""
    match = _NUMBERED.fullmatch(cases[0].question.name)
    return OFFICIAL_CASES if match and match[2].lower() == "input" else len(cases)


@cache
def has_pandas() -> bool:
    """Say whether programs can import pandas; the prompt says so."""
    return importlib.util.find_spec("pandas") is not None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


TASK_TYPES = ("cell-level", "sheet-level", "default")


class SpreadsheetBench(PackagedEnvironment):
    """Programs that change workbooks, scored by the values of the answer cells."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._mode, self._turns = self._text("mode"), int(self._options["max_turns"])
        self._seconds = float(self._options["program_timeout"])
        if self._turns < 1 or self._seconds <= 0:
            problem = "env.max_turns and env.program_timeout must be above 0"
            raise ConfigError(problem, hint="the defaults are 30 and 120")
        self._rule = RULES[self._text("scorer")]
        own = None if self._brings_data else self._folder / "data"
        self._data_root = root / self._text("data_root") if self._options["data_root"] else own
        self.cases: dict[str, tuple[WorkbookCase, ...]] = {}  # by the id of their item

    @property
    def digest(self) -> str:
        parts = [NO_PROGRAM, FAILED, CHECK, sorted(SHOWN.items())]
        parts += [] if self._wording is PromptWording.OWN else [TASK, str(ROWS[self._wording])]
        limits = [self._mode, self._most_replies, self._seconds]
        return short_digest([self.info.name, self._rule.name, self.target_prompt(), *parts, *limits])

    def target_prompt(self) -> str:
        prompt = self._prompt_file("tools" if self._mode == "react" else "program", self._wording)
        libraries = f"the standard library{', openpyxl and pandas' if has_pandas() else ' and openpyxl'}"
        return prompt.replace("{libraries}", libraries)

    def check_machine(self) -> None:
        """Refuse, before anything is spent, where programs cannot be run or scored."""
        _ = self._sandbox
        if self._wording is PromptWording.REFERENCE and not has_pandas():
            problem = "env.prompts is 'reference', which offers pandas to programs, and pandas is not installed"
            raise ConfigError(problem, hint=f"{install_command('pandas')}, or set env.prompts: own")
        if self._rule.recalculates:
            try:
                office_program()
            except EnvironmentFaultError as error:
                raise ConfigError(
                    f"env.scorer is '{self._options['scorer']}', which calculates formulas: {error.message}",
                    hint=f"{error.hint}; or set env.scorer: skillopt, which does not calculate",
                ) from error

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        path = text_field(row.where, row.fields, "spreadsheet_path") or f"spreadsheet/{content['id']}"
        if fault := path_fault(path):
            problem = f"{row.where} has the spreadsheet_path {shown(path)}, which cannot be used: {fault}"
            raise DataError(problem, hint="set env.data_root to the folder that it is relative to")
        cases = find_cases(row.where, (self._data_root or folder) / path)
        self.cases[content["id"]] = tuple(cases)
        # Blanks at its ends may decide whether a script can read it.
        content["answer_position"] = str(row.fields["answer_position"])
        content["cases"] = [
            {"number": case.number, "input": _digest(case.question), "answer": _digest(case.answer)} for case in cases
        ]
        content["expected_cases"] = expected_cases(cases)
        kind = content["instruction_type"].lower()
        content["task_type"] = next((name for name in TASK_TYPES if kind.startswith(name)), "default")
        return super().item(row, content, folder)

    def secrets(self, item: Item) -> Secrets:
        """Return the instruction; values of cells are too common to be looked for."""
        return Secrets(inputs=(str(item.content["instruction"]),))

    @property
    def _most_replies(self) -> int:
        return 1 if self._mode == "single" else self._turns

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        work = Work(
            item=item,
            system=self._system(skill),
            turn=self._turn,
            books={case.number: read_again(case.question) for case in self.cases[item.id]},
            areas=answer_cells(str(item.content["answer_position"])),
            sandbox=self._sandbox,
            seconds=self._seconds,
            wording=self._wording,
        )
        return await roll_out(work, target, self._mode, self._turns)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        task = WorkbookTask(
            position=str(item.content["answer_position"]),
            answer_sheet=str(item.content["answer_sheet"]),
            answers={case.number: read_again(case.answer) for case in self.cases[item.id]},
            case_count=cast("int", item.content["expected_cases"]),
        )
        workbooks = {int(number): content for number, content in trajectory.products.items()}
        results = await case_results(task, workbooks, self._rule, self._sandbox)
        return score(results, task.case_count, self._rule), feedback(results, task.case_count, self._rule)
