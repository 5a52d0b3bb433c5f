"""MMRB: rows with several pictures are read, shown in their order, and scored by each of three rules."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from over_the_wire import events, train
from reading import items_in
from saying import Repeats
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import DataError
from skillgit.plugin.backend import Image
from skillgit_envs.mmrb import MMRB, extracted

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ["(A) the cat", "(B) the dog", "(C) the horse", "(D) a cat and a dog"]


def row(**fields: object) -> dict[str, object]:
    return {
        "source": "DemoSet",
        "subtask": "Visual Ordering",
        "index": 0,
        "question": f"{{image#1}} {{image#2}} Which came first? {' '.join(OPTIONS)}",
        "options": OPTIONS,
        "question_type": "multi-choice",
        "answer": "B",
        "image_paths": ["img/0_0.png", "img/0_1.png"],
        "reasoning_steps": [],
        **fields,
    }


def read(folder: Path, *rows: dict[str, object]) -> list[Item]:
    (folder / "img").mkdir(exist_ok=True)
    for number in range(2):
        (folder / f"img/0_{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number]))
    path = folder / "001_human.json"
    path.write_text(json.dumps(rows))
    return items_in(MMRB, path)


def hard(folder: Path, scorer: str, item: Item, answer: str) -> float:
    environment = MMRB({"scorer": scorer}, folder)
    trajectory = Trajectory(item_id=item.id, turns=(), answer=answer)
    return asyncio.run(environment.score(item, trajectory, None))[0].hard


def test_pictures_follow_the_question_in_their_order(tmp_path):
    environment, target = MMRB({}, tmp_path), Repeats("<answer>B</answer>")
    item = next(item for item in environment.items(Split.TRAIN) if len(item.content["images"]) > 2)
    asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    text, *pictures = target.heard[-1][1].parts
    assert "{image#3}" in text.text
    assert len(pictures) == 3
    assert all(isinstance(picture, Image) for picture in pictures)
    assert len({picture.data for picture in pictures}) == 3


def test_an_item_is_known_by_source_subtask_and_number(tmp_path):
    (item,) = read(tmp_path, row())
    assert (item.id, item.task_type) == ("DemoSet:Visual-Ordering:0", "Visual Ordering")
    assert len(set(item.content["pictures"])) == 2


def test_a_blank_question_about_pictures_is_one(tmp_path):
    assert read(tmp_path, row(question="\u00a0"))[0].content["question"] == "\u00a0"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"question": "{image#3} What?"}, "names picture 3 and has 2"),
        ({"question": "{image#0} What?"}, "names picture 0 and has 2"),
        ({"image_paths": []}, "names picture 1 and has 0"),
        ({"image_paths": ["img/0_0.png", "img/9.png"]}, "there is no picture img/9.png"),
        ({"answer": ""}, "has no answer"),
        ({"subtask": ""}, "has no subtask"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(fields, sentence, tmp_path):
    with pytest.raises(DataError, match=re.escape(sentence)):
        read(tmp_path, row(**fields))


@given(st.sampled_from([set(pair) for size in (1, 2, 3) for pair in combinations("ABCD", size)]), st.data())
def test_the_strict_rule_wants_all_letters_and_no_other(tmp_path_factory, letters, data):
    folder = tmp_path_factory.getbasetemp()
    (item,) = read(folder, row(answer="".join(sorted(letters))))
    order = data.draw(st.permutations(sorted(letters)))
    assert hard(folder, "strict", item, ", ".join(order)) == 1.0
    other = data.draw(st.sampled_from(sorted(set("ABCD") - letters)))
    assert hard(folder, "strict", item, ", ".join([*order, other])) == 0.0


@pytest.mark.parametrize(
    ("answer", "strict", "official", "skillopt"),
    [
        ("B", 1, 1, 1),
        ("(B)", 1, 1, 0),
        ("B. the dog", 1, 1, 0),
        ("the dog", 1, 0, 1),
        ("Answer[ B ]", 1, 1, 0),
        (r"\boxed{B}", 1, 1, 0),
        ("C", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_a_choice_by_each_rule(answer, strict, official, skillopt, tmp_path):
    (item,) = read(tmp_path, row())
    assert [hard(tmp_path, scorer, item, answer) for scorer in ("strict", "official", "skillopt")] == [
        strict,
        official,
        skillopt,
    ]


def test_one_text_in_the_other_is_right_where_it_is_so_at_the_source(tmp_path):
    (item,) = read(tmp_path, row(options=[], question="{image#1} {image#2} How many?", answer="12"))
    assert [hard(tmp_path, scorer, item, "1") for scorer in ("strict", "official", "skillopt")] == [0.0, 1.0, 1.0]
    assert hard(tmp_path, "strict", item, "12.0") == 1.0


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("Answer[ C ]", "C"),
        ("so Answer[A, B]", "A, B"),
        (r"it is \boxed{D}", "D"),
        ("B", "B"),
        ("(B) the dog", "(B) the dog"),
        ("The answer is B.", "B"),
    ],
)
def test_the_forms_of_the_authors_are_read(answer, letter):
    assert extracted(answer) == letter


@pytest.mark.soak
def test_several_pictures_go_over_the_wire(tmp_path):
    said = ((TARGET, "<answer>A</answer>"),)
    repository, asked = train(tmp_path, "mmrb", scripted=said, keep=True)
    assert max(json.dumps(entry.document).count('"image_url"') for entry in asked if entry.role == "target") >= 2
    assert events(repository)[0]["kind"] == "run-finished"
