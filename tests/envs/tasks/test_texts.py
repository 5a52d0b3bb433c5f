from __future__ import annotations

import pytest

from skillgit.errors import DataError, EnvironmentFaultError


@pytest.mark.parametrize(
    ("check", "answers", "answer", "score"),
    [
        ("exact", ["Paris"], " Paris\n", 1.0),
        ("exact", ["Paris"], "paris", 0.0),
        ("normalized", ["the Eiffel Tower"], "Eiffel tower.", 1.0),
        ("normalized", ["Eiffel Tower", "La Tour Eiffel"], "la tour  eiffel", 1.0),
        ("normalized", ["Eiffel Tower"], "Eiffel", 0.0),
        ("contains", ["next tuesday"], "It is due  Next\nTuesday.", 1.0),
        ("contains", ["tuesday", "monday"], "on Monday", 1.0),
        ("contains", ["tuesday"], "", 0.0),
        ("f1", ["red round tower"], "the red tower", 0.8),
        ("numeric", [12.5], "about 12.50 euros", 1.0),
        ("numeric", ["1,234"], "1234", 1.0),
        ("numeric", [3], "2 + 1 = 3", 1.0),
        ("numeric", [-4], "it is \u22124", 1.0),
        ("numeric", [4], "none", 0.0),
        ({"type": "numeric", "abs": 0.5}, [10], "10.5", 1.0),
        ({"type": "numeric", "abs": 0.5}, [10], "10.6", 0.0),
        ({"type": "numeric", "rel": 0.1}, [200], "180", 1.0),
        ({"type": "numeric", "rel": 0.1}, [200], "221", 0.0),
        ({"type": "numeric", "rel": 0.1}, [0], "0.05", 0.0),
    ],
)
def test_an_answer_is_compared_as_the_check_says(graded, check: object, answers: list, answer: str, score: float):
    hard, soft, said = graded({"check": check, "answers": answers}, answer)
    assert (hard, soft) == (float(score == 1.0), pytest.approx(score))
    assert said.startswith("correct" if hard else "expected")


def test_the_check_of_the_options_holds_for_rows_without_one(graded):
    assert graded({"answer": "Tower"}, "the tower")[0] == 1.0
    assert graded({"answer": "Tower"}, "the tower", scorer="exact")[0] == 0.0


def test_the_feedback_names_what_was_expected(graded):
    assert graded({"answers": ["a tower", "a mast"]}, "hut")[2] == (
        'expected one of: "a tower", "a mast"; the answer is "hut"'
    )
    assert graded({"answer": "a"}, " ")[2] == 'expected: "a"; there is no answer'


@pytest.mark.parametrize(("answer", "score"), [("B", 1.0), ("(b)", 1.0), ("a shed", 1.0), ("A", 0.0), ("C", 0.0)])
def test_a_choice_is_a_label_or_its_text(graded, answer: str, score: float):
    row = {"choices": ["a house", "a shed"], "answer": "a shed", "check": "choice"}
    assert graded(row, answer)[0] == score


@pytest.mark.parametrize(
    ("fields", "answer", "score"),
    [
        ({"pattern": r"\d{4}-\d\d"}, "on 2024-05 or so", 1.0),
        ({"pattern": r"\d{4}-\d\d", "match": "full"}, "on 2024-05", 0.0),
        ({"pattern": "yes"}, "YES", 0.0),
        ({"pattern": "yes", "ignore_case": True}, "YES", 1.0),
    ],
)
def test_a_regular_expression_is_found_or_is_all_of_it(graded, fields: dict, answer: str, score: float):
    hard, _, said = graded({"check": {"type": "regex", **fields}}, answer)
    assert hard == score
    assert fields["pattern"] not in said, "the optimizer is not told what the check looks for"


