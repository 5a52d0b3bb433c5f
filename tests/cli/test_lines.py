"""The marks of candidates that were made of older versions, screened or raced, on screens."""

from __future__ import annotations

import cli_sample as sample
import pytest

from skillgit.domain.proposal import Screening
from skillgit.view.event_marks import Entry, title
from skillgit.view.progress import place
from skillgit.view.search import screened


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (sample.row("accepted", version=6, base=5, title="t"), "skill: t"),
        (sample.row("accepted", version=6, base=2, title="t"), "skill from v2: t"),
        (sample.row("accepted", version=6, base=5, joined=3, title="t"), "skill from v5 and v3: t"),
        (sample.row("rejected", version=None, base=2, at=5, title="t"), "skill from v2: t"),
        (sample.row("rejected", version=None, base=5, at=5, title="t"), "skill: t"),
        (sample.row("skipped", version=None, base=None, at=5, title="t"), "t"),
        (sample.row("run-started", version=0, base=None, title="t"), "run: t"),
    ],
)
def test_a_line_says_which_older_versions_it_is_made_of(row, says):
    assert title(Entry.of_row(row)) == says


def test_a_screening_is_told_in_words():
    counts = Screening(failing=1, fixed=1, solved=3, broken=0)
    assert screened(counts) == "fixed 1 of 1 train item that failed, broke 0 of 3 train items that passed"


class Look:
    epoch, epochs, step, steps, last = 2, 4, 5, 24, 8


def test_the_steps_of_a_round_are_shown_together():
    assert place(Look()) == "epoch 2/4  steps 5-8/24"
    last_of_round = Look()
    last_of_round.step = 8
    assert place(last_of_round) == "epoch 2/4  step 8/24"
