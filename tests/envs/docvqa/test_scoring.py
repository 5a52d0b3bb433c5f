from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.docvqa import RULES, feedback, score, similarity

if TYPE_CHECKING:
    from pathlib import Path

OFFICIAL, PAPER = RULES["official"], RULES["skillopt"]
TEXTS = st.text("abAB 1.$", max_size=8)


@pytest.mark.parametrize(
    ("answer", "gold", "official", "paper"),
    [
        ("Harrow", "harrow ", 1.0, 1.0),
        ("New   locks", "new locks", 1.0, 1.0),
        ("", "", 1.0, 1.0),
        ("", "x", 0.0, 0.0),
        ("ab", "ax", 0.5, 0.0),
        ("abcd", "abxy", 0.5, 0.0),
        ("abc", "axy", 0.0, 0.0),
        ("abc", "abx", 2 / 3, 2 / 3),
        ("   ab", "ax", 0.8, 0.0),
        ("$12.50", "12.50", 5 / 6, 5 / 6),
    ],
)
def test_the_two_rules_differ_at_the_boundary_and_in_the_lengths(answer, gold, official, paper):
    assert similarity(answer, gold, OFFICIAL) == pytest.approx(official)
    assert similarity(answer, gold, PAPER) == pytest.approx(paper)


@given(TEXTS, TEXTS)
def test_a_similarity_is_symmetric_and_between_0_and_1(one: str, other: str):
    for rule in RULES.values():
        found = similarity(one, other, rule)
        assert found == similarity(other, one, rule)
        assert found == 0.0 or 0.5 <= found <= 1.0
    assert similarity(one, other, OFFICIAL) >= similarity(one, other, PAPER)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_the_best_of_the_accepted_answers_counts(answer: str, golds: list[str]):
    scored = score(answer, golds, OFFICIAL)
    assert scored.soft == max(similarity(answer, gold, OFFICIAL) for gold in golds)
    assert scored.hard == float(scored.soft >= 0.999)


def test_the_feedback_says_what_was_expected_and_how_near_it_was():
    assert feedback("Tent 2", ["tent 2"], 1.0) == 'correct: "Tent 2"'
    assert feedback("Tent", ["Tent 2"], 0.67) == 'expected one of: "Tent 2"; the answer "Tent" has a similarity of 0.67'


def test_real_answers_of_a_model_score_a_little_more_by_the_script_than_by_the_paper(real: Path):
    rows = json.loads((real / "real_predictions_mplug.json").read_text())
    answer = next(key for key in rows[0] if "answer" in key.lower() and key != "answers")
    scores = [
        tuple(score(str(row[answer]), ast.literal_eval(row["answers"]), rule).soft for rule in (OFFICIAL, PAPER))
        for row in rows
    ]
    assert len(scores) >= 29
    assert all(official >= paper for official, paper in scores)
    assert {official for official, paper in scores if official != paper} <= {0.5} | {s for s, _ in scores}
    official, paper = (sum(column) / len(scores) for column in zip(*scores, strict=True))
    assert 0.0 <= official - paper < 0.05
