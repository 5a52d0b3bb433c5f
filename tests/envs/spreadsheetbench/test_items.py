from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import items_in
from spreadsheet_solutions import SOLUTIONS

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit_envs.shipped_environment import read_again
from skillgit_envs.spreadsheetbench import SpreadsheetBench

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"id": 7, "instruction": "Add.", "instruction_type": "Sheet-Level Manipulation", "answer_position": " B1"}
RELEASE = ("1_7_input.xlsx", "1_7_answer.xlsx", "2_7_input .xlsx", "2_7_answer.xlsx", "3_7_answer.xlsx")


def read(folder: Path, row: dict[str, object], *names: str) -> tuple[SpreadsheetBench, list]:
    """Return the items of a data file with one row, and workbooks of these names."""
    place = folder / str(row.get("spreadsheet_path", f"spreadsheet/{row.get('id')}"))
    place.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (place / name).write_bytes(f"{number}".encode())
    (folder / "dataset.json").write_text(json.dumps([row]))
    tasks = SpreadsheetBench({"data_path": "dataset.json"}, folder)
    return tasks, tasks._read([folder / "dataset.json"])


def test_cases_are_the_pairs_of_the_first_release_a_blank_in_a_name_included(tmp_path: Path):
    tasks, (item,) = read(tmp_path, ROW, *RELEASE)
    assert (item.id, item.task_type) == ("7", "sheet-level")
    assert item.content["answer_position"] == " B1", "blanks decide whether a script can read it"
    assert [case["number"] for case in item.content["cases"]] == [1, 2]
    assert item.content["expected_cases"] == 3
    assert [case.question.name for case in tasks.cases["7"]] == ["1_7_input.xlsx", "2_7_input .xlsx"]


@pytest.mark.parametrize("names", [("1_7_init.xlsx", "1_8_golden.xlsx"), ("initial.xlsx", "golden.xlsx")])
def test_the_verified_release_has_one_case_under_other_names(tmp_path: Path, names: tuple[str, ...]):
    _, (item,) = read(tmp_path, ROW | {"spreadsheet_path": "there"}, *names)
    assert [case["number"] for case in item.content["cases"]] == [1]
    assert item.content["expected_cases"] == 1


def test_the_bytes_of_the_workbooks_are_part_of_the_item(tmp_path: Path):
    _, (before,) = read(tmp_path, ROW, *RELEASE)
    (tmp_path / "spreadsheet/7/2_7_answer.xlsx").write_bytes(b"other")
    assert items_in(SpreadsheetBench, tmp_path / "dataset.json")[0].digest != before.digest


@pytest.mark.parametrize(("field", "empty"), [("id", " "), ("answer_position", "\u00a0"), ("instruction", "")])
def test_a_row_that_lacks_a_field_is_named(tmp_path: Path, field: str, empty: str):
    with pytest.raises(DataError, match=f"item 1 has no {field}"):
        read(tmp_path, ROW | {field: empty}, *RELEASE)


@given(st.text(" \t\n\u00a0\u2003a", min_size=1, max_size=6))
def test_an_instruction_of_any_character_is_one_blank_ones_as_they_are(tmp_path_factory, instruction: str):
    """Three tasks of the first release have a no-break space."""
    _, (item,) = read(tmp_path_factory.mktemp("blank"), ROW | {"instruction": instruction}, *RELEASE)
    assert item.content["instruction"] == (instruction.strip() or instruction)


def test_a_task_without_a_pair_or_with_a_workbook_twice_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="there is no pair of workbooks in"):
        read(tmp_path, ROW, "1_7_input.xlsx", "2_7_answer.xlsx")
    with pytest.raises(DataError, match="two workbooks for the answer of case 1"):
        read(tmp_path, ROW, "1_7_input.xlsx", "1_7_answer.xlsx", "1_8_answer.xlsx")


def test_a_workbook_that_has_gone_is_a_fault(tmp_path: Path):
    with pytest.raises(EnvironmentFaultError, match=r"gone\.xlsx cannot be read"):
        read_again(tmp_path / "gone.xlsx")


def test_settings_that_mean_nothing_are_refused(tmp_path: Path):
    for option, value in (("mode", "agent"), ("scorer", "loose"), ("sandbox", "docker")):
        with pytest.raises(ConfigError, match=f"env.{option} is '{value}'"):
            SpreadsheetBench({option: value}, tmp_path)
    for option in ("max_turns", "program_timeout"):
        with pytest.raises(ConfigError, match="must be above 0"):
            SpreadsheetBench({option: 0}, tmp_path)


def test_what_decides_an_outcome_changes_the_digest(tmp_path: Path):
    options = (
        {},
        {"scorer": "skillopt"},
        {"scorer": "lenient"},
        {"mode": "single"},
        {"mode": "react"},
        {"max_turns": 2},
    )
    assert len({SpreadsheetBench(option, tmp_path).digest for option in options}) == len(options)
    once = [SpreadsheetBench({"mode": "single", "max_turns": turns}, tmp_path).digest for turns in (1, 9)]
    assert once[0] == once[1]


def test_without_libreoffice_only_the_scorer_that_does_not_calculate_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(SpreadsheetBench, "_sandbox", None)
    with pytest.raises(ConfigError, match="LibreOffice is not installed") as caught:
        SpreadsheetBench({}, tmp_path).check_machine()
    assert "env.scorer: skillopt" in caught.value.hint
    SpreadsheetBench({"scorer": "skillopt"}, tmp_path).check_machine()
    assert SpreadsheetBench({}, tmp_path).items(Split.TRAIN), "items are read, which scores nothing"


def test_the_shipped_tasks_have_three_cases_and_each_a_solution(tmp_path, monkeypatch):
    monkeypatch.setattr(SpreadsheetBench, "_sandbox", None)
    monkeypatch.setattr("skillgit_envs.spreadsheetbench.office_program", lambda: None)
    environment = SpreadsheetBench({}, tmp_path)
    items = [item for split in Split for item in environment.items(split)]
    assert {item.id for item in items} == SOLUTIONS.keys()
    assert {len(item.content["cases"]) for item in items} == {3}
    assert all(len({case["answer"] for case in item.content["cases"]}) == 3 for item in items)


def test_every_real_task_has_its_workbooks(real: Path):
    items = items_in(SpreadsheetBench, real / "dataset.json")
    counts = {item.id: len(item.content["cases"]) for item in items}
    assert {name for name, count in counts.items() if count < 3} == {"43026", "46444", "52964"}
    assert {item.content["expected_cases"] for item in items} == {3}
