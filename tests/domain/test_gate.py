from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from soaking import examples

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import (
    Decision,
    GateRule,
    NoRegression,
    Verdict,
    consistent,
    decide,
    decision,
    flips,
)
from skillgit.domain.gate_policies import MARGIN, NOT_WORSE, PAIRED, POLICIES, Comparison, Terms
from skillgit.domain.outcomes import Pairs
from skillgit.domain.statistics import sign_flip_test, sign_test

ITEMS = "abcdef"
OUTCOMES = st.one_of(
    st.builds(Scored, st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), st.just(FailedToEvaluate("timeout"))
)
EVALUATIONS = st.lists(OUTCOMES, min_size=6, max_size=6).map(
    lambda outcomes: Evaluation(
        split=Split.SELECTION, item_set="x", outcomes=dict(zip(ITEMS, outcomes, strict=True)), seed=1
    )
)
RULES = st.builds(
    GateRule, policy=st.sampled_from([*POLICIES.values()]), metric=st.sampled_from(Metric), soft_weight=st.floats(0, 1),
    min_coverage=st.floats(0, 1), enabled=st.booleans(), alpha=st.sampled_from([0.05, 0.3, 0.6]),
    margin=st.sampled_from([0.0, 0.1]), no_regression=st.sampled_from(NoRegression),
    pinned=st.frozensets(st.sampled_from(ITEMS)),
)  # fmt: skip


def measured(hard: str, soft: str = "") -> Evaluation:
    """Return an evaluation with one item per character, 1 or 0, ``x`` for failed; soft scores are digits of tenths."""
    outcomes = {
        f"q{place}": FailedToEvaluate("timeout")
        if one == "x"
        else Scored(float(one), int(soft[place]) / 10 if soft else float(one))
        for place, one in enumerate(hard)
    }
    return Evaluation(split=Split.SELECTION, item_set="x", outcomes=outcomes, seed=1)


def decided(rule: GateRule, candidate: Evaluation, current: Evaluation) -> Decision:
    return decide(rule, candidate, current, current.summary().score(rule.metric, rule.soft_weight)).decision


@given(RULES, EVALUATIONS, EVALUATIONS, st.floats(0, 1))
def test_a_decision_follows_from_the_numbers_that_it_tells(rule, candidate, current, best) -> None:
    verdict = decide(rule, candidate, current, best)

    assert consistent(verdict)
    if verdict.decision is Decision.ACCEPT_NEW_BEST:
        assert verdict.score > verdict.best
    if rule.enabled and verdict.decision.accepted:
        assert verdict.score >= verdict.current
        assert verdict.score > verdict.current or rule.policy is NOT_WORSE
        assert verdict.blocked == 0
    if not rule.enabled:
        assert verdict.decision is Decision.INDECISIVE or verdict.decision.accepted


@given(RULES, EVALUATIONS, EVALUATIONS, st.floats(0, 1))
def test_without_coverage_there_is_no_decision(rule, candidate, current, best) -> None:
    rule = replace(rule, pinned=frozenset())
    pairs = Pairs(candidate, current, rule.metric, rule.soft_weight)
    covered = min(candidate.summary().coverage, current.summary().coverage) >= rule.min_coverage
    lost = sign_test(len(pairs.lost), len(pairs.regained)) <= 0.05
    decided = decide(rule, candidate, current, best).decision is not Decision.INDECISIVE

    assert decided == (covered and bool(pairs.gains) and not lost)


BINARY = st.sampled_from([Scored(1.0, 1.0), Scored(0.0, 0.3), FailedToEvaluate("timeout"), FailedToEvaluate("refused")])


@examples(4)
@given(st.lists(st.tuples(BINARY, BINARY), min_size=1, max_size=30), st.sampled_from([0.0, 0.5, 0.9]))
def test_no_verdict_accepts_unless_more_items_are_fixed_than_broken(table, min_coverage) -> None:
    candidate, current = (
        Evaluation(
            split=Split.SELECTION,
            item_set="x",
            seed=1,
            outcomes={f"q{place}": pair[side] for place, pair in enumerate(table)},
        )
        for side in (0, 1)
    )
    verdict = decide(GateRule(min_coverage=min_coverage), candidate, current)

    assert verdict.fixed > verdict.broken or not verdict.decision.accepted
    assert verdict.fixed + verdict.broken <= (len(table) if verdict.compared is None else verdict.compared)


