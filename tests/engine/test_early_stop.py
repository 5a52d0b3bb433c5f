from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import Decision, GateRule, NoRegression, consistent, decide
from skillgit.domain.gate_policies import MARGIN, PAIRED, POLICIES, STRICT
from skillgit.engine.measure import EarlyStop, order

FAILED = FailedToEvaluate("timeout")
SHARES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))
SCORED = st.one_of(
    st.sampled_from([Scored(0.0, 0.0), Scored(1.0, 1.0), Scored(0.0, 0.5)]), st.builds(Scored, SHARES, SHARES)
)
RULES = st.builds(
    GateRule, policy=st.sampled_from([*POLICIES.values()]), metric=st.sampled_from(Metric), soft_weight=SHARES,
    min_coverage=st.sampled_from([0.0, 0.5, 0.9, 1.0]), enabled=st.sampled_from([True, True, True, False]),
    alpha=st.sampled_from([0.05, 0.3, 0.6]), margin=st.sampled_from([0.0, 0.05, 0.3]),
    no_regression=st.sampled_from(NoRegression), pinned=st.frozensets(st.sampled_from(["q0", "q1", "q2", "q9"])),
)  # fmt: skip


def evaluation(outcomes) -> Evaluation:
    return Evaluation(
        split=Split.SELECTION, item_set="x", seed=1, outcomes={f"q{place}": one for place, one in enumerate(outcomes)}
    )


@st.composite
def tables(draw, *, most=12, failures=True):
    """Return the outcomes of a base and of a candidate on the same items."""
    outcomes = st.one_of(SCORED, SCORED, SCORED, st.just(FAILED)) if failures else SCORED
    size = draw(st.integers(0, most))
    base = draw(st.lists(outcomes, min_size=size, max_size=size))
    kept = draw(st.sampled_from([0.0, 0.5, 0.9]))
    changed = draw(st.lists(outcomes, min_size=size, max_size=size))
    keeps = draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    candidate = [old if keep < kept else new for old, new, keep in zip(base, changed, keeps, strict=True)]
    return evaluation(base), evaluation(candidate)


def raced(rule: GateRule, base: Evaluation, candidate: Evaluation, wave: int) -> Evaluation:
    """Evaluate as the engine does, one item after the other; return what would be recorded."""
    stop, taken = EarlyStop(rule, base, wave), 0
    while stop.needed is None:
        stop.take(stop.items[taken], candidate.outcomes[stop.items[taken]])
        taken += 1
    known = set(stop.items[: stop.needed])
    assert stop.needed <= taken == stop.sure
    return replace(
        candidate,
        outcomes={item: outcome for item, outcome in candidate.outcomes.items() if item in known},
        unneeded=tuple(stop.items[stop.needed :]),
    )


@examples(5)
@given(RULES, tables(), SHARES, st.integers(1, 5))
def test_stopping_changes_no_decision(rule, table, best, wave) -> None:
    """Items that were not needed may have failed to evaluate: then a full evaluation might have been indecisive."""
    base, candidate = table
    full, stopped = decide(rule, candidate, base, best), raced(rule, base, candidate, wave)
    verdict = decide(rule, stopped, base, best)

    assert verdict.decision.accepted == full.decision.accepted
    if not any(isinstance(outcome, FailedToEvaluate) for outcome in candidate.outcomes.values()):
        assert verdict.decision is full.decision
        assert full.score <= verdict.score + 1e-12
    assert consistent(verdict)
    if verdict.decision.accepted:
        assert not stopped.unneeded
        assert verdict == full


@examples(0.6)
@given(RULES.map(lambda rule: replace(rule, policy=PAIRED)), tables(most=40, failures=False), st.integers(1, 5))
def test_stopping_changes_no_decision_of_the_sampled_test(rule, table, wave) -> None:
    base, candidate = table
    stopped = raced(rule, base, candidate, wave)

    assert decide(rule, stopped, base, 0.5).decision is decide(rule, candidate, base, 0.5).decision


@examples(2)
@given(RULES, tables(), st.integers(1, 5))
def test_what_is_recorded_does_not_depend_on_the_size_of_waves(rule, table, wave) -> None:
    base, candidate = table
    if rule.policy is PAIRED and rule.metric is not Metric.HARD:
        rule = replace(rule, policy=STRICT)  # the p-value of partial scores is looked at between waves only

    assert raced(rule, base, candidate, wave) == raced(rule, base, candidate, 1)