def test_a_regular_expression_without_end_is_a_fault_and_no_score(graded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("skillgit_envs.tasks.checks.comparisons._REGEX_SECONDS", 0.1)
    with pytest.raises(EnvironmentFaultError, match=r"took more than 0\.1 seconds"):
        graded({"check": {"type": "regex", "pattern": "(a|aa)+$"}}, "a" * 60 + "c")


def test_several_checks_add_up_by_weight_and_must_all_pass(graded):
    checks = [
        {"type": "contains", "answer": "red", "weight": 3},
        {"type": "numeric", "name": "doors", "answer": 4, "message": "count the doors"},
    ]
    assert graded({"checks": checks}, "red, 4")[:2] == (1.0, 1.0)
    hard, soft, said = graded({"checks": checks}, "red, 5")
    assert (hard, soft) == (0.0, 0.75)
    assert said == "- contains: passed; correct\n- doors: failed; count the doors"


def test_a_lower_bar_lets_partial_credit_pass(graded):
    row = {"answer": "red round tower", "check": {"type": "f1", "pass": 0.7}}
    assert graded(row, "the red tower")[:2] == (1.0, pytest.approx(0.8))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"check": {"type": "exactly"}}, "check 1 is of the type 'exactly', which is none"),
        ({"check": {"type": "exact"}}, "check 1, exact, needs 'answers'"),
        ({"check": {"type": "regex"}}, "check 1, regex, needs 'pattern'"),
        ({"check": {"type": "regex", "pattern": "("}}, "has a pattern that is not a regular expression"),
        ({"check": {"type": "regex", "pattern": "x", "match": "all"}}, "neither search nor full"),
        ({"check": {"type": "regex", "pattern": "x", "flags": "i"}}, "regex, has no field 'flags'"),
        ({"check": {"type": "regex", "pattern": 7}}, "has a 'pattern' of the wrong type"),
        ({"check": {"type": "numeric", "answer": "many"}}, "which has no number"),
        ({"check": {"type": "numeric", "answer": 1, "abs": -1}}, "has a negative 'abs'"),
        ({"check": {"type": "numeric", "answer": True}}, "has a 'answer' of the wrong type"),
        *(
            ({"check": {"type": "exact", "answer": "a", "weight": weight}}, "weight that is not above 0 and at most")
            for weight in (0, -1, 1e300)
        ),
        ({"check": {"type": "exact", "answer": "a", "pass": 2}}, "has a 'pass' that is not between 0 and 1"),
        ({"check": "choice", "answer": "a"}, "choice, needs the field 'choices'"),
        ({"check": "choice", "choices": ["a", "b"], "answer": "c"}, "choice, needs one answer"),
        ({"check": "exact", "checks": ["exact"]}, "has both 'check' and 'checks'"),
        ({"checks": "exact"}, "has 'checks' that are not a list"),
        ({"checks": [7]}, "check 1 is not an object"),
        ({}, "does not say what a right result is"),
    ],
)
def test_a_wrong_check_is_named_with_its_place(graded, row: dict, said: str):
    with pytest.raises(DataError, match=r"^the row") as caught:
        graded(row, "a")
    assert said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("gold", "wrong", "right"),
    [
        ("3/4", "1/4", "0.75"),
        ("42 m^2", "17 m^2", "42 square metres"),
        ("3 million", "3", "3,000,000"),
        ("$5", "5 km", "5 dollars"),
        ("12%", "1.2", "12 percent"),
    ],
)
def test_a_number_is_compared_as_it_is_meant(graded, gold: str, wrong: str, right: str):
    assert graded({"check": "numeric", "answer": gold}, wrong)[0] == 0.0
    assert graded({"check": "numeric", "answer": gold}, right)[0] == 1.0


@pytest.mark.parametrize("gold", ["12:30", "2024-05-01", "3:1", "3 to 5", "7.10**3", "1, 2 and 3", "4 May 1871"])
def test_what_is_not_one_number_is_refused_when_the_file_is_read(graded, gold: str):
    with pytest.raises(DataError, match="check 1, numeric, has the answer") as error:
        graded({"check": "numeric", "answer": gold}, gold)
    assert "text" in error.value.hint or "answers" in error.value.hint
