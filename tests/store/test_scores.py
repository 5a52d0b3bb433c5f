from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from sample_run import RUN, Sample, as_json, clock_from, evaluation, rows, transitions, write_run

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.evaluation import Evaluation, Scored
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, GateRule, NoRegression, decide, flips
from skillgit.domain.gate_policies import MARGIN, PAIRED
from skillgit.store.event_writer import RunWriter

V1 = evaluation("1 2 3 5 6 7")


def rejected(measured: Evaluation, rule: GateRule, *, repeats: int = 0, more: bytes = b"") -> Sample:
    """Return the sample run's second candidate, with other outcomes and another gate."""
    sample = transitions()[2]
    verdict = decide(rule, measured, V1, 0.6, repeats=repeats)
    pairs = flips(measured, V1, rule.metric, rule.soft_weight)
    event = replace(
        sample.event, evaluation=measured.summary(), verdict=verdict, fixed=pairs.fixed, broken=pairs.broken
    )
    files = {"repeats.json": more} if more else {}
    return replace(sample, event=event, evidence={**sample.evidence, "selection.json": rows(measured), **files})


def stopped(seen: str, passed: str, spare: int = 0) -> Evaluation:
    """Return an evaluation that knows the items whose numbers stand in ``seen``."""
    whole, kept = evaluation(passed), {f"q{int(number):02d}" for number in seen.split()}
    return replace(
        whole,
        outcomes={item: outcome for item, outcome in whole.outcomes.items() if item in kept},
        unneeded=tuple(item for item in whole.outcomes if item not in kept),
        spare=spare,
    )


def problems(repo, sample: Sample) -> list[str]:
    """Write the sample run up to v1 and then ``sample``; return what is wrong with it."""
    write_run(repo, events=2)
    RunWriter(repo, RUN, clock_from(count(9))).append(sample.event, sample.skill, sample.evidence)
    return [problem.sentence for problem in check_run(repo, RUN)]


def forged(sample: Sample, **numbers) -> Sample:
    assert sample.event.kind is EventKind.REJECTED
    verdict = replace(sample.event.verdict, **{k: v for k, v in numbers.items() if hasattr(sample.event.verdict, k)})
    rest = {key: value for key, value in numbers.items() if not hasattr(sample.event.verdict, key)}
    return replace(
        sample, event=replace(sample.event, verdict=verdict, evaluation=replace(sample.event.evaluation, **rest))
    )


STOPPED = stopped("4 8 9 10", "1 2 3", spare=2)
"""The four items that v1 does not solve were evaluated, and none was fixed."""


@pytest.mark.parametrize(
    "rule",
    [
        GateRule(),
        GateRule(policy=PAIRED),
        GateRule(policy=MARGIN, margin=0.1),
        GateRule(no_regression=NoRegression.ALL),
    ],
)
def test_a_candidate_that_was_stopped_is_sound(repo, rule) -> None:
    sample = rejected(STOPPED, rule)

    assert sample.event.kind is EventKind.REJECTED
    assert sample.event.verdict.decision is Decision.REJECT
    assert sample.event.verdict.score == sample.event.verdict.current == 0.6
    assert problems(repo, sample) == []


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"score": 0.5}, "the gate compared score=0.5, and at most 0.6 could have been reached"),
        ({"spare": 7}, "more items were left out than there are"),
        ({"unneeded": 5}, "its items say n=9"),
        ({"p": 0.5}, "the gate says p=0.5, which does not follow"),
        ({"blocked": 3}, "the gate says blocked=3, and no more than broken=0 can be"),
        ({"current": 0.65}, "the gate compared current=0.65"),
        ({"best": 0.7}, "the gate compared best=0.7"),
    ],
)
def test_forged_numbers_of_a_stopped_candidate_are_found(repo, numbers, said) -> None:
    sample = rejected(STOPPED, GateRule(no_regression=NoRegression.ALL))

    assert any(said in told for told in problems(repo, forged(sample, **numbers)))


def repeated() -> tuple[Evaluation, bytes]:
    """Return the means of a candidate whose gain on q08 was luck, and the evidence of its repeats."""
    outcomes = {**evaluation("1 2 3 5 6 7 8").outcomes, "q08": Scored(0.25, 0.4375)}
    more = [{"hard": 0.0, "soft": 0.25}] * 3
    row = {"id": "q08", "candidate": more, "current": more}
    return replace(V1, outcomes=outcomes), as_json([row])


def test_the_score_after_repeats_follows_from_the_evidence(repo) -> None:
    averaged, evidence = repeated()
    rule = GateRule(policy=MARGIN, margin=0.1)
    sample = rejected(averaged, rule, repeats=3, more=evidence)
    first = evaluation("1 2 3 5 6 7 8")
    assert sample.event.kind is EventKind.REJECTED
    sample = replace(
        sample,
        event=replace(sample.event, evaluation=first.summary()),
        evidence={**sample.evidence, "selection.json": rows(first)},
    )

    assert sample.event.verdict.score == 0.625
    assert problems(repo, sample) == []


def test_a_forged_score_after_repeats_is_found(repo) -> None:
    averaged, evidence = repeated()
    first = evaluation("1 2 3 5 6 7 8")
    sample = forged(rejected(averaged, GateRule(policy=MARGIN, margin=0.1), repeats=3, more=evidence), score=0.65)
    assert sample.event.kind is EventKind.REJECTED
    sample = replace(
        sample,
        event=replace(sample.event, evaluation=first.summary()),
        evidence={**sample.evidence, "selection.json": rows(first)},
    )

    assert "the gate compared score=0.65, and its repeats say 0.625" in problems(repo, sample)


def test_repeats_without_evidence_of_them_are_found(repo) -> None:
    averaged, _ = repeated()
    sample = rejected(averaged, GateRule(policy=MARGIN, margin=0.1), repeats=3)

    assert "repeats.json in the evidence cannot be read" in problems(repo, sample)
