"""BabyVision: rows as they are published are read, and rules and a judge score what they promise to."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from over_the_wire import events, train
from reading import items_in
from saying import Repeats
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import DataError, EnvironmentFaultError
from skillgit.plugin.backend import Image
from skillgit.plugin.environment import asks_judge, call_bounds
from skillgit_envs.babyvision import BabyVision

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def row(**fields: object) -> dict[str, object]:
    return {
        "taskId": 9001,
        "type": "Visual Tracking",
        "subtype": "Maze",
        "image": "images/9001.png",
        "question": "Which exit does the path reach?",
        "ansType": "choice",
        "options": ["1", "2", "3"],
        "choiceAns": 2,
        "blankAns": None,
        "coT": "",
        **fields,
    }


def read(folder: Path, *rows: dict[str, object]) -> list[Item]:
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images/9001.png").write_bytes(PNG)
    path = folder / "meta_data.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    return items_in(BabyVision, path)


def hard(environment: BabyVision, item: Item, answer: str, judge: Repeats | None = None) -> float:
    trajectory = Trajectory(item_id=item.id, turns=(), answer=answer)
    return asyncio.run(environment.score(item, trajectory, judge or Repeats("")))[0].hard


@pytest.mark.parametrize("number", [2, "2"])
def test_the_number_of_a_choice_counts_from_0_also_where_it_is_text(number, tmp_path):
    (item,) = read(tmp_path, row(choiceAns=number))
    assert item.content["answer"] == "C", "the option that reads '2' is B"
    assert item.task_type == "Visual Tracking"


@pytest.mark.parametrize("name", ["images/9001.png", "9001.png"])
def test_a_picture_is_found_beside_the_data_and_in_their_folder(name, tmp_path):
    assert read(tmp_path, row(image=name))[0].content["pictures"]


def test_a_blank_question_about_a_picture_is_one(tmp_path):
    assert read(tmp_path, row(question="\u00a0"))[0].content["question"] == "\u00a0"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"choiceAns": 3}, "has 3 options, and 3 is the number of none of them"),
        ({"choiceAns": -1}, "is the number of none of them"),
        ({"choiceAns": None}, "None is the number of none of them"),
        ({"ansType": "blank", "blankAns": "null"}, "has no blankAns"),
        ({"question": ""}, "has no question"),
        ({"image": ""}, "has no image"),
        ({"image": "images/9.png"}, "there is no picture images/9.png"),
        ({"options": [str(n) for n in range(30)], "choiceAns": 29}, "is the number of none of them"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_and_not_dropped(fields, sentence, tmp_path):
    with pytest.raises(DataError, match=re.escape(sentence)):
        read(tmp_path, row(**fields))


def test_the_picture_is_shown_with_the_choices_and_without_the_reasoning(tmp_path):
    (item,) = read(tmp_path, row(coT="Follow the wall on the left."))
    assert "wall" not in json.dumps(item.content)
    environment, target = BabyVision({}, tmp_path), Repeats("I see. <answer>C</answer>")
    shipped = environment.items(Split.TRAIN)[0]
    trajectory = asyncio.run(environment.rollout(shipped, environment.seed_skill(), target))
    assert isinstance(target.heard[0][1].parts[1], Image)
    assert trajectory.answer == "C"
    assert environment.question(item).endswith("<choices>\n(A) 1\n(B) 2\n(C) 3\n</choices>")


@given(st.sampled_from(["10,5", "(10,5)", "( 10 , 5 )", "(10, 5)."]))
def test_a_free_answer_may_be_written_loosely(answer):
    content = {"question": "?", "choices": [], "images": [], "pictures": [], "answer": "10,5"}
    environment = BabyVision({}, Path("/"))
    assert hard(environment, Item(id="1", content=content), answer) == 1.0
    assert hard(environment, Item(id="1", content=content), "(5,10)") == 0.0


def test_a_verdict_is_one_word_and_what_merely_contains_it_is_none(tmp_path):
    environment = BabyVision({"scorer": "official"}, tmp_path)
    item = environment.items(Split.TEST)[0]
    assert asks_judge(environment)
    assert call_bounds(environment, item).judge == (0, 1)
    assert [hard(environment, item, "x", Repeats(word)) for word in ("True", "false.", "**TRUE**")] == [1.0, 0.0, 1.0]
    assert hard(environment, item, "x", Repeats("That is not true", "False")) == 0.0
    with pytest.raises(EnvironmentFaultError, match="neither True nor False"):
        hard(environment, item, "x", Repeats("not true"))
    silent = Repeats("True")
    assert hard(environment, item, " ", silent) == 0.0
    assert not silent.heard


@pytest.mark.soak
def test_it_trains_over_the_wire_with_a_judge(tmp_path):
    said = (
        (TARGET, "<answer>A</answer>"),
        ("You compare the answer", "True"),
    )
    backend = ("-o", "env.scorer=official", "-o", "model.judge_backend=openai_compatible", "-o", "model.judge=analyst")
    repository, asked = train(tmp_path, "babyvision", *backend, scripted=said, keep=True)
    pictures = [entry for entry in asked if "image_url" in json.dumps(entry.document)]
    assert pictures
    assert events(repository)[0]["kind"] == "run-finished"
