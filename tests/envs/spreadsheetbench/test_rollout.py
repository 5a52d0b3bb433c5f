from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from saying import Says
from spreadsheet_solutions import SOLUTIONS, reply

from skillgit.domain.evaluation import Split
from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit.sandbox import Sandbox
from skillgit.sandbox.libreoffice import office_program
from skillgit.testing import check_environment
from skillgit_envs.spreadsheetbench import SpreadsheetBench

if TYPE_CHECKING:
    from pathlib import Path

WRONG = "```python\nimport openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\nbook.save(OUTPUT_PATH)\n```"
SHORT = ("-o", "env.limit=2", "-o", "train.batch_size=2")
CRASH = "```python\nraise SystemExit('not today')\n```"


@pytest.fixture(autouse=True)
def machine() -> None:
    try:
        Sandbox()
    except SandboxError as error:
        pytest.skip(error.message)


def rolled(folder: Path, target: Says, **options):
    """Return the environment, its first train item and what the target made of it."""
    environment = SpreadsheetBench({"scorer": "skillopt", **options}, folder)
    item = environment.items(Split.TRAIN)[0]
    return environment, item, asyncio.run(environment.rollout(item, environment.seed_skill(), target))


def scored(environment, item, trajectory):
    return asyncio.run(environment.score(item, trajectory, Says()))


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory):
    """An item that one reply solves: the target, and what ``rolled`` returns."""
    target = Says(reply("pantry-units"))
    return target, *rolled(tmp_path_factory.mktemp("solved"), target, mode="single")


def test_one_reply_is_one_program_that_runs_on_every_case(solved):
    target, environment, item, trajectory = solved
    system, asked = (message.text for message in target.heard[0])
    assert '<skill name="spreadsheetbench">' in system
    assert "<answer_cells>'Stock'!D2:D9</answer_cells>" in asked
    assert 'Sheet "Stock", cells A1:D7\n1: Item | Boxes | Per box | Units\n' in asked
    assert sorted(trajectory.products) == ["1", "2", "3"]
    assert trajectory.answer == SOLUTIONS["pantry-units"]
    assert trajectory.turns[-1].content == "case 1, 2, 3: [the program ended well]"
    outcome, said = scored(environment, item, trajectory)
    assert (outcome.hard, outcome.soft, said) == (1.0, 1.0, "3 of 3 cases pass")


@pytest.mark.slow
def test_a_program_is_revised_until_the_model_is_content(tmp_path: Path):
    target = Says("Let me think.", CRASH, WRONG, reply("pantry-units"), "DONE")
    environment, item, trajectory = rolled(tmp_path, target, mode="multi")
    told = [messages[-1].text for messages in target.heard[1:]]
    assert told[0].startswith("There is no program in your reply.")
    assert "not today\n[the program failed with exit code 1]" in told[1]
    assert "Stock: the answer cells are empty" in told[2]
    assert "Stock!D2: 0.0\nStock!D3: 72.0" in told[3]
    assert scored(environment, item, trajectory)[0].hard == 1.0


@pytest.mark.soak
def test_turns_come_to_an_end_with_the_last_program(tmp_path: Path):
    target = Says(CRASH, WRONG)
    environment, item, trajectory = rolled(tmp_path, target, mode="multi", max_turns=2)
    outcome, said = scored(environment, item, trajectory)
    assert (outcome.hard, outcome.soft) == (0.0, 0.0)
    assert "case 1: Stock!D2 is empty, expected 0.0" in said


def test_a_reply_without_a_program_scores_nothing(tmp_path: Path):
    environment, item, trajectory = rolled(tmp_path, Says("I cannot do that."), mode="single")
    assert (trajectory.answer, trajectory.products) == ("", {})
    assert scored(environment, item, trajectory)[0].soft == 0.0


