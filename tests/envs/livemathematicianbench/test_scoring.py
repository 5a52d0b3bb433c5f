from __future__ import annotations

from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.answers import extract
from skillgit_envs.choices import label_of
from skillgit_envs.livemathematicianbench import reference_label, score

CHOICES = dict(zip(ascii_uppercase[:9], (f"the bound $n^{{{n}}}$ holds" for n in range(9)), strict=True))
WRAPPINGS = (
    *(
        "{}",
        "({})",
        "{}.",
        "{})",
        "**{}**",
        "[{}]",
        "`{}`",
        "${}$",
        "\\boxed{{{}}}",
        "$\\boxed{{{}}}$",
        "\\(\\boxed{{\\text{{{}}}}}\\)",
    ),
    *("Answer: {}", "The answer is {}.", "the correct answer is ({})", "Option {}", "choice {}.", "**Answer:** {}"),
    *(
        "The final answer is \\boxed{{{}}}.",
        "Final answer: **{}**",
        "My answer is option {}",
        "the answer is: **({})**",
    ),
)


@given(st.sampled_from(list(CHOICES)), st.sampled_from(WRAPPINGS), st.booleans(), st.text(" \n", max_size=3))
def test_a_label_is_found_in_every_wrapping(label: str, wrapping: str, tagged: bool, blank: str):  # noqa: FBT001 - hypothesis
    said = wrapping.format(label)
    reply = (
        f"First A seems right.\n<answer>{blank}{said}{blank}</answer>"
        if tagged
        else f"First A seems right.\n{said}{blank}"
    )
    assert label_of(extract(reply), CHOICES) == label


@given(st.sampled_from(list(CHOICES)), st.sampled_from(["{}. {}", "({}) {}", "{}) {}", "{}: {}", "Answer: {}. {}"]))
def test_a_label_with_the_text_of_its_choice_is_a_label(label: str, form: str):
    assert label_of(form.format(label, CHOICES[label]), CHOICES) == label


@given(st.sampled_from(list(CHOICES)))
def test_the_text_of_a_choice_is_its_label(label: str):
    assert label_of(CHOICES[label].upper() + ".", CHOICES) == label


@pytest.mark.parametrize(
    "prose",
    [
        *(
            "A theorem of this kind needs compactness",
            "A is wrong",
            "I cannot tell",
            "",
            "Z",
            "(Z)",
            "AB",
            "A or B",
            "A, B",
        ),
        *("a bound", "Be careful", "I", "The answer is not clear", "Both A and C are true"),
    ],
)
def test_prose_gives_no_label(prose: str):
    known = dict(zip("ABCDE", "12345", strict=True))
    assert label_of(prose, known) == ""


@given(st.text(max_size=40))
def test_any_text_gives_a_known_label_or_none(text: str):
    assert label_of(text, CHOICES) in {"", *CHOICES}


def test_more_than_seven_choices_have_labels():
    assert label_of("(I)", CHOICES) == "I"


def test_the_score_is_the_accuracy_and_the_feedback_names_both():
    scored, feedback = score("(B)", CHOICES, CHOICES["B"])
    assert (scored.hard, scored.soft, feedback) == (1.0, 1.0, "correct: B")
    scored, feedback = score("C", CHOICES, CHOICES["B"])
    assert (scored.hard, scored.soft) == (0.0, 0.0)
    assert feedback == f"expected B. {CHOICES['B']}\nthe answer gives C. {CHOICES['C']}"
    assert score("no idea", CHOICES, CHOICES["B"])[1].endswith("the answer gives no label")


@pytest.mark.parametrize(
    ("answer", "official", "reference"),
    [
        *(
            ("B", "B", "B"),
            (" b.) ", "B", "B"),
            ("two", "B", "B"),
            ("B because", "B", "B"),
            ("b rather than A", "", "B"),
        ),
        *(("A is wrong", "", "A"), ("(B)", "B", ""), (r"\\boxed{B}", "B", ""), ("Answer: B", "B", ""), ("", "", "")),
        *(("B, since", "B", ""), ("B - two", "B", "B"), ("B two", "B", "B"), ("Z", "", "")),
    ],
)
def test_the_reference_reads_the_first_word_and_no_wrapping(answer: str, official: str, reference: str):
    known = {"A": "one", "B": "two"}
    assert (label_of(answer, known), reference_label(answer, known)) == (official, reference)
    assert score(answer, known, "two", "skillopt")[0].hard == float(reference == "B")
