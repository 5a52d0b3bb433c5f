from __future__ import annotations

import pytest

from skillgit_backends.offline.candidates import Shape, candidates, lower_mentions, title_candidate


def cores(sentence: str) -> list[str]:
    return [candidate.core for candidate in candidates(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("In May the painter Nora Finch left Greywick.", ["Nora Finch", "Greywick"]),
        ("The Treaty of Marrowby ended it.", ["Treaty of Marrowby"]),
        ("Nora Finch of Greywick slept.", ["Nora Finch", "Greywick"]),
        ("The hens' coop of St Paul's School burned.", ["St Paul's School"]),
        ("The probe Vela 9 landed.", ["Vela 9"]),
        ("J. J. Renn spoke.", ["J. J. Renn"]),
        ("A Danish sailor drowned.", []),
        ("Walking home, they sang.", []),
        ('He read "The Lamp" twice.', ["The Lamp"]),
        ("They met on 3 May 1902 and in 1904.", ["3 May 1902", "1904"]),
        ("It holds 1,250 hens.", ["1,250"]),
    ],
)
def test_names_dates_numbers_and_quotations_are_found(sentence: str, expected: list[str]):
    assert cores(sentence) == expected


def test_what_is_attached_to_a_name_is_kept_apart():
    (found, *_) = candidates("Dame Nora Finch (a widow) of Greywick, a port, wrote it.")
    assert (found.before, found.core, found.paren, found.tail) == (
        "Dame ",
        "Nora Finch",
        " (a widow)",
        " of Greywick, a port",
    )


def test_a_number_knows_its_qualifier_and_unit():
    (found,) = candidates("It is about 310 metres high.")
    assert (found.before, found.core, found.unit, found.shape) == ("about ", "310", " metres", Shape.NUMBER)


@pytest.mark.parametrize(("sentence", "year"), [("On 3 May 1902 it fell.", "1902"), ("On 3 May it fell.", "")])
def test_a_date_knows_its_year(sentence: str, year: str):
    (found,) = candidates(sentence)
    assert found.year == year


def test_a_rank_alone_is_a_name():
    assert cores("They call it Captain.") == ["Captain"]


def test_a_title_has_its_parenthesis_as_surplus():
    found = title_candidate("Orvale (1927 film)")
    assert (found.core, found.paren) == ("Orvale", " (1927 film)")


def test_things_that_documents_are_titled_after_are_found_in_lower_case():
    (found,) = lower_mentions("Of all metals, tolvium (T) melts last.", frozenset({"tolvium"}))
    assert (found.core, found.paren) == ("tolvium", " (T)")
