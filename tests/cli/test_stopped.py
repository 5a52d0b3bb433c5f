from __future__ import annotations

from dataclasses import replace

import cli_sample as sample

from skillgit.app.history.show import Shown
from skillgit.domain.gate_decision import NoRegression

SUMMARY = replace(sample.REJECTED_EVENT.evaluation, n=40, scored=12, hard=0.0, soft=0.1, unneeded=28, spare=3)
EVENT = replace(
    sample.REJECTED_EVENT, evaluation=SUMMARY, verdict=replace(sample.REJECTED_EVENT.verdict, score=0.7, current=0.7)
)
ROW = replace(sample.R18, score=None, delta=None, bound=0.7)


def test_the_log_shows_the_score_of_a_stopped_candidate_as_a_bound(skillgit, fake):
    fake("history.log.log", replace(sample.LOG, rows=(ROW,)))
    assert "r18 ≤.7000" in skillgit("log").text
    document = skillgit("log", "--json").text
    assert '"score": null' in document
    assert '"bound": 0.7' in document


def test_show_tells_what_was_not_rolled_out(skillgit, fake):
    fake("history.show.show", Shown(row=ROW, event=EVENT, parents=(), evidence_tree="", message="", diff="", items=()))
    text = skillgit("show", "r18").text
    assert "12 of 40 items scored, then the decision was settled: 25 items not rolled out" in text
    assert "hard ≤.7000 ≤ current .7000" in text


def test_show_tells_the_numbers_of_the_policy(skillgit, fake):
    verdict = replace(
        EVENT.verdict, policy="paired", alpha=0.05, no_regression=NoRegression.PINNED, blocked=1, repeats=2
    )
    event = replace(EVENT, verdict=verdict)
    fake("history.show.show", Shown(row=ROW, event=event, parents=(), evidence_tree="", message="", diff="", items=()))
    text = " ".join(skillgit("show", "r18").text.split())
    assert "(paired, alpha 0.05, no regression pinned: 1 blocked, 2 repeats; " in text


def test_status_tells_what_the_early_stop_saved(skillgit, fake):
    run = replace(sample.STATUS.run, selection_items=760, selection_saved=220)
    fake("history.status.status", replace(sample.STATUS, run=run))
    assert (
        "saved       220 of 760 selection items (29%) were not rolled out, by early stop\n" in skillgit("status").text
    )
    fake("history.status.status", sample.STATUS)
    assert "saved" not in skillgit("status").text
