"""A choice is read out of every ordinary sentence that gives one, and out of none that does not."""

from __future__ import annotations

from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import soak

from skillgit_envs.choices import chosen, label_of, labels_of

FORMS = (
    *(
        "{}",
        "({})",
        "[{}]",
        "{{{}}}",
        "<{}>",
        "{}.",
        "{})",
        "{}:",
        "**{}**",
        "**({})**",
        "`{}`",
        "_{}_",
        '"{}"',
        "'{}'",
        "\u201c{}\u201d",
    ),
    *(
        "${}$",
        r"\boxed{{{}}}",
        r"$\boxed{{{}}}$",
        r"\boxed{{\text{{{}}}}}",
        r"\boxed{{\textbf{{({})}}}}",
        r"\(\boxed{{{}}}\)",
        r"\text{{{}}}",
    ),
    *(
        "<|begin_of_box|>{}<|end_of_box|>",
        "\uff08{}\uff09",
        "Answer\uff1a{}",
        "<choice>{}</choice>",
        '{{"answer": "{}"}}',
        "### {}",
    ),
    *(
        "Answer: {}",
        "**Answer:** {}",
        "**Answer**: {}",
        "ANSWER = {}",
        "answer {}",
        "Answer - {}",
        "Answer \u2014 {}",
        "Ans: {}",
        "Ans. {}",
        "Ans {}",
    ),
    *(
        "The answer is {}",
        "The answer is {}.",
        "The answer is ({}).",
        "The answer is: **{}**",
        "the answer is option {}",
        "My answer is {}.",
    ),
    *(
        "The correct answer is {}.",
        "The correct choice is {}.",
        "Therefore, the correct choice is {}.",
        "So the right option is ({}).",
    ),
    *(
        "The answer must be {}.",
        "The answer would be {}",
        "The answer should therefore be {}.",
        "The best answer here is {}.",
    ),
    *(
        "The answer to the question is {}.",
        "The answer is {} because the rest fails.",
        "The answer is {}, since it alone holds.",
    ),
    *(
        "The answer is {}, not what I first thought.",
        "Final answer: {}",
        "Final Answer: **{}**",
        r"The final answer is \boxed{{{}}}.",
        "Final: {}",
    ),
    *(
        "I choose {}",
        "I choose {}.",
        "I would choose option {}.",
        "I'd go with {}.",
        "I pick ({})",
        "I select {} here",
        "We opt for {}.",
        "My guess: {}",
    ),
    *(
        "Option {}",
        "Option {}.",
        "option ({})",
        "Choice {}",
        "Choice: {}",
        "My choice is {}.",
        "Selection: {}",
        "Letter {}",
        "Correct: {}",
    ),
    *(
        "{} is correct.",
        "{} is the correct answer.",
        "Option {} is correct",
        "({}) is right.",
        "{} must be the right choice.",
        "{} it is.",
    ),
    *(
        "{} because it alone is bounded",
        "{}, because it holds",
        "{} since it holds",
        "It is {}.",
        "It's {}.",
        "It must be {}.",
        "So {}.",
        "Thus, {}.",
    ),
    *(
        "Therefore {}",
        "Hence ({}).",
        "Solution: {}",
        "Conclusion: {}",
        "The correct one is {}.",
        "Answer -> {}",
        "Answer \u2192 {}",
        "The letter is {}.",
    ),
    *(
        "Not an easy one, but the answer is {}.",
        "Correct option: ({})",
        "I'm not sure, but I'd pick {}.",
        "The right statement is {}.",
    ),
)
SMALL = (
    "{}",
    "({})",
    "{}.",
    "{})",
    "**{}**",
    r"\boxed{{{}}}",
    "Answer: {}",
    "The answer is {}.",
    "the answer is ({})",
    "option {}",
    "I choose {}.",
)
WITH_TEXT = (
    *(
        "{} {text}",
        "{}. {text}",
        "{}) {text}",
        "({}) {text}",
        "{}: {text}",
        "{} - {text}",
        "{} \u2014 {text}",
        "**{}.** {text}",
        "**{}. {text}**",
    ),
    *(
        "Answer: {}. {text}",
        "Option {}: {text}",
        "The answer is {}: {text}",
        "The answer is ({}) {text}.",
        "The correct choice is {}, {text}.",
    ),
    *("{}. {text}, because the others fail.", r"\boxed{{{}. {text}}}", "The correct option is {}) {text}"),
)
SMALL_WITH_TEXT = ("{}. {text}", "{}) {text}", "({}) {text}", "Answer: {}) {text}")
PROSE = (
    *(
        "A man walked into the hall",
        "A theorem of this kind needs compactness",
        "A is wrong",
        "(A) is wrong",
        "A. is wrong",
        "a bound",
    ),
    *(
        "not B",
        "Not (B).",
        "The answer is not B",
        "It isn't B.",
        "I would not choose B.",
        "B is not correct.",
        "The wrong answer is B.",
        "neither A nor B",
    ),
    *(
        "either A or B",
        "A or B",
        "A/B",
        "The answer is A or B.",
        "The answer is A, or maybe B",
        "B (or C)",
        "(A) or (B)",
        "B or C is correct",
    ),
    *(
        "The answer is A. The answer is B.",
        "A is correct. B is correct.",
        "Both A and C are true",
        "A, B",
        "A and B",
        "AB",
        "A-C",
        "The answers are A to C",
    ),
    *(
        "I cannot tell",
        "",
        "Z",
        "(Z)",
        "The answer is Z",
        "Be careful",
        "I",
        "The answer is not clear",
        "Is the answer B?",
        "If the answer is A, all is lost",
    ),
    *(
        "The answer is A prime number",
        "The answer is B cells",
        "I do not know",
        "None of them",
        "All of the above",
        "Vitamin B is needed",
        "plan B failed",
        "the set A, being open, is not it",
        "A so-called set",
        "A .json file",
        "A.1 Data",
        "A..B",
        "E.g. so",
        "D:= 9",
        "A-frame",
    ),
)
TEXTS = st.lists(
    st.sampled_from(
        [
            "A",
            "B",
            "set",
            "or",
            "C",
            "is",
            "the",
            "answer",
            "not",
            "open",
            "n > 2",
            "$E$",
            "correct",
            "because",
            "I",
            "(D)",
            "B.",
        ]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


def listing(count: int) -> dict[str, str]:
    return dict(zip(ascii_uppercase[:count], (f"the bound $n^{{{n}}}$ holds" for n in range(count)), strict=True))


@pytest.mark.parametrize("count", [5, soak(26)])
def test_every_label_is_read_in_every_form(count: int):
    choices = listing(count)
    for form in FORMS:
        assert [label_of(form.format(label), choices) for label in choices] == list(choices), form


@pytest.mark.parametrize("form", SMALL)
def test_small_letters_are_labels_where_they_are_marked(form: str):
    choices = listing(5)
    assert [label_of(form.format(label.lower()), choices) for label in choices] == list(choices)


@pytest.mark.parametrize("form", WITH_TEXT)
def test_a_label_before_its_text_is_a_label(form: str):
    choices = listing(9)
    assert [label_of(form.format(label, text=text), choices) for label, text in choices.items()] == list(choices)


@pytest.mark.parametrize("form", SMALL_WITH_TEXT)
def test_a_small_label_before_its_text_is_a_label(form: str):
    choices = listing(9)
    assert [label_of(form.format(label.lower(), text=text), choices) for label, text in choices.items()] == list(
        choices
    )


@pytest.mark.parametrize(
    "form", ["{}", "{}.", "**{}**", "The answer is {}.", "Answer: {}", "I choose {}", "The correct choice is {}"]
)
def test_the_text_of_a_choice_is_its_label(form: str):
    for choices in (listing(9), {"A": "even", "B": "odd", "C": "or"}, {"A": "45\N{DEGREE SIGN}", "B": "4"}):
        assert [label_of(form.format(text.upper()), choices) for text in choices.values()] == list(choices)


@given(st.lists(TEXTS, min_size=2, max_size=5, unique_by=lambda text: text.casefold().rstrip(".")), st.data())
def test_what_choices_say_themselves_never_gives_another_label(texts: list[str], data: st.DataObject):
    choices = dict(zip(ascii_uppercase, texts, strict=False))
    label = data.draw(st.sampled_from(list(choices)))
    form = data.draw(
        st.sampled_from(
            ["{}. {text}", "({}) {text}", "The answer is {}: {text}", "Option {}: {text}", "Answer: {}) {text}"]
        )
    )
    assert label_of(form.format(label, text=choices[label]), choices) == label


@given(
    st.lists(TEXTS, min_size=2, max_size=5, unique_by=lambda text: text.casefold()), st.sampled_from(FORMS), st.data()
)
def test_a_sentence_gives_its_label_whatever_the_choices_say(texts: list[str], form: str, data: st.DataObject):
    choices = dict(zip(ascii_uppercase, texts, strict=False))
    label = data.draw(st.sampled_from(list(choices)))
    said = form.format(label)
    if not any(text.rstrip(".").casefold() in said.casefold() for text in texts if " " in text or text == said):
        assert label_of(said, choices) == label


@pytest.mark.parametrize("prose", PROSE)
def test_what_is_no_answer_gives_no_label(prose: str):
    assert label_of(prose, dict(zip("ABCDE", "12345", strict=True))) == ""


@given(st.sampled_from(FORMS), st.sampled_from(FORMS), st.permutations("ABCDE"))
def test_two_lines_give_what_the_last_one_gives(first: str, last: str, letters: list[str]):
    label = label_of(f"{first.format(letters[0])}\n{last.format(letters[1])}", listing(5))
    assert label in {letters[1], ""}


@given(
    st.sets(st.sampled_from("ABCDE"), min_size=2),
    st.sampled_from([", ", " and ", "\n", "; ", " & ", ""]),
    st.booleans(),
)
def test_several_letters_are_a_set_and_no_single_answer(letters: set[str], between: str, named: bool):  # noqa: FBT001 - hypothesis
    answer = between.join(sorted(letters))
    said = f"The answer is {answer}." if named and between not in {"", "\n"} else answer
    assert labels_of(said, listing(5)) == letters
    assert label_of(said, listing(5)) == ""
    assert chosen(said, "\n".join(letters), listing(5))


@given(st.text(max_size=60), st.integers(0, 26))
def test_any_text_gives_a_known_label_or_none(text: str, count: int):
    assert label_of(text, listing(count)) in {"", *listing(count)}


@pytest.mark.parametrize(
    "part", ["answer ", "A, ", "\\boxed{", "\\text{", "<|begin_of_box|>", "so the ", "(A) or ", "A" * 99]
)
def test_the_longest_reply_is_read_at_once(part: str):
    assert label_of(part * (200_000 // len(part)) + "\nAnswer: B", listing(26)) == "B"
