"""What a finished run says of its placebos, and an edit of what it did, has to follow from the rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from sample_run import RUN, as_json, clock_from, transitions

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.placebo import Placebo
from skillgit.store.event_writer import RunWriter


def problems(repo, change) -> list[str]:
    writer = RunWriter(repo, RUN, clock_from(count()))
    for sample in transitions():
        made = change(sample)
        writer.append(made.event, made.skill, made.evidence)
    return [problem.sentence for problem in check_run(repo, RUN)]


@pytest.mark.parametrize(
    ("told", "rows", "sound"),
    [
        (Placebo(n=2, accepted=1), [True, False], True),
        (Placebo(n=2, accepted=0), [True, False], False),
        (Placebo(n=3, accepted=1), [True, False], False),
        (None, [False], False),
        (Placebo(n=1, accepted=0), None, False),
    ],
)
def test_the_placebos_of_a_commit_are_those_of_its_evidence(told, rows, sound, repo):
    def change(sample):
        if sample.event.kind is not EventKind.RUN_FINISHED:
            return sample
        files = {} if rows is None else {"placebo.json": as_json([{"accepted": row} for row in rows])}
        return replace(sample, event=replace(sample.event, placebo=told), evidence={**sample.evidence, **files})

    wrong = ["the evidence has other placebos than the commit"]
    assert problems(repo, change) == ([] if sound else wrong)


@pytest.mark.parametrize(("surplus", "sound"), [(0, True), (1, False)])
def test_an_edit_that_was_measured_alone_did_what_the_gate_counts(surplus, sound, repo):
    def change(sample):
        event = sample.event
        if event.kind is not EventKind.ACCEPTED or len(event.edits) != 1:
            return sample
        known = replace(event.edits[0], fixed=event.verdict.fixed + surplus, broken=event.verdict.broken)
        return replace(sample, event=replace(event, edits=(known,)))

    found = problems(repo, change)
    told = "an edit is said to have fixed and broken other items than the gate counts for it alone"
    assert found == [] if sound else set(found) == {told}