@given(EVALUATIONS, EVALUATIONS, st.sets(st.sampled_from(ITEMS)))
def test_losing_items_is_never_a_gain(candidate, current, lost) -> None:
    rule = GateRule(min_coverage=0.0)
    fewer = replace(
        candidate, outcomes={i: FailedToEvaluate("x") if i in lost else o for i, o in candidate.outcomes.items()}
    )
    whole, part = (Pairs(one, current, Metric.HARD, 0.5) for one in (candidate, fewer))
    if all(whole.gains.get(item, 0) >= 0 for item in lost):
        assert sum(part.gains.values()) <= sum(whole.gains.values())
        assert decide(rule, candidate, current).decision.accepted or not decide(rule, fewer, current).decision.accepted


def test_a_candidate_that_times_out_on_what_was_unsolved_is_no_better() -> None:
    """The mean over the items that are left rises; the mean over those that both sides scored does not."""
    verdict = decide(GateRule(min_coverage=0.8), measured("11111000x"), measured("111110000"))

    assert (verdict.decision, verdict.fixed, verdict.broken) == (Decision.REJECT, 0, 0)
    assert (verdict.score, verdict.current, verdict.compared, verdict.lost) == (0.625, 0.625, 8, 1)


def test_losing_more_items_than_chance_explains_is_not_decided() -> None:
    solved, rule = "1" * 19, GateRule(min_coverage=0.5)

    assert decide(rule, measured(solved + "1" + "x" * 5), measured(solved + "0" * 6)).decision is Decision.INDECISIVE
    assert decide(rule, measured(solved + "1" + "x" * 4), measured(solved + "0" * 5)).decision.accepted
    swapped = decide(rule, measured(solved + "1xxxxx00000"), measured(solved + "0" * 6 + "xxxxx"))
    assert (swapped.decision, swapped.lost, swapped.regained) == (Decision.ACCEPT_NEW_BEST, 5, 5)


def test_the_best_version_is_compared_on_the_same_items() -> None:
    """The best version scores higher on the whole only because it could not answer what it does not solve."""
    best, current, candidate = measured("1110x"), measured("11000"), measured("11110")
    verdict = decide(GateRule(min_coverage=0.5), candidate, current, best)

    assert (verdict.decision, verdict.compared) == (Decision.ACCEPT_NEW_BEST, 4)
    assert (verdict.score, verdict.current, verdict.best) == (1.0, 0.5, 0.75)


@pytest.mark.parametrize(("current", "candidate"), [("7", "8"), ("8", "9"), ("1", "2"), ("0", "1")])
def test_a_margin_of_a_tenth_is_a_tenth_everywhere(current, candidate) -> None:
    rule = GateRule(policy=MARGIN, margin=0.1, metric=Metric.SOFT)

    assert decided(rule, measured("0", candidate), measured("0", current)) is Decision.REJECT
    assert decided(replace(rule, margin=0.099), measured("0", candidate), measured("0", current)).accepted


@given(EVALUATIONS, EVALUATIONS, st.sampled_from(Metric), st.floats(0, 1))
def test_flips_part_the_items_that_both_sides_scored(one, two, metric, weight) -> None:
    pairs = flips(one, two, metric, weight)
    parts = [*pairs.fixed, *pairs.broken, *pairs.stable_pass, *pairs.stable_fail]
    back = flips(two, one, metric, weight)

    assert sorted(parts) == sorted(one.scored.keys() & two.scored.keys())
    assert (pairs.fixed, pairs.broken) == (back.broken, back.fixed)


