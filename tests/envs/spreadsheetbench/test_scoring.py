from __future__ import annotations

import asyncio
import json

import pytest
from soaking import soak
from spreadsheet_solutions import workbook

from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.sandbox import Sandbox
from skillgit.sandbox.libreoffice import office_program
from skillgit_envs.spreadsheetbench import find_cases
from skillgit_envs.spreadsheetbench.scoring import RULES, CaseResult, WorkbookTask, case_results, feedback, score

OFFICIAL, SKILLOPT, LENIENT = RULES["official"], RULES["skillopt"], RULES["lenient"]
RIGHT = workbook({"A1": 2, "A2": 3, "B1": 5, "B2": "five"})


@pytest.fixture
def box() -> Sandbox:
    try:
        return Sandbox()
    except SandboxError as error:
        pytest.skip(error.message)


@pytest.fixture
def office() -> None:
    try:
        office_program()
    except EnvironmentFaultError as error:
        pytest.skip(error.message)


def judged(box: Sandbox, rule, made: dict[int, bytes], position="B1:B2", answers=None, *, sheet="") -> dict[int, str]:
    task = WorkbookTask(position=position, answer_sheet=sheet, answers=answers or {1: RIGHT}, case_count=3)
    return {number: result.fault for number, result in asyncio.run(case_results(task, made, rule, box)).items()}


def test_values_count_and_everything_outside_the_answer_cells_does_not(box: Sandbox):
    made = workbook({"A1": "changed", "B1": "5.001", "B2": "five", "C9": 1})
    assert judged(box, SKILLOPT, {1: made}) == {1: ""}


def test_what_differs_is_told_cell_by_cell_but_not_all_of_it(box: Sandbox):
    cells = {f"A{row}": row for row in range(1, 7)}
    found = judged(box, SKILLOPT, {1: workbook({"A1": 1, "A2": "2x", "A7": True})}, "A1:A7", {1: workbook(cells)})
    expected = 'Sheet!A2 is "2x", expected 2.0, Sheet!A3 is empty, expected 3.0, Sheet!A4 is empty, expected 4.0'
    assert found == {1: f"{expected}, and 3 more cells are wrong"}


@pytest.fixture(scope="module")
def calculated() -> tuple[dict[int, CaseResult], dict[int, CaseResult]]:
    """What cases come to by the official rule, for which LibreOffice starts once, and by one that calculates nothing.

    The formulas of the first three answers have no values, and one has a function that LibreOffice does not know.
    """
    answer = workbook({"A1": 2, "B1": "=A1+3", "B2": '=IF(A1=2,"five","no")', "C1": "=NOSUCH(1)"})
    made = {
        1: workbook({"B1": 5, "B2": "five", "C1": 7}),
        2: answer,
        3: workbook({"A1": 2}),
        4: workbook({"A1": 2, "A2": 3, "B1": "=A1+A2", "B2": '=IF(B1=5,"five","no")'}),
        5: b"nonsense",
        6: RIGHT,
    }
    answers = {number: answer if number <= 3 else RIGHT for number in made}
    task = WorkbookTask(position="B1:C2", answer_sheet="", answers=answers, case_count=6)
    try:
        office_program()
        box = Sandbox()
    except (EnvironmentFaultError, SandboxError) as error:
        pytest.skip(error.message)
    official, skillopt = (asyncio.run(case_results(task, made, rule, box)) for rule in (OFFICIAL, SKILLOPT))
    return official, skillopt


def test_a_formula_counts_only_where_it_is_calculated(calculated):
    official, skillopt = calculated
    assert skillopt[4].fault.startswith("Sheet!B1 is empty, expected 5.0")
    assert official[4] == CaseResult(fault="")


def test_an_answer_is_calculated_too_and_what_is_unknown_of_it_is_told(calculated):
    official, skillopt = calculated
    assert official[1].fault == 'Sheet!C1 is 7.0, expected "#NAME?"'
    assert official[1].doubt == (
        "LibreOffice cannot calculate these cells of the answer: Sheet!C1 is #NAME?, and was saved without a value"
    )
    assert official[2] == CaseResult(fault="", doubt=official[1].doubt), "equal errors pass, and are told"
    assert official[3].fault.startswith("Sheet!B1 is empty, expected 5.0"), "what is empty is not right"
    assert not skillopt[3].fault, "the reference calculates nothing"
    assert skillopt[1].doubt == "nothing has calculated these cells of the answer: Sheet!B1, Sheet!C1, Sheet!B2"