@examples(1)
@given(RULES, tables(failures=False))
def test_nothing_is_evaluated_once_the_gate_would_refuse_the_best_that_can_come(rule, table) -> None:
    base, candidate = table
    items, recorded = order(base, rule), raced(rule, base, candidate, 4)

    for count in range(len(recorded.outcomes)):
        part = {item: candidate.outcomes[item] for item in items[:count]}
        at_best = replace(candidate, outcomes=part, unneeded=tuple(items[count:])).at_best()
        if rule.policy is PAIRED and rule.metric is not Metric.HARD:
            rule = replace(rule, policy=STRICT)
        assert decide(rule, at_best, base, 0.0).decision.accepted or rule.policy is MARGIN


def test_items_that_the_base_has_not_solved_come_first() -> None:
    base = evaluation([Scored(1.0, 1.0), Scored(0.0, 0.75), Scored(1.0, 0.5), Scored(0.0, 0.25), FAILED])

    assert order(base, GateRule(metric=Metric.SOFT)) == ["q4", "q3", "q1", "q2", "q0"]
    assert order(base, GateRule()) == ["q1", "q3", "q4", "q0", "q2"] or order(base, GateRule())[3:] == ["q0", "q2"]


@pytest.mark.parametrize(("fixes", "evaluated"), [(0, 4), (1, 5), (2, 7)])
def test_a_candidate_that_breaks_what_it_fixes_is_given_up(fixes, evaluated) -> None:
    """Six items are solved, four are not; the candidate fixes some and breaks q1 and q3."""
    solved = [Scored(1.0, 1.0)] * 6 + [Scored(0.0, 0.0)] * 4
    new = [Scored(float(place not in {1 if fixes > 1 else 0, 2}), 1.0) for place in range(6)]
    new += [Scored(float(place < fixes), 0.0) for place in range(4)]
    recorded = raced(GateRule(), evaluation(solved), evaluation(new), 1)

    assert len(recorded.outcomes) == evaluated
    assert recorded.at_best().summary().hard <= 0.6


def test_nothing_beats_a_base_that_solves_everything() -> None:
    base = evaluation([Scored(1.0, 1.0)] * 5)

    assert raced(GateRule(), base, base, 8).outcomes == {}


def test_a_broken_item_that_may_not_break_ends_it() -> None:
    base, candidate = evaluation([Scored(1.0, 1.0)] * 5 + [Scored(0.0, 0.0)] * 5), evaluation([Scored(0.0, 0.0)] * 10)
    better = evaluation([Scored(0.0, 0.0)] + [Scored(1.0, 1.0)] * 9)

    assert len(raced(GateRule(no_regression=NoRegression.ALL), base, better, 1).outcomes) == 6
    assert len(raced(GateRule(), base, candidate, 1).outcomes) == 5


def test_without_a_gate_every_item_is_evaluated() -> None:
    base, candidate = evaluation([Scored(1.0, 1.0)] * 5), evaluation([Scored(0.0, 0.0)] * 5)

    assert not raced(GateRule(enabled=False), base, candidate, 1).unneeded


def test_a_base_without_coverage_ends_it_before_anything_is_paid_for() -> None:
    base = evaluation([Scored(0.0, 0.0)] * 8 + [FAILED] * 2)

    assert raced(GateRule(), base, base, 4).outcomes == {}
    assert raced(GateRule(min_coverage=0.8), base, base, 4).outcomes


def test_items_that_fail_to_evaluate_end_nothing() -> None:
    base = evaluation([Scored(0.0, 0.0)] * 10)
    recorded = raced(GateRule(), base, evaluation([FAILED] * 9 + [Scored(1.0, 1.0)]), 1)

    assert len(recorded.outcomes) == 10
    assert decide(GateRule(), recorded, base).decision is Decision.INDECISIVE


def test_repeats_are_for_what_scores_higher() -> None:
    rule = GateRule(policy=PAIRED, no_regression=NoRegression.ALL)

    assert rule.first_pass(0) == rule
    assert rule.first_pass(2) == GateRule()
