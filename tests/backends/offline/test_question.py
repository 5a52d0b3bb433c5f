from __future__ import annotations

import pytest

from skillgit_backends.offline.candidates import AnswerKind, candidates, fit, read_question


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Who planted the oak?", AnswerKind.PERSON),
        ("He planted the oak", AnswerKind.PERSON),
        ("This Danish botanist planted the oak", AnswerKind.PERSON),
        ("The man who planted the oak", AnswerKind.PERSON),
        ("Where does the oak stand?", AnswerKind.PLACE),
        ("In which city does the oak stand?", AnswerKind.PLACE),
        ("This island has a famous oak", AnswerKind.PLACE),
        ("When was the oak planted?", AnswerKind.DATE),
        ("In what year was the oak planted?", AnswerKind.DATE),
        ("The oak was planted in this year", AnswerKind.DATE),
        ("How many oaks are there?", AnswerKind.NUMBER),
        ("How tall is the oak?", AnswerKind.NUMBER),
        ("Which novel is about an oak?", AnswerKind.WORK),
        ("This computer stands under the oak", AnswerKind.THING),
        ("It lives in oaks", AnswerKind.THING),
    ],
)
def test_the_kind_of_answer_is_read_off_the_question(text: str, wanted: AnswerKind):
    assert read_question(text).answer_kind is wanted


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("This long African river floods", "river"),
        ("Which mountain is the highest?", "mountain"),
        ("Who planted it?", ""),
        ("What is it?", ""),
    ],
)
def test_the_noun_that_names_the_kind_is_found(text: str, category: str):
    assert read_question(text).category == category


def test_a_clue_describes_what_it_asks_for():
    assert read_question("This bird sings").is_clue
    assert not read_question("Which bird sings?").is_clue


@pytest.mark.parametrize(
    ("sentence", "wanted", "best"),
    [
        ("In Marrowby the treaty was signed by Bruno Hessel in 1904.", AnswerKind.PERSON, "Bruno Hessel"),
        ("In Marrowby the treaty was signed by Bruno Hessel in 1904.", AnswerKind.PLACE, "Marrowby"),
        ("In Marrowby the treaty was signed by Bruno Hessel in 1904.", AnswerKind.DATE, "1904"),
        ("In 1904 Bruno Hessel counted 310 hens.", AnswerKind.NUMBER, "310"),
        ('Bruno Hessel wrote the novel "The Lamp" in Marrowby.', AnswerKind.WORK, "The Lamp"),
    ],
)
def test_the_candidate_of_the_wanted_kind_fits_best(sentence: str, wanted: AnswerKind, best: str):
    found = candidates(sentence)
    assert max(found, key=lambda candidate: fit(candidate, sentence, wanted)).core == best