def test_nothing_passes_without_a_workbook_a_sheet_or_cells_to_compare(box: Sandbox):
    assert judged(box, SKILLOPT, {}) == {1: "the program made no workbook"}
    assert judged(box, SKILLOPT, {1: b"PK no zip"})[1].startswith("the workbook that was made cannot be read: ")
    assert judged(box, SKILLOPT, {1: workbook({})}, "Two!A1", {1: workbook({}, Two={"A1": 1})}) == {
        1: "there is no sheet 'Two'"
    }
    assert judged(box, SKILLOPT, {1: RIGHT}, "Gone!A1") == {1: "no workbook can pass: the answer has no sheet 'Gone'"}
    assert judged(box, SKILLOPT, {1: RIGHT}, "BD2:308") == {1: "no workbook can pass: 'BD2:308' covers no cell"}


def test_without_a_sheet_the_first_one_of_the_answer_is_meant(box: Sandbox):
    answer = workbook({"A1": 1}, Other={"A1": 2})
    made = workbook({"A1": 9}, Other={"A1": 2}, Sheet={"A1": 1})
    assert judged(box, SKILLOPT, {1: made}, "A1", {1: answer}) == {1: ""}
    assert judged(box, SKILLOPT, {1: made}, "A1", {1: answer}, sheet="Other") == {1: ""}
    assert judged(box, SKILLOPT, {1: workbook({}, Sheet1={"A1": 1})}, "A1", {1: answer})[1].startswith(
        "Sheet!A1 is empty"
    )


def test_a_workbook_that_cannot_be_read_spoils_no_other_case(calculated):
    official, _ = calculated
    assert (official[4].fault, official[6].fault) == ("", "")
    assert official[5].fault


def test_an_answer_that_cannot_be_read_is_a_fault_and_no_score(box: Sandbox):
    with pytest.raises(EnvironmentFaultError, match="the answer of case 2 cannot be read"):
        judged(box, SKILLOPT, {1: RIGHT, 2: RIGHT}, answers={1: RIGHT, 2: b""})


@pytest.mark.usefixtures("office")
def test_an_answer_that_cannot_be_calculated_is_a_fault_and_no_score(box: Sandbox):
    with pytest.raises(EnvironmentFaultError, match="LibreOffice cannot read the answer of case 2"):
        judged(box, OFFICIAL, {1: RIGHT, 2: RIGHT}, answers={1: RIGHT, 2: b"PK\x03\x04 no zip"})


def test_missing_cases_fail_by_the_official_rule_only():
    found = {1: CaseResult(fault=""), 2: CaseResult(fault="")}
    assert (score(found, 3, OFFICIAL).hard, score(found, 3, OFFICIAL).soft) == (0.0, pytest.approx(2 / 3))
    assert (score(found, 3, SKILLOPT).hard, score(found, 3, LENIENT).soft) == (1.0, 1.0)
    assert feedback(found, 3, OFFICIAL).endswith("1 of the 3 cases of this task are missing, and count as failed")
    bad = {1: CaseResult(fault=""), 2: CaseResult(fault="bad", doubt="who knows")}
    assert feedback(bad, 3, SKILLOPT) == "1 of 2 cases pass\ncase 2: bad\ncase 2: who knows"


@pytest.mark.slow
@pytest.mark.usefixtures("office")
@pytest.mark.parametrize(
    ("name", "outcomes", "rules"),
    [
        soak("283-32", {"lenient": "self"}, RULES),
        soak("45944", {"skillopt": "self", "lenient": "self"}, RULES),
        soak("52763", {}, RULES),
        soak("532-3", {"lenient": "both"}, RULES),
        soak("CF_15439", {"official": "both", "skillopt": "both", "lenient": "both"}, RULES),
        soak("49782", {"official": "self", "skillopt": "self", "lenient": "self"}, RULES),
        soak("43026", {"official": "self", "skillopt": "self", "lenient": "self"}, RULES),
    ],
)
def test_real_answers_pass_where_a_rule_can_read_the_position_and_inputs_seldom_do(real, box, name, outcomes, rules):
    row = next(row for row in json.loads((real / "dataset.json").read_text()) if str(row["id"]) == name)
    cases = find_cases("here", real / row["spreadsheet_path"])[:1]
    answers = {case.number: case.answer.read_bytes() for case in cases}
    sheet = row.get("answer_sheet") or ""
    for rule in rules:
        passes = [
            not any(judged(box, RULES[rule], books, row["answer_position"], answers, sheet=sheet).values())
            for books in (answers, {case.number: case.question.read_bytes() for case in cases})
        ]
        assert passes == [rule in outcomes, outcomes.get(rule) == "both"], rule