def test_with_the_tool_the_model_looks_before_it_answers(tmp_path: Path):
    code = "import openpyxl, os\nprint(sorted(os.listdir('.')))\nprint(openpyxl.load_workbook('input.xlsx').sheetnames)"
    call = ToolCall(id="1", name="python", arguments=json.dumps({"code": code}))
    looks = Reply(text="", usage=Usage(tokens_in=1, tokens_out=1), finish_reason="tool_calls", tool_calls=(call,))
    target = Says(looks, reply("pantry-units"))
    environment, item, trajectory = rolled(tmp_path, target, mode="react")
    assert "['input.xlsx', 'main.py']\n['Stock']" in target.heard[1][-1].text, "no answer is there"
    assert scored(environment, item, trajectory)[0].hard == 1.0


def test_a_workbook_of_a_task_that_is_broken_is_a_fault(tmp_path: Path):
    folder = tmp_path / "spreadsheet"
    rows = [{"id": n, "instruction": f"{n}", "answer_position": "A1"} for n in range(10)]
    for row in rows:
        (folder / f"{row['id']}").mkdir(parents=True)
        for part in ("input", "answer"):
            (folder / f"{row['id']}" / f"1_{row['id']}_{part}.xlsx").write_text(f"{row['id']} {part}")
    (tmp_path / "dataset.json").write_text(json.dumps(rows))
    with pytest.raises(EnvironmentFaultError, match="the workbook of a task cannot be read"):
        rolled(tmp_path, Says(WRONG), data_path="dataset.json")


@pytest.mark.slow
def test_a_program_cannot_bring_the_answer_of_another_run(solved):
    _, environment, item, _ = solved
    bad = asyncio.run(environment.rollout(item, environment.seed_skill(), Says("```python\npass\n```")))
    assert scored(environment, item, bad)[0].soft == 0.0


@pytest.mark.soak
def test_the_environment_keeps_its_promises(tmp_path: Path):
    check_environment(
        SpreadsheetBench,
        {"scorer": "skillopt", "mode": "single"},
        tmp_path,
        answers=lambda item: reply(item.id),
        scoring_options={"scorer": "lenient", "mode": "react"},
        rollouts=2,
    )


@pytest.fixture
def office() -> None:
    try:
        office_program()
    except EnvironmentFaultError as error:
        pytest.skip(error.message)


@pytest.mark.soak
@pytest.mark.usefixtures("office")
def test_a_run_over_the_wire_scores_what_programs_made(tmp_path: Path):
    said = (("Column A holds names such as", reply("split-names")),)
    options = (*SHORT, "-o", "env.mode=single", "-o", "evaluation.eval_test=false")
    repository, asked = train(tmp_path, "spreadsheetbench", *options, scripted=said)
    assert {entry.role for entry in asked} >= {"target"}
    found = events(repository)
    assert found[0]["kind"] == "run-finished"
    assert (found[-1]["kind"], found[-1]["score"]) == ("run-started", 0.5), "one of the two selection items is solved"


@pytest.mark.soak
@pytest.mark.usefixtures("office")
def test_real_tasks_go_over_the_wire(tmp_path: Path, real: Path):
    options = ("-o", f"env.data_path={real / 'dataset.json'}", "-o", "env.max_turns=2")
    repository, asked = train(
        tmp_path, "spreadsheetbench", *SHORT, *options, scripted=(("<answer_cells>", WRONG),), keep=True
    )
    told = [json.dumps(entry.document) for entry in asked if entry.role == "target"]
    assert any("The answer cells of the saved workbook" in text for text in told)
    assert events(repository)[0]["kind"] == "run-finished"


def test_the_target_is_told_of_pandas_where_programs_can_import_it(monkeypatch, tmp_path):
    options = {option.name: option.default for option in SpreadsheetBench.info.options}
    prompts, digests = set(), set()
    for installed in (True, False):
        monkeypatch.setattr("skillgit_envs.spreadsheetbench.has_pandas", lambda installed=installed: installed)
        made = SpreadsheetBench(options, tmp_path)
        assert ("openpyxl and pandas" in made.target_prompt()) == installed
        assert "{libraries}" not in made.target_prompt()
        prompts.add(made.target_prompt())
        digests.add(made.digest)
    assert len(prompts) == len(digests) == 2, "who was told something else was measured under other conditions"
