"""Everything that spoils a measurement is found before a model is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from asking import ask

from skillgit.app.sources.data_check import check_data
from skillgit.domain.evaluation import Split
from skillgit.domain.finding import Severity
from skillgit.errors import ConfigError, ExitCode
from skillgit.plugin.registry import installed
from skillgit.view.findings import DATA

if TYPE_CHECKING:
    from skillgit.app.sources.data_check import DataCheck
    from skillgit.app.workspace.context import Context

QUESTIONS = {
    "train": ["Which river runs through Lisbon?", "Who painted the Garden of Earthly Delights?"],
    "val": ["Which metal melts at thirty degrees in a warm hand?", "Which lighthouse stood in ancient Alexandria?"],
    "test": ["Which planet has the Great Red Spot?", "Who wrote the novel Middlemarch?"],
}
ANSWERS = {"train": ["Tagus", "Bosch"], "val": ["Gallium", "Pharos"], "test": ["Jupiter", "George Eliot"]}


def rows() -> dict[str, list[dict[str, object]]]:
    return {
        split: [
            {"id": f"{split}-{n}", "question": question, "context": f"[DOC] Page {split} {n}", "answers": [answer]}
            for n, (question, answer) in enumerate(zip(QUESTIONS[split], ANSWERS[split], strict=True))
        ]
        for split in QUESTIONS
    }


def checked(context: Context, data: dict[str, list[dict[str, object]]], *overrides: str, skill: str = "") -> DataCheck:
    folder = context.directory / "mine"
    for split, items in data.items():
        (folder / split).mkdir(parents=True)
        (folder / split / "items.json").write_text(json.dumps(items))
    if skill:
        (context.directory / "seed.md").write_text(f"# Answers\n\n{skill}\n")
        overrides = (*overrides, "env.skill_init=seed.md")
    return ask(check_data, context, "searchqa/default", ("env.split_mode=split_dir", "env.split_dir=mine", *overrides))


GIVEN_AWAY = "train items contain answers of selection or test items next to words of their questions"


def sentences(found: DataCheck) -> list[tuple[str, str, str]]:
    return [(DATA.word(one), one.rule, one.sentence) for one in found.findings]


@pytest.mark.parametrize("name", [plugin.name for plugin in installed("skillgit.envs") if plugin.name != "harbor"])
def test_the_items_that_come_with_skillgit_are_without_fault(empty, name):
    if name == "inspect":
        pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
    found = ask(check_data, empty, f"{name}/default")
    assert (found.findings, found.exit_code) == ((), ExitCode.OK)


def test_splits_are_told_with_their_types_digests_and_what_they_can_show(empty):
    found = ask(check_data, empty, "searchqa/default")
    train, selection, _ = found.splits
    assert (train.split, train.items, train.used, train.types["person"]) == (Split.TRAIN, 60, 60, 20)
    assert (selection.items, selection.step) == (40, 0.025)
    assert selection.detectable == pytest.approx(0.162, abs=0.001)
    assert len({split.digest for split in found.splits}) == 3
    assert found.notes[0].startswith("40 selection items: gains of less than 16.2 points")


def test_what_a_run_takes_of_a_split_decides_what_it_can_show(empty):
    found = ask(check_data, empty, "searchqa/default", ("evaluation.sel_env_num=10", "train.train_size=7"))
    assert [(split.items, split.used) for split in found.splits] == [(60, 60), (40, 10), (60, 60)]
    assert found.splits[1].step == 0.1
    assert found.notes[0].startswith("10 selection items: ")
    assert found.notes[1].startswith("train.train_size is 7, but there are 60 train items")


def test_clean_data_have_no_finding(empty):
    found = checked(empty, rows())
    assert (sentences(found), found.exit_code) == ([], ExitCode.OK)


def test_faults_of_several_files_are_all_told_with_their_place(empty):
    data = rows()
    del data["train"][0]["question"]
    data["test"][1]["answers"] = []
    found = checked(empty, data)
    assert found.exit_code == ExitCode.NO
    assert found.splits == ()
    told = [sentence for _, kind, sentence in sentences(found) if kind == "unreadable"]
    assert [sentence.removeprefix(f"{empty.directory}/mine/").partition(" has ")[0] for sentence in told] == [
        "train/items.json, item 1",
        "test/items.json, item 2",
    ]


def test_repeated_ids_and_contents_between_splits_are_faults(empty):
    data = rows()
    data["val"][0]["id"] = data["train"][0]["id"]
    data["test"][0] = {**data["train"][1], "id": "another"}
    found = checked(empty, data)
    assert [sentence for _, _, sentence in sentences(found)] == [
        "ids occur in both the train and the selection split: train-0",
        "the same content is in both the train and the test split: train-1 = another",
    ]
    assert {one.severity for one in found.findings} == {Severity.ERROR}


def test_the_same_content_twice_in_a_split_and_almost_the_same_items_are_warnings(empty):
    data = rows()
    data["val"].append({**data["val"][0], "id": "val-2"})
    data["test"].append({**data["train"][0], "id": "test-2", "question": "Which river runs through old Lisbon"})
    found = checked(empty, data)
    assert found.exit_code == ExitCode.OK
    given_away = GIVEN_AWAY
    assert sentences(found) == [
        ("warning", "repeated", "items of the selection split have the same content: val-0 = val-2"),
        ("warning", "leak", f"{given_away}: train-0 gives away test-2"),
        ("warning", "alike", "items of the train and the test split are almost the same: train-0 ~ test-2"),
    ]
    assert found.findings[2].items == ("train-0", "test-2")


def test_the_same_question_with_another_answer_is_another_item(empty):
    data = rows()
    data["test"].append({**data["train"][0], "id": "test-2", "answers": ["Douro"], "context": "elsewhere"})
    assert sentences(checked(empty, data)) == []


def test_answers_and_questions_of_measured_items_in_the_seed_skill_are_faults(empty):
    skill = "A metal that melts in a warm hand is Gallium. The novel Middlemarch: George Eliot. Never answer Pharos."
    found = checked(empty, rows(), skill=f"{skill} If asked: {QUESTIONS['val'][0]}")
    assert found.exit_code == ExitCode.NO
    assert found.findings[0].sentence.startswith("the seed skill quotes answers of selection or test items: ")
    leaked = {name for one in found.findings for name in one.items}
    assert leaked == {"val-0", "test-1"}, "an answer by itself is vocabulary"


def test_a_context_of_train_that_gives_a_test_item_away_is_a_warning(empty):
    data = rows()
    data["train"][0]["context"] = "[DOC] Jupiter is the planet with the Great Red Spot"
    data["train"][1]["context"] = "[DOC] Jupiter is large"
    assert [sentence for _, _, sentence in sentences(checked(empty, data))] == [
        f"{GIVEN_AWAY}: train-0 gives away test-0"
    ]


def test_an_environment_without_secrets_is_checked_for_what_it_tells(empty):
    (empty.directory / "mine.py").write_text(OWN)
    (empty.directory / "mine.yaml").write_text("_base_: searchqa/default\nenv:\n  name: mine.py:Own\n")
    found = ask(check_data, empty, "mine.yaml")
    assert [one.sentence for one in found.findings] == [
        "ids occur more than once in the train split: train-0",
        "the same content is in both the train and the selection split: train-0 = selection-0",
        "the same content is in both the train and the test split: train-0 = test-0",
        "the same content is in both the selection and the test split: selection-0 = test-0",
    ]
    assert found.notes[-1].startswith("the environment does not say which texts are answers")


OWN = """
from skillgit.domain.trajectory import Item
from skillgit.plugin.environment import EnvironmentInfo, Option
from skillgit.plugin.splits import OPTIONS
from skillgit.view.findings import DATA

class Own:
    options = (*OPTIONS, Option(name="max_turns", type=int, default=1, help="None."))
    info = EnvironmentInfo(name="own", summary="Mine.", fields={}, scorer="none", source="here", options=options)
    digest = "one"

    def __init__(self, options, root): pass
    def taxonomy(self): return ""
    def items(self, split):
        return [Item(id=f"{split}-0", content={"x": 0})] * (2 if split == "train" else 1)
"""


def test_a_wrong_configuration_is_no_finding(empty):
    with pytest.raises(ConfigError):
        ask(check_data, empty, "searchqa/default", ("env.split_mode=both",))
