"""What a shortcut is, on small cases: choices in a text, halves, chance, and environments that cannot be measured."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.statistics import binomial_tail, binomial_test
from skillgit.domain.trajectory import Item
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.shortcuts import MOST_ITEMS, AnswerForm, cue_texts, listed_choices, measure_shortcuts

CUE = "None of the statements listed above can hold"


@dataclass
class Quiz:
    """Choices whose right one the content names; ``score`` may wait, ask or fail, as its content says."""

    asked: int = 0

    def answer_choices(self, item):
        return None if item.content.get("judged") else item.content.get("choices", {})

    def secrets(self, item):
        return Secrets(answers=(item.content["right"],), inputs=(item.content.get("question", ""),))

    async def score(self, item, trajectory, judge):
        self.asked += 1
        if item.content.get("asks"):
            await judge.chat([])
        if item.content.get("waits"):
            await _Never()
        return Scored(*[float(trajectory.answer == item.content["right"])] * 2), ""


class _Never:
    def __await__(self):
        yield


def quiz(number: int, **content: object) -> Item:
    return Item(id=f"i{number}", content={"number": number, "right": "A", **content})


def report(items, environment=None):
    return measure_shortcuts(environment or Quiz(), {Split.TRAIN: items, Split.TEST: []})


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("Which?\nA. one\nB. two words", {"A": "one", "B": "two words"}),
        ("Which?\n(A) one\n(B) two", {"A": "one", "B": "two"}),
        ("Which?\nChoices:\nA:30°\nB:45°", {"A": "30°", "B": "45°"}),
        ("Is it (A) red (B) green or (C) blue?", {"A": "red", "B": "green or", "C": "blue?"}),
        ("A. M. Turing\nWhich?\nA) x\nB) y\nC) z", {"A": "x", "B": "y", "C": "z"}),
        ("What is 7?\nB. two\nC. three", {}),
        ("A. Nobody knows.", {}),
        ("", {}),
    ],
)
def test_choices_are_read_from_the_end_of_a_question(text, choices):
    assert listed_choices(text) == choices


def test_items_that_a_model_scores_or_that_wait_are_left_out_and_counted():
    plain = [quiz(number, choices={"A": f"a{number}", "B": f"b{number}"}) for number in range(6)]
    odd = [quiz(7, judged=True), quiz(8, asks=True), quiz(9, waits=True)]
    measured = report([*plain, *odd])
    assert (measured.items, measured.sample) == (9, 6)
    assert measured.reason == "3 items are not scored by the text of an answer"
    assert {shortcut.form for shortcut in measured.shortcuts} == {AnswerForm.CHOICE}


def test_an_environment_that_says_nothing_of_its_choices_is_not_measured():
    measured = report([quiz(1)], object())
    assert (measured.items, measured.sample, measured.shortcuts) == (1, 0, ())
    assert measured.overall is None


def test_of_very_many_items_a_part_is_drawn(monkeypatch):
    monkeypatch.setattr("skillgit.plugin.shortcuts.MOST_ITEMS", 20)
    environment = Quiz()
    measured = report([quiz(number) for number in range(50)], environment)
    assert (measured.items, measured.sample) == (50, 20)
    assert measured.reason.startswith("20 of 50 items were drawn")
    assert environment.asked <= 20 * 6
    assert MOST_ITEMS == 5_000


def test_the_same_items_have_the_same_shortcuts_in_any_order():
    items = [quiz(number, right="AB"[number % 3 == 0], choices={"A": "x" * number, "B": "y"}) for number in range(40)]
    first, second = report(items), report(items[::-1])
    assert [(s.kind, s.rule, s.right) for s in first.shortcuts] == [(s.kind, s.rule, s.right) for s in second.shortcuts]


def test_a_cue_is_a_text_that_is_right_where_it_is_listed_and_not_one_that_is_listed_alone():
    def item(number: int, text: str) -> Item:
        choices = {"A": text, "B": f"value {number} x", "C": f"value {number} y", "D": f"value {number} z"}
        right = "A" if text == CUE else "ABCD"[number % 4]
        return quiz(number, choices=choices, right=right)

    with_cue = [item(number, CUE if number % 2 else f"value {number} w") for number in range(60)]
    without = [item(number, f"value {number} w") for number in range(60)]
    assert cue_texts(Quiz(), {Split.TRAIN: with_cue}) == (CUE,)
    assert cue_texts(Quiz(), {Split.TRAIN: without}) == ()
    assert cue_texts(object(), {Split.TRAIN: with_cue}) == ()


def test_the_scorer_may_be_asked_inside_of_an_event_loop():
    import asyncio  # noqa: PLC0415 - this test alone

    async def inside():
        return report([quiz(number, choices={"A": "x", "B": "y"}) for number in range(4)]).sample

    assert asyncio.run(inside()) == 4


def test_a_scorer_that_fails_leaves_its_item_out():
    class Broken(Quiz):
        async def score(self, *_):
            raise EnvironmentFaultError("no", hint="none")

    assert report([quiz(1), quiz(2)], Broken()).sample == 0


@given(st.integers(1, 60), st.data())
def test_the_binomial_tail_is_half_of_the_exact_two_sided_test_or_all_of_it(n, data):
    successes, share = data.draw(st.integers(0, n)), data.draw(st.sampled_from([0.1, 0.25, 0.5]))
    tail = binomial_tail(successes, n, share)
    assert 0.0 <= tail <= 1.0
    if tail <= 0.25:
        assert 2 * tail == pytest.approx(binomial_test(successes, n, share), rel=1e-6)
    assert binomial_tail(successes + 1, n, share) <= tail + 1e-12
