from __future__ import annotations

import pytest

from skillgit_backends.offline.text import all_sentences, documents, overlap, sentences, stem, topics


def test_documents_are_divided_at_their_marks():
    found = documents("[DOC] [TLE] Old trees [PAR] An oak. [PAR] An elm. [DOC] [TLE] Bells [PAR] Ding.")
    assert [(document.title, document.body) for document in found] == [
        ("Old trees", "An oak. An elm."),
        ("Bells", "Ding."),
    ]


def test_text_without_marks_is_one_document():
    assert [(document.title, document.body) for document in documents("An oak.\nAn elm.")] == [("", "An oak. An elm.")]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Renn met J. J. Holm. They left.", 2),
        ("He sang! She slept? Yes.", 3),
        ('She said "go." He went.', 2),
        ("About 3.5 metres. Or less", 2),
        ("", 0),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, count: int):
    assert len(sentences(text)) == count


def test_endings_do_not_hide_a_word():
    assert stem("planted") == stem("plants") == stem("Planting")


def test_small_words_are_no_topics():
    assert topics("Who was it that they met?") == topics("met")


def test_rare_words_weigh_more_than_common_ones():
    found = all_sentences(documents("The oak fell. The oak grew. The oak burned in the chapel. A chapel stood."))
    scores = overlap(topics("Which oak stood?"), found)
    assert max(scores) == scores[3]
