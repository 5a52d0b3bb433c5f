from __future__ import annotations

import re
import string
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Scored
from skillgit.errors import ConfigError
from skillgit_envs.answers import extract, f1, normalise
from skillgit_envs.searchqa import SearchQA, feedback, score

if TYPE_CHECKING:
    from pathlib import Path


def official(prediction: str, gold: str) -> tuple[float, float]:
    """Exact match and F1 as the published evaluation has them, written down a second time."""

    def clean(text: str) -> str:
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    ours, theirs = clean(prediction).split(), clean(gold).split()
    same = sum((Counter(ours) & Counter(theirs)).values())
    if same == 0:
        return float(clean(prediction) == clean(gold)), 0.0
    precision, recall = same / len(ours), same / len(theirs)
    return float(clean(prediction) == clean(gold)), 2 * precision * recall / (precision + recall)


WORDS = st.lists(
    st.sampled_from(["the", "a", "An", "red", "Red!", "cent", "it's", "1,000", "-", "é", "“x”"]), max_size=5
).map(" ".join)


@given(WORDS, WORDS)
def test_scores_are_the_official_ones(prediction: str, gold: str):
    scored = score(prediction, [gold])
    exact, partial = official(prediction, gold)
    if normalise(prediction) and normalise(gold):
        assert scored.hard == exact
        assert scored.soft == pytest.approx(partial)
    else:
        same = prediction.strip().lower() == gold.strip().lower() != ""
        assert scored == Scored(float(same), float(same))


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=4))
def test_soft_is_never_below_hard_and_both_are_best_of_the_golds(prediction: str, golds: list[str]):
    scored = score(prediction, golds)
    assert 0.0 <= scored.hard <= scored.soft <= 1.0
    assert scored.soft == max((f1(prediction, gold) for gold in golds), default=0.0)


@pytest.mark.parametrize(
    ("answer", "gold", "hard", "soft"),
    [
        ("Alexander Fleming", "Alexander Fleming", 1, 1),
        ("the alexander FLEMING.", "Alexander Fleming", 1, 1),
        ("Sir Alexander Fleming in 1928", "Alexander Fleming", 0, 4 / 7),
        ("Seasons in the Sun", '"Seasons In The Sun"', 1, 1),
        ("Grauman's Chinese Theater", "Grauman\\'s Chinese Theater", 1, 1),
        ("red red cent", "red cent", 0, 4 / 5),
        ("", "Jif", 0, 0),
        ("  ", "Jif", 0, 0),
        ("", "A", 0, 0),
        ("a", "A", 1, 1),
        ("...", "A", 0, 0),
        ("the", "A", 0, 0),
    ],
)
def test_scores(answer: str, gold: str, hard: float, soft: float):
    assert score(answer, [gold]).hard == hard
    assert score(answer, [gold]).soft == pytest.approx(soft)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<answer>Jif</answer>", "Jif"),
        ("No: <answer>x</answer>\n<ANSWER>\n Jif\n</Answer> done", "Jif"),
        ("<answer>one <answer>two</answer>", "two"),
        ("<answer>one</answer> </answer>", "one</answer>"),
        ("think\n\n  Jif  \n\n", "Jif"),
        ("</answer> Jif", "</answer> Jif"),
        ("<answer></answer>", ""),
        ("", ""),
        ("İ<answer>İstanbul</answer>", "İstanbul"),
    ],
)
def test_the_answer_is_the_last_tag_or_the_last_line(reply: str, answer: str):
    assert extract(reply) == answer


@given(st.text())
def test_extraction_never_fails(reply: str):
    assert extract(f"{reply}<answer>x</answer>") == "x"
    assert extract(reply) == extract(reply).strip()


def test_feedback_says_what_was_expected_and_how_near_the_answer_came():
    assert feedback("Sir Alexander Fleming in 1928", ["Alexander Fleming"]) == (
        'expected one of: "Alexander Fleming"; the answer "Sir Alexander Fleming in 1928" shares 2 of 5 words'
    )
    assert feedback("", ["x", "y"]) == 'expected one of: "x", "y"; there is no answer'
    assert feedback("bolt", ["Usain Bolt", "Bolt"]) == 'correct: the answer "bolt" matches "Bolt"'
    assert "\n" not in feedback("two\nlines", ['"quoted"'])


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_the_reference_differs_only_where_normalisation_leaves_nothing(prediction: str, golds: list[str]):
    ours, theirs = score(prediction, golds), score(prediction, golds, "skillopt")
    if normalise(prediction):
        assert theirs == ours
    else:
        nothing = float(any(not normalise(gold) for gold in golds))
        assert theirs == Scored(nothing, nothing)


def test_the_scorer_of_the_reference_is_chosen_and_identifies_scores(tmp_path: Path):
    official, reference = SearchQA({}, tmp_path), SearchQA({"scorer": "skillopt"}, tmp_path)
    assert official.digest != reference.digest
    assert feedback("", ["The"], "skillopt").startswith("correct")
    with pytest.raises(ConfigError, match=r"env\.scorer is 'mrqa'"):
        SearchQA({"scorer": "mrqa"}, tmp_path)