@pytest.mark.parametrize(
    ("score", "current", "best", "gated", "wanted"),
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
def test_the_strict_policy(score, current, best, gated, wanted) -> None:
    verdict = Verdict(
        decision=Decision.REJECT, policy="strict", metric=Metric.HARD, score=score, current=current, best=best,
        fixed=0, broken=0, p=1.0, gated=gated,
    )  # fmt: skip

    assert decision(verdict) is wanted


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_verdict_that_accepts_a_lower_score_is_not_consistent(score, current) -> None:
    outcome = Evaluation(split=Split.SELECTION, item_set="x", outcomes={"a": Scored(1.0, 1.0)}, seed=1)
    verdict = decide(GateRule(), outcome, outcome, 0.0)
    low, high = sorted((score, current))
    assume(high == low or high - low > 1e-11)

    assert not consistent(replace(verdict, decision=Decision.ACCEPT, score=low, current=high, best=high))


@pytest.mark.parametrize("forged", [{"p": 0.06}, {"blocked": 1}, {"alpha": 0.01}, {"score": 0.4}])
def test_a_verdict_of_the_paired_policy_is_replayed_with_all_its_numbers(forged) -> None:
    rule = GateRule(policy=PAIRED, no_regression=NoRegression.PINNED)
    verdict = decide(rule, measured("11111111111"), measured("00000111111"), 6 / 11)

    assert verdict.decision is Decision.ACCEPT_NEW_BEST
    assert not consistent(replace(verdict, **forged))


@pytest.mark.parametrize(
    ("candidate", "current", "accepted"),
    [
        ("11111", "00000", True),  # 5 fixed: p = 1/32
        ("1111", "0000", False),  # 4 fixed: p = 1/16
        ("111111110", "000000001", True),  # 8 fixed, 1 broken: p = 10/512
        ("11111110", "00000001", True),  # 7 fixed, 1 broken: p = 9/256
        ("1111110", "0000001", False),  # 6 fixed, 1 broken: p = 8/128
    ],
)
def test_the_paired_policy_wants_more_than_a_higher_mean(candidate, current, accepted) -> None:
    rule = GateRule(policy=PAIRED)

    assert decided(GateRule(), measured(candidate), measured(current)).accepted
    assert decided(rule, measured(candidate), measured(current)).accepted == accepted


@given(st.integers(-2, 2), st.floats(0, 1), st.booleans())
def test_the_paired_test_of_partial_scores_is_looked_at_where_there_is_time(total, p, thorough) -> None:
    best = Comparison(
        total=total, scale=1, count=9, fixed=0, broken=0, terms=Terms(), p_value=lambda: p, counts_decide=False
    )

    assert PAIRED.reachable(best, 9, thorough=thorough) == (PAIRED.accepts(best) if thorough else total > 0)


def test_p_and_flips_are_recorded_whatever_the_policy() -> None:
    current, candidate = measured("0011", "0099"), measured("1101", "5309")
    for policy in POLICIES.values():
        verdict = decide(GateRule(policy=policy), candidate, current, 0.5)
        assert (verdict.fixed, verdict.broken, verdict.p) == (2, 1, sign_test(2, 1))
        soft = decide(GateRule(policy=policy, metric=Metric.SOFT), candidate, current, 0.5)
        assert (soft.fixed, soft.broken, soft.p) == (2, 1, sign_flip_test([0.5, 0.3, -0.9, 0.0]))
        assert (verdict.alpha, verdict.margin) == (
            0.05 if policy is PAIRED else None,
            0.0 if policy is MARGIN else None,
        )


def test_the_margin_policy_wants_a_distance() -> None:
    rule = GateRule(policy=MARGIN, margin=0.25)

    assert decided(rule, measured("1100"), measured("1000")) is Decision.REJECT, "exactly the margin is not more"
    assert decided(rule, measured("1110"), measured("1000")) is Decision.ACCEPT_NEW_BEST


def test_an_item_that_may_not_break_blocks_a_higher_mean() -> None:
    candidate, current = measured("0111"), measured("1000")
    for guard, pinned, accepted in (
        (NoRegression.NONE, {"q0"}, True),
        (NoRegression.PINNED, {"q0"}, False),
        (NoRegression.PINNED, {"q1"}, True),
        (NoRegression.ALL, set(), False),
    ):
        rule = GateRule(no_regression=guard, pinned=frozenset(pinned))
        verdict = decide(rule, candidate, current, 0.25)
        assert verdict.decision.accepted == accepted
        assert verdict.blocked == (not accepted)


def test_a_pinned_item_that_could_not_be_evaluated_is_not_taken_for_unbroken() -> None:
    rule = GateRule(no_regression=NoRegression.PINNED, pinned=frozenset({"q0"}), min_coverage=0.5)

    assert decided(rule, measured("x111"), measured("1000")) is Decision.INDECISIVE
    assert decided(rule, measured("1x11"), measured("1000")) is Decision.ACCEPT_NEW_BEST


@given(st.permutations([0.1, 0.2, 0.3, 0.4, 0.6, 0.7]))
def test_a_strict_gate_never_accepts_on_rounding_alone(values) -> None:
    """The reference sums scores in the order in which they arrive, and accepts the same scores in another order."""
    names = [f"q{place}" for place in range(6)]
    one, two = (
        Evaluation(
            split=Split.SELECTION,
            item_set="x",
            seed=1,
            outcomes={n: Scored(0.0, v) for n, v in zip(names, vs, strict=True)},
        )
        for vs in (values, sorted(values))
    )
    for metric in (Metric.SOFT, Metric.MIXED):
        assert decided(GateRule(metric=metric), one, two) is Decision.REJECT
