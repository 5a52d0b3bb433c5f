from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from saying import Repeats
from wire.scripted import TARGET

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError
from skillgit_envs.searchqa import SearchQA

if TYPE_CHECKING:
    from pathlib import Path


GOLD = "Oxford Gold"


def item() -> Item:
    return Item(id="a", content={"question": "Which?", "context": "[DOC] c", "answers": [GOLD]})


def test_the_target_is_asked_once_and_never_sees_the_gold(tmp_path: Path):
    environment, target = SearchQA({}, tmp_path), Repeats("Hm.\n<answer> Oxford Silver </answer>")
    trajectory = asyncio.run(environment.rollout(item(), environment.seed_skill(), target))
    (heard,) = target.heard
    assert [message.role for message in heard] == ["system", "user"]
    assert "Read the search results" in heard[0].text
    assert "name: searchqa" not in heard[0].text
    assert not [message for message in heard if GOLD in message.text]
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant"]
    assert trajectory.turns[0].content == heard[1].text
    assert trajectory.answer == "Oxford Silver"
    assert asyncio.run(environment.score(item(), trajectory, target)) == (
        Scored(0.0, 0.5),
        'expected one of: "Oxford Gold"; the answer "Oxford Silver" shares 1 of 2 words',
    )


def reviewed(turns: int, *texts: str, folder: Path) -> tuple[Repeats, str, int]:
    environment, target = SearchQA({"max_turns": turns}, folder), Repeats(*texts)
    trajectory = asyncio.run(environment.rollout(item(), environment.seed_skill(), target))
    return target, trajectory.answer, len(trajectory.turns)


def test_a_review_sees_skill_context_question_and_the_answer_before(tmp_path: Path):
    target, answer, turns = reviewed(2, "<answer>Oxford Silver</answer>", f"<answer>{GOLD}</answer>", folder=tmp_path)
    assert (answer, turns) == (GOLD, 4)
    first, second = target.heard
    assert [message.role for message in second] == ["system", "user"]
    assert second[0] == first[0]
    form = "Give the final answer between <answer> and </answer>."
    assert second[1].text.startswith(first[1].text.removesuffix(form))
    assert form not in second[1].text, "the request to review asks for the same form"
    assert second[1].text.endswith("between <answer> and </answer>.")
    assert "<context>\n[DOC] c\n</context>" in second[1].text
    assert "<question>\nWhich?\n</question>" in second[1].text
    assert "<previous_answer>\nOxford Silver\n</previous_answer>" in second[1].text


@pytest.mark.parametrize(
    ("turns", "texts", "answer", "calls"),
    [
        (3, ("<answer>a</answer>", "<answer>b</answer>", "<answer>c</answer>"), "b", 2),
        (3, ("<answer>a</answer>", "Looks right.", "<answer>c</answer>"), "c", 3),
        (2, ("<answer>a</answer>", "Looks right."), "a", 2),
        (2, ("Well.\na", "Hm.\nb"), "b", 2),
        (3, ("a", "<answer>b</answer>", "<answer>c</answer>"), "b", 2),
        (1, ("a", "<answer>b</answer>"), "a", 1),
    ],
)
def test_reviews_end_with_an_answer_and_never_lose_one(
    tmp_path: Path, turns: int, texts: tuple[str, ...], answer: str, calls: int
):
    target, found, _ = reviewed(turns, *texts, folder=tmp_path)
    assert (found, len(target.heard)) == (answer, calls)


def test_reviews_change_the_digest_and_their_absence_does_not(tmp_path: Path):
    digests = [SearchQA({"max_turns": turns}, tmp_path).digest for turns in (1, 2, 3)]
    assert len(set(digests)) == 3
    assert digests[0] == SearchQA({}, tmp_path).digest != "b569113730ae", "that of other prompts"


def test_less_than_one_turn_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"env\.max_turns is 0; it must be at least 1"):
        SearchQA({"max_turns": 0}, tmp_path)


def test_items_are_read_when_they_are_wanted(tmp_path: Path):
    environment = SearchQA({"data_path": "nowhere.json"}, tmp_path)
    assert environment.digest
    assert len(SearchQA({"limit": 3}, tmp_path).items(Split.TEST)) == 3


@pytest.mark.soak
def test_reviews_go_over_the_wire(tmp_path: Path):
    said = (
        (TARGET, "<answer>Oxford Silver</answer>"),
        ("<previous_answer>", "<answer>Oxford Gold</answer>"),
    )
    repository, asked = train(tmp_path, "searchqa", "-o", "env.max_turns=2", scripted=said, keep=True)
    questions = [entry for entry in asked if entry.role == "target" and "<question>" in str(entry.document)]
    reviews = [entry for entry in questions if "<previous_answer>" in str(entry.document)]
    assert 0 < len(reviews) * 2 == len(questions)
    assert all("<context>" in str(entry.document) and "Oxford Silver" in str(entry.document) for entry in reviews)
    assert events(repository)[0]["kind"] == "run-finished"
