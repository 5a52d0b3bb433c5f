"""What all items share, such as instructions and lists of choices, makes no two of them alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.leaks import words
from skillgit.plugin.likeness import alike, alike_to

SECTIONS = (
    "admin cli-mono devel doc games gnu-r graphics java kernel libdevel libs math net perl python science utils web x11"
)
FORMS = {
    "choices behind": "{}\n" + "\n".join(f"{number}. {name}" for number, name in enumerate(SECTIONS.split())),
    "choices on a line": "{} Choose one of: " + ", ".join(SECTIONS.split()),
    "instructions before": "Read the ticket below with care. Name the queue that looks at it, and nothing else.\n{}",
    "instructions around": "You get a message of a customer of ours:\n{}\nWhich team of ours answers it? Name it.",
    "a document": "Context: the handbook says that every case is filed by its subject and never by its sender. {}",
    "a scale": "{} Rate it from 1, which is very bad, to 5, which is very good, and explain the number in a sentence.",
}
SUBJECTS = [
    "lbzip2: fast, multi-threaded bzip2 utility",
    "tilp2: communication program for hand-helds",
    "crimson: hex-based game",
    "isomaster: graphical editor of disc images",
    "fortunes-br: data files with fortune cookies in Portuguese",
    "apvlv: PDF viewer with Vim-like behaviour",
    "tcpslice: extract pieces of tcpdump files",
    "exo-utils: utility files",
    "yaws-chat: chat application for Yaws webserver",
    "tuxmath-data: math game for kids",
    "elpa-geiser: Scheme for Emacs",
    "task-arabic: Arabic environment",
]
RETRY = "Apvlv: a PDF viewer with Vim-like behaviour"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("copies", [1, 6])
def test_items_of_one_form_are_alike_by_what_is_their_own(form, copies):
    subjects = [f"{subject} number{copy}" if copy else subject for subject in SUBJECTS for copy in range(copies)]
    subjects = subjects if copies == 1 else [f"{subject} of {subject[::-1]}" for subject in subjects]
    texts = [" ".join(words(FORMS[form].format(subject))) for subject in (*subjects, RETRY)]
    pairs = {frozenset(pair) for pair in alike(texts)}
    if copies == 1:
        assert pairs == {frozenset((SUBJECTS.index("apvlv: PDF viewer with Vim-like behaviour"), len(SUBJECTS)))}
        assert alike_to(texts[-1], texts[:-1]) == [5]
    else:
        assert all(
            subjects[min(pair)].split(":")[0] == subjects[max(pair)].split(":")[0] for pair in map(sorted, pairs)
        )


WORDS = st.lists(
    st.sampled_from(["red", "river", "stone", "bridge", "mill", "tower", "harbour", "garden"]), min_size=4, max_size=8
)


@given(st.lists(WORDS, min_size=5, max_size=12, unique_by=tuple), st.integers(5, 60), st.booleans())
def test_what_is_put_around_all_items_makes_no_pair(subjects, length, is_behind):
    form = " ".join(f"common{number}" for number in range(length))
    plain = [f"own{number}a own{number}b {' '.join(subject)}" for number, subject in enumerate(subjects)]
    texts = [f"{text} {form}" if is_behind else f"{form} {text}" for text in plain]
    assert {frozenset(pair) for pair in alike(texts)} == {frozenset(pair) for pair in alike(plain)}
