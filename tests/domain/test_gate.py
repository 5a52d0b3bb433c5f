from __future__ import annotations

from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate import Decision, GateRule, consistent, decide, decision_from_numbers, flips, sign_test

OUTCOMES = st.one_of(
    st.builds(Scored, st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), st.just(FailedToEvaluate("timeout"))
)
EVALUATIONS = st.lists(OUTCOMES, min_size=6, max_size=6).map(
    lambda outcomes: Evaluation(
        split=Split.SELECTION, item_set="x", outcomes=dict(zip("abcdef", outcomes, strict=True)), seed=1
    )
)
RULES = st.builds(
    GateRule, metric=st.sampled_from(Metric), soft_weight=st.floats(0, 1), min_coverage=st.floats(0, 1),
    enabled=st.booleans(),
)  # fmt: skip


@given(RULES, EVALUATIONS, EVALUATIONS, st.floats(0, 1))
def test_a_decision_follows_from_the_numbers_that_it_tells(rule, candidate, current, best) -> None:
    verdict = decide(rule, candidate, current, best)

    assert consistent(verdict)
    if verdict.decision is Decision.ACCEPT_NEW_BEST:
        assert verdict.score > verdict.best
    if rule.enabled and verdict.decision.accepted:
        assert verdict.score > verdict.current
    if not rule.enabled:
        assert verdict.decision is Decision.INDECISIVE or verdict.decision.accepted


@given(RULES, EVALUATIONS, EVALUATIONS, st.floats(0, 1))
def test_without_coverage_there_is_no_decision(rule, candidate, current, best) -> None:
    covered = min(candidate.summary().coverage, current.summary().coverage) >= rule.min_coverage

    assert (decide(rule, candidate, current, best).decision is Decision.INDECISIVE) == (not covered)


@given(EVALUATIONS, EVALUATIONS, st.sampled_from(Metric), st.floats(0, 1))
def test_flips_part_the_items_that_both_sides_scored(one, two, metric, weight) -> None:
    pairs = flips(one, two, metric, weight)
    parts = [*pairs.fixed, *pairs.broken, *pairs.stable_pass, *pairs.stable_fail]
    back = flips(two, one, metric, weight)

    assert sorted(parts) == sorted(one.scored.keys() & two.scored.keys())
    assert (pairs.fixed, pairs.broken) == (back.broken, back.fixed)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_a_probability(fixed, broken) -> None:
    p = sign_test(fixed, broken)

    assert 0.0 < p <= 1.0
    assert isclose(p + sign_test(broken, fixed), 1.0 + _middle(fixed, broken))


def _middle(fixed: int, broken: int) -> float:
    """Return P(X = fixed), which both directions count."""
    return sign_test(fixed, broken) - (sign_test(fixed + 1, broken - 1) if broken else 0.0)


@pytest.mark.parametrize(
    ("fixed", "broken", "p"), [(0, 0, 1.0), (1, 0, 0.5), (3, 2, 0.5), (5, 0, 0.03125), (0, 4, 1.0), (3, 1, 0.3125)]
)
def test_the_sign_test_by_hand(fixed, broken, p) -> None:
    assert sign_test(fixed, broken) == p


@pytest.mark.parametrize(
    ("score", "current", "best", "gated", "decision"),
    [
        (0.5, 0.4, 0.4, True, Decision.ACCEPT_NEW_BEST),
        (0.5, 0.4, 0.6, True, Decision.ACCEPT),
        (0.5, 0.5, 0.5, True, Decision.REJECT),
        (0.4, 0.5, 0.5, True, Decision.REJECT),
        (0.5, 0.4, 0.5, True, Decision.ACCEPT),
        (0.4, 0.5, 0.5, False, Decision.FORCE_ACCEPT),
        (0.6, 0.5, 0.5, False, Decision.ACCEPT_NEW_BEST),
    ],
)
def test_the_strict_policy(score, current, best, gated, decision) -> None:
    assert decision_from_numbers(score=score, current=current, best=best, gated=gated) is decision


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_verdict_that_accepts_a_lower_score_is_not_consistent(score, current) -> None:
    outcome = Evaluation(split=Split.SELECTION, item_set="x", outcomes={"a": Scored(1.0, 1.0)}, seed=1)
    verdict = decide(GateRule(), outcome, outcome, 0.0)
    low, high = sorted((score, current))

    assert not consistent(replace(verdict, decision=Decision.ACCEPT, score=low, current=high, best=high))
