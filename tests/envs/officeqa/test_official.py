from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.officeqa.scoring import exact, f1, fault, feedback, final_answer, numbers, score

if TYPE_CHECKING:
    from pathlib import Path


def test_every_official_example_agrees(real: Path):
    examples = json.loads((real / "official_scorer_examples.json").read_text())
    assert len(examples) >= 14
    for example in examples:
        answer, gold = example["predicted"], example["ground_truth"]
        assert score(answer, gold, "official", example["tolerance"]).hard == example["official_score"], example
        assert score(answer, gold, "skillopt", 0.0).hard == example["skillopt_em"], example


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("187.9", "187.90", True),
        ("187.9", "$187.9", True),
        ("187.9", "187.8", False),
        ("36,495", "36495", True),
        ("36,495", "36495.", True),
        ("0", "0.0", True),
        ("0", "0.001", False),
        ("4", "4 %", True),
        ("640.1 million", "640.1", True),
        ("640.1", "640.1 million crowns", True),
        ("640.1 million", "640.1 billion", False),
        ("640.1 million", "640.1m", True),
        ("640.1 million", "640.1k", True),
        ("640.1 million", "640.1 k", False),
        ("4,942 million", "4,942 million in 1985", True),
        ("12.5 billion", "12.5 billion in 1999", True),
        ("4,942 million", "4,942 billion in 1985", False),
        ("640.1 million", "640,100,000", False),
        ("640.1 million", "in millions: 640.1", True),
        ("-11.7", "(11.7)", True),
        ("-11.7", "\u221211.7", True),
        ("-11.7", "-$11.7", True),
        ("-11.7", "11.7", False),
        ("(1,644)", "-1644", True),
        ("($1,962)", "-1962", True),
        ("(1,962)", "-1962", False),
        ("1962", "FY (1962)", True),
        ("88.5", "88.5 in 1961", True),
        ("88.5", "it was 79.3, then 88.5", False),
        ("88.5", "in 1961", False),
        ("88.5", "<b>88.5</b>", False),
        ("88.5", "I am unable to determine 88.5", False),
        ("88.5", "88.5\nor more", False),
        ("88.5", "88.5" + " " * 250 + "x", False),
        ("88.5", "", False),
        ("1961", "1961", True),
        ("1961", "1961 or 1962", False),
        ("July 1961", "july 1961.", True),
        ("July 1961", "in July of 1961", True),
        ("July 1961", "Jul 1961", True),
        ("July 1961", "June 1961", False),
        ("July 1961", "1961", False),
        ("July 1961", "the answer: July, 1961", True),
        ("July 1961", "July 1962", False),
        ("12; 15", "15; 12", True),
        ("12 and 15", "15 and 12", True),
        ("12 and 15", "15; 12", False),
        ("12 and 15", "15", False),
        ("12 to 15", "12 and 15", False),
        ("[10.4, 9.9, 11.7]", "10.4, 9.9, 11.7", True),
        ("[10.4, 9.9, 11.7]", "[9.9, 10.4, 11.7]", False),
        ("[10.4, 9.9, 11.7]", "[10.4, 9.9]", False),
        ("[10.4, 9.9, 11.7]", "10.4 and then 9.9 and 11.7", True),
        ("[7, 300450]", "[7,300,450]", True),
        ("[7300, 450]", "[7,300,450]", True),
        ("[7, 300, 450]", "[7,300,450]", True),
        ("[7, 300, 451]", "[7,300,450]", False),
        ("[73004, 50]", "[7,300,450]", False),
        ("[1,204.6, 873.2]", "[1,204.6,873.2]", True),
        ("[Held abroad, 102.9]", "Held abroad: 102.9", True),
        ("[Held abroad, 102.9]", "[held abroad, 102.9 million]", True),
        ("[Held abroad, 102.9]", "Central bank: 102.9", False),
        ("Ada Thornquist", '"ada  thornquist"', True),
        ("Ada Thornquist (Finance)", "Ada Thornquist", True),
        ("Ada Thornquist", "Minister Ada Thornquist", False),
        ("Ada Thornquist", "Ada Thornquist 1961", False),
        ("88.5", "<FINAL_ANSWER>1</FINAL_ANSWER> no: <FINAL_ANSWER>88.5</FINAL_ANSWER>", True),
    ],
)
def test_the_reward(gold: str, answer: str, right: bool):  # noqa: FBT001 - a column of a table
    assert (fault(answer, gold, 0.0) == "") is right


