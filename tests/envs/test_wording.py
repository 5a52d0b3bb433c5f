"""``env.prompts: reference`` asks for the same things in the same order as the reference, and identifies outcomes.

``ASKED`` is the survey of the reference (environments, A.1 to A.7): what its system prompts and first messages hold, in
order. The words between are ours.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from household_games import POTATO, Speaker, Table
from hypothesis import given
from hypothesis import strategies as st
from saying import Says
from spreadsheet_solutions import SOLUTIONS

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, SandboxError
from skillgit.plugin.backend import Image, Reply, Usage
from skillgit.plugin.plugin_identity import install_command
from skillgit_envs.alfworld import ALFWorld, reference_messages
from skillgit_envs.docvqa import DocVQA, question
from skillgit_envs.livemathematicianbench import LiveMathematicianBench, ShownItem
from skillgit_envs.livemathematicianbench import question as choice_question
from skillgit_envs.officeqa import OfficeQA
from skillgit_envs.officeqa import question as office_question
from skillgit_envs.searchqa import SearchQA, review_prompt, user_prompt
from skillgit_envs.shipped_environment import PromptWording, with_skill
from skillgit_envs.spreadsheetbench import SpreadsheetBench
from skillgit_envs.spreadsheetbench.rollout import task, without_paths
from skillgit_envs.swebench import SWEBench

if TYPE_CHECKING:
    from pathlib import Path

RULE = "- Answer as the source writes it."
SKILL = Skill("any", {"SKILL.md": f"---\nname: any\ndescription: Any.\n---\n\n{RULE}\n".encode()})
BLANK = Skill("any", {"SKILL.md": b"---\nname: any\ndescription: Any.\n---\n"})
ENVIRONMENTS = {
    "searchqa": SearchQA,
    "docvqa": DocVQA,
    "livemathematicianbench": LiveMathematicianBench,
    "officeqa": OfficeQA,
    "spreadsheetbench": SpreadsheetBench,
    "swebench": SWEBench,
    "alfworld": ALFWorld,
}
OPTIONS = {
    "officeqa": {"use_local_tools": False},
    "spreadsheetbench": {"scorer": "skillopt", "mode": "single"},
}
ASKED = {
    "searchqa": (
        ("You are", "## Skill\n", RULE, "## Task\n", "## Answer\n", "<answer>", "<answer>Lake"),
        ("## Context\n", "[DOC]", "## Question\n", "?"),
    ),
    "docvqa": (
        ("You are", "## Skill\n", RULE, "\n1. ", "\n2. ", "\n3. ", "\n4. ", "<answer>"),
        ("## Question\n", "?", "<answer>"),
    ),
    "livemathematicianbench": (
        ("You are", "## Skill\n", RULE, "letter", "<answer>"),
        ("## Question\n", "## Choices\n", "A. ", "\nB. "),
    ),
    "officeqa": (("You are", "## Skill\n", RULE, "## Task\n", "<answer>"), ("## Question\n", "?")),
    "spreadsheetbench": (
        ("You", "INPUT_PATH", "OUTPUT_PATH", "standard library", "openpyxl", "pandas", "print", "## Skill\n", RULE),
        ("## Instruction\n", "## Kind\n", "## Answer cells\n", "## Workbook\n", "Sheet ", "## Task\n"),
    ),
    "swebench": (
        ("You are", "1. ", "reproduces", "\n3. Change", "edges", "\n6. ", "do not change tests", "## Skill\n", RULE),
        ("## Issue\n",),
    ),
    "alfworld": (
        ("You act",),
        ("## Skill\n", RULE, "A room.", "Your task is to:", "## Possible actions\n'", "'\n'", "<think>", "<action>"),
    ),
}


def in_order(text: str, parts) -> bool:
    """Say whether ``parts`` stand in ``text`` one behind the other."""
    place = 0
    for part in parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return True


def asked(name: str, skill: Skill, folder: Path, **options):
    """Return the conversations that one rollout has with the target."""
    settings = {**OPTIONS.get(name, {}), "prompts": "reference", **options}
    environment = ENVIRONMENTS[name](settings, folder)
    if name == "alfworld":
        environment._simulator = Table()
        target = Speaker("<think>hm</think><action>dust</action>")
        item = Item(id="a", content=POTATO, task_type="pick_heat_then_place_in_recep")
    else:
        target = Says(*(["no answer"] * options.get("max_turns", 1)))
        try:
            item = environment.items(Split.TRAIN)[0]
        except SandboxError as error:
            pytest.skip(error.message)
    asyncio.run(environment.rollout(item, skill, target))
    return target.heard


@pytest.fixture(params=ENVIRONMENTS)
def name(request: pytest.FixtureRequest) -> str:
    needs = {"spreadsheetbench": "pandas", "alfworld": "textworld"}.get(request.param)
    if needs and find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    return request.param


def test_the_target_is_asked_for_the_same_things_in_the_same_order(name, tmp_path):
    system, first = (message.text for message in asked(name, SKILL, tmp_path)[0])
    in_system, in_message = ASKED[name]
    assert in_order(system, in_system), system
    assert in_order(first, in_message), first
    assert (system + first).count(RULE) == 1
    assert "description: Any." not in system + first


def test_a_blank_skill_leaves_no_section_behind(name, tmp_path):
    assert "## Skill" not in "".join(message.text for message in asked(name, BLANK, tmp_path)[0])


def test_the_words_are_part_of_what_identifies_outcomes(name, tmp_path):
    made = ENVIRONMENTS[name]
    own, explicit, reference = (
        made(options, tmp_path) for options in ({}, {"prompts": "own"}, {"prompts": "reference"})
    )
    assert own.digest == explicit.digest != reference.digest
    assert reference.target_prompt().count("{skill}") == 1
    with pytest.raises(ConfigError, match=r"env.prompts is 'paper'"):
        made({"prompts": "paper"}, tmp_path)


def test_the_page_stands_behind_the_question(tmp_path):
    message = asked("docvqa", SKILL, tmp_path)[0][1]
    assert [type(part) is Image for part in message.parts] == [False, True]


@pytest.mark.parametrize("name", ["searchqa", "livemathematicianbench"])
def test_a_review_sees_the_last_answer_and_not_the_task(name, tmp_path):
    first, second, third = asked(name, SKILL, tmp_path, max_turns=3)
    for later in (second, third):
        assert [message.role for message in later] == ["system", "user"]
        assert later[0] == first[0]
        assert in_order(later[1].text, ("no answer", "<answer>"))
        assert "## Question" not in later[1].text


@pytest.mark.parametrize("history", [0, 1, 2])
def test_a_step_of_a_game_is_a_question_of_its_own(history):
    seen = ["A room. Your task is to: dust.", "one", "two", "three"]
    _, message = reference_messages(SKILL, seen, ["a", "", "c"], ("help", "look", "go"), history)
    shown = (["one\n> none"] if history != 1 else []) + ["two\n> c"]
    assert in_order(message.text, ("## Task\ndust.", "3", *shown, "## Observation\nthree", "'look'\n'go'", "<think>"))
    assert "help" not in message.text
    assert "A room" not in message.text


ODD = st.text(st.sampled_from("{}<>#\\ans skil\n"), min_size=1, max_size=30).map(str.strip).filter(bool)


@given(ODD, ODD)
def test_what_stands_in_a_task_stands_in_its_prompt_as_it_is(one, two):
    item = Item(
        id="x",
        content={
            **dict.fromkeys(("question", "instruction", "theorem"), one),
            **dict.fromkeys(("answer_position", "sketch"), two),
            "instruction_type": "",
            "choices": [two, "other"],
        },
    )
    assert in_order(user_prompt(one, two, PromptWording.REFERENCE), (two, one))
    assert one in review_prompt("task", one, PromptWording.REFERENCE)
    assert one in question(one, PromptWording.REFERENCE)
    shown = ShownItem(theorem=True, sketch=True)
    assert in_order(choice_question(item, shown, PromptWording.REFERENCE), (one, two, one, two))
    assert in_order(
        office_question(item, documents=["a.txt"], pages=two, wording=PromptWording.REFERENCE), ("a.txt", two, one)
    )
    assert in_order(task(item, two, PromptWording.REFERENCE), (one, two, two))
    _, message = reference_messages(SKILL, [one, two], ["look"], (one,), 0)
    assert in_order(message.text, (RULE, one, two, one))


@given(ODD, st.sampled_from(PromptWording))
def test_a_skill_is_taken_as_it_is(text, wording):
    skill = Skill("any", {"SKILL.md": f"---\nname: any\ndescription: Any.\n---\n{text}".encode()})
    assert text in with_skill("before {skill}after", skill, wording)


PATHS = 'INPUT_PATH = "/data/in.xlsx"\nOUTPUT_PATH  = "..."   # where it goes\n'


@pytest.mark.parametrize(
    "code",
    [
        PATHS + SOLUTIONS["pantry-units"],
        'INPUT_PATH = "a"; OUTPUT_PATH = "b"\n' + SOLUTIONS["pantry-units"],
        "import sys\nINPUT_PATH, OUTPUT_PATH = sys.argv[1:3]\n" + SOLUTIONS["pantry-units"],
        'INPUT_PATH: str = (\n    "é"\n    "b"\n)\n' + SOLUTIONS["pantry-units"],
        'if True:\n    INPUT_PATH = "a"\n' + SOLUTIONS["pantry-units"],
    ],
)
def test_a_program_that_sets_its_own_paths_works_on_the_workbook_all_the_same(code, tmp_path):
    if find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    environment = SpreadsheetBench({**OPTIONS["spreadsheetbench"], "prompts": "reference"}, tmp_path)
    try:
        item = environment.items(Split.TRAIN)[0]
    except SandboxError as error:
        pytest.skip(error.message)
    trajectory = asyncio.run(environment.rollout(item, SKILL, Says(f"```python\n{code}```")))
    scored, said = asyncio.run(environment.score(item, trajectory, Says()))
    assert (scored.hard, said) == (1.0, "3 of 3 cases pass")


@given(
    st.lists(
        st.sampled_from(["x = 1\n", "text = '''\nINPUT_PATH = 1\n'''\n", "def f():\n  y = INPUT_PATH\n", "é=2;y=3\n"])
    )
)
def test_no_other_statement_is_touched(lines):
    code = "".join(lines)
    assert without_paths(code) == code
    assert without_paths(code + PATHS) == code + "pass\npass   # where it goes\n"


def test_a_reply_that_runs_is_the_last_one(tmp_path):
    if find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    environment = SpreadsheetBench({"scorer": "skillopt", "prompts": "reference", "max_turns": 5}, tmp_path)
    try:
        item = environment.items(Split.TRAIN)[0]
    except SandboxError as error:
        pytest.skip(error.message)
    broken = Reply(text="```python\n1 / 0\n```", usage=Usage(tokens_in=1, tokens_out=1))
    target = Says(broken, f"```python\n{SOLUTIONS['pantry-units']}```")
    trajectory = asyncio.run(environment.rollout(item, SKILL, target))
    assert "ZeroDivisionError" in target.heard[1][-1].text
    assert len(target.heard) == 2
    assert asyncio.run(environment.score(item, trajectory, Says()))[0].hard == 1.0


def test_the_words_of_the_reference_are_not_used_without_the_packages_that_they_offer(tmp_path, monkeypatch):
    monkeypatch.setattr("skillgit_envs.spreadsheetbench.has_pandas", lambda: False)
    environment = SpreadsheetBench({"scorer": "skillopt", "prompts": "reference"}, tmp_path)
    with pytest.raises((ConfigError, SandboxError)) as raised:
        environment.check_machine()
    if isinstance(raised.value, ConfigError):
        assert raised.value.hint == f"{install_command('pandas')}, or set env.prompts: own"