@pytest.mark.parametrize(("tolerance", "nearest", "beyond"), [(0.001, "200.2", "200.21"), (0.01, "202", "202.01")])
def test_the_limit_of_the_tolerance_is_included(tolerance: float, nearest: str, beyond: str):
    assert fault(nearest, "200", tolerance) == ""
    assert fault(beyond, "200", tolerance) == "a number is another one"
    assert fault(f"[{nearest}, 1]", "[200, 1]", tolerance) == ""
    assert fault(f"[{beyond}, 1]", "[200, 1]", tolerance) != ""


DECIMALS = st.decimals(-(10**9), 10**9, places=2)


@given(DECIMALS)
def test_a_number_is_read_in_each_way_that_it_is_written(value):
    shapes = [f"{value}", f"{value:,}", f"{value} %", f"{value:,} million", f"about {value}, they say"]
    shapes += [f"({-value:,})", f"(${-value})"] if value < 0 and int(value) != value else []
    for shape in shapes:
        assert [number.value for number in numbers(shape)] == [float(value)], shape


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=12))
def test_a_list_without_blanks_is_the_list(values: list[int]):
    gold = f"[{', '.join(map(str, values))}]"
    assert fault(gold, gold, 0.0) == ""
    assert fault(f"[{','.join(f'{value:,}' for value in values)}]", gold, 0.0) == ""
    assert fault(f"[{', '.join(map(str, [*values, 1]))}]", gold, 0.0) != ""


@given(st.text(max_size=300), st.text(max_size=300), st.floats(0, 0.99))
def test_no_answer_breaks_the_scorer(answer: str, gold: str, tolerance: float):
    assert isinstance(fault(answer, gold, tolerance), str)
    assert 0 <= f1(answer, gold) <= 1
    assert not exact(answer, gold) or f1(answer, gold) == 1


def test_a_long_list_of_thousands_is_compared_at_once():
    answer = "[" + ",".join(["1", *["100"] * 55]) + "]"
    assert fault(answer, f"[{', '.join(['1100'] + ['100100'] * 27)}]", 0.0) == ""
    assert fault(answer, f"[{', '.join(['1100'] + ['100101'] * 27)}]", 0.0) != ""


@pytest.mark.parametrize(
    ("gold", "answer", "em", "overlap"),
    [
        ("640.1 million", "640.1", 1, 1),
        ("543 million", "543 Billion dollars", 1, 1),
        ("12.50", "12.5", 0, 0),
        ("5%", "5 %", 0, 0),
        ("1,234", "1234", 1, 1),
        ("Ada Thornquist", "Minister Ada Thornquist", 0, 4 / 5),
        ("million", "", 0, 0),
    ],
)
def test_the_scores_of_the_reference(gold: str, answer: str, em: float, overlap: float):
    scored = score(answer, gold, "skillopt", 0.0)
    assert (scored.hard, scored.soft) == (em, pytest.approx(overlap))


def test_the_answer_is_the_last_block_of_either_name():
    assert final_answer("<answer>1</answer> <FINAL_ANSWER> 2 </FINAL_ANSWER>") == "2"
    assert final_answer("so\n<answer>1</answer>") == "1"
    assert final_answer("so\n3\n", "skillopt") == "3"
    assert final_answer("so\n3\n") == "so\n3"


LINES = ["3", "It is 3.", "The answer is 4.", "", "12.5 million", "<FINAL_ANSWER>3</FINAL_ANSWER>"]


@given(
    st.lists(st.sampled_from(LINES), max_size=4),
    st.sampled_from(["3", "4", "12.5 million", "three"]),
)
def test_a_reply_scores_what_the_official_scorer_gives_the_whole_of_it(lines: list[str], gold: str):
    """The reward takes a reply as it is: several lines without a block are no answer, whichever line comes last."""
    reply = "\n".join(lines)
    assert score(final_answer(reply), gold, "official", 0.0) == score(reply, gold, "official", 0.0)
    if "<" not in reply and len([line for line in lines if line]) > 1:
        assert not score(final_answer(reply), gold, "official", 0.0).passed


def test_feedback_says_what_was_expected_and_what_is_wrong():
    assert feedback("187.90", "187.9", "official", 0.0) == 'correct: the answer "187.90" matches "187.9"'
    assert feedback("1 or 2", "1", "official", 0.0) == (
        'expected "1", not "1 or 2": its count of numbers is 2 where 1 is expected'
    )
    assert feedback("", "1", "official", 0.0) == 'expected "1", not "": there is no answer'
    assert feedback("a c", "a b", "skillopt", 0.0) == 'expected "a b", not "a c", which has a word overlap of 0.50'
