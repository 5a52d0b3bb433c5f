"""Tokens beside the score: never traded for it, and a gate that counts scores alone is what it was."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import (
    TOKEN_FIELDS,
    Decision,
    GateRule,
    NoRegression,
    Objective,
    consistent,
    decide,
    decision,
    rule_behind,
)
from skillgit.domain.gate_policies import MARGIN, NOT_WORSE, PAIRED, STRICT
from skillgit.domain.outcomes import Pairs, averaged, outcome_row, read_outcome
from skillgit.engine.measure import EarlyStop
from skillgit.engine.method_settings import GateSettings

TOKENS = GateRule(objective=Objective.TOKENS)
SCORES = st.sampled_from([0.0, 0.25, 1.0])
COUNTS = st.integers(1, 2000)
SIDE = st.tuples(SCORES, COUNTS)
TABLES = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=30)
RULES = st.builds(
    GateRule, policy=st.sampled_from([STRICT, PAIRED, MARGIN, NOT_WORSE]), metric=st.sampled_from(Metric),
    enabled=st.booleans(), alpha=st.sampled_from([0.05, 0.3]), margin=st.sampled_from([0.0, 0.1]),
    no_regression=st.sampled_from([NoRegression.NONE, NoRegression.ALL]), objective=st.just(Objective.TOKENS),
    token_margin=st.sampled_from([0.0, 0.05, 0.5]), max_tokens=st.sampled_from([None, 100, 1000]),
)  # fmt: skip


def evaluation(rows, order=None) -> Evaluation:
    outcomes = {f"q{place}": Scored(hard, hard, tokens=tokens) for place, (hard, tokens) in enumerate(rows)}
    outcomes = outcomes if order is None else {item: outcomes[item] for item in order}
    return Evaluation(split=Split.SELECTION, item_set="x", outcomes=outcomes, seed=1)


def sides(table, order=None) -> tuple[Evaluation, Evaluation]:
    """Return candidate and base."""
    before, after = (evaluation([row[side] for row in table], order) for side in (0, 1))
    return after, before


def constant(score: float, tokens: int, count: int = 10) -> Evaluation:
    return evaluation([(score, tokens)] * count)


@given(RULES, TABLES)
def test_a_gate_of_scores_alone_does_not_look_at_tokens(rule, table):
    rule = replace(rule, objective=Objective.SCORE)
    after, before = sides(table)
    bare = (
        replace(side, outcomes={item: replace(one, tokens=None) for item, one in side.outcomes.items()})
        for side in (after, before)
    )
    assert decide(rule, after, before) == decide(rule, *bare)
    assert not any(getattr(decide(rule, after, before), name) for name in TOKEN_FIELDS - {"objective"})


@given(RULES, TABLES)
def test_a_lower_score_is_never_accepted_and_a_higher_one_is_as_before_unless_the_limit_is_passed(rule, table):
    after, before = sides(table)
    verdict, alone = decide(rule, after, before), decide(replace(rule, objective=Objective.SCORE), after, before)
    assert consistent(verdict)
    assert decision(verdict) is verdict.decision
    if rule.enabled and verdict.score < verdict.current:
        assert verdict.decision is Decision.REJECT
    if alone.decision.accepted and not verdict.exceeds_tokens:
        assert verdict.decision.accepted
    if rule.enabled and verdict.decision.accepted:
        assert not verdict.exceeds_tokens
        assert not verdict.blocked
        assert alone.decision.accepted or verdict.saves_tokens
    if verdict.decision is Decision.ACCEPT_NEW_BEST:
        assert (verdict.score, -verdict.tokens) > (verdict.best, -verdict.tokens_best)


@given(RULES, TABLES, st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter_where_the_test_of_scores_is_exact(rule, table, chance: random.Random):
    rule = replace(rule, metric=Metric.HARD)
    order = [f"q{place}" for place in range(len(table))]
    chance.shuffle(order)
    assert decide(rule, *sides(table, order)) == decide(rule, *sides(table))


@given(RULES, TABLES, st.integers(0, 5000))
def test_what_both_sides_take_more_does_not_turn_the_difference(rule, table, more):
    longer = [tuple((score, tokens + more) for score, tokens in pair) for pair in table]
    one, other = (decide(rule, *sides(rows)) for rows in (table, longer))
    assert (one.tokens > one.tokens_before) == (other.tokens > other.tokens_before)
    assert (one.tokens < one.tokens_before) == (other.tokens < other.tokens_before)
    assert one.tokens_p == other.tokens_p


@given(RULES, TABLES)
def test_the_words_of_a_verdict_name_both_figures_and_its_numbers_make_its_rule(rule, table):
    verdict = decide(rule, *sides(table))
    for text in (verdict.token_words, verdict.account):
        assert f"{verdict.tokens:,.1f} tokens an item, {verdict.tokens_before:,.1f} before" in text
    assert f"{verdict.score:.4f}" in verdict.account
    assert f"{verdict.current:.4f}" in verdict.account
    is_for_tokens = verdict.decision.accepted and verdict.gated and verdict.score <= verdict.current
    assert ("it is accepted for fewer tokens" in verdict.account) == is_for_tokens
    behind = rule_behind(verdict, rule.min_coverage, frozenset())
    assert decide(behind, *sides(table)) == verdict


@given(RULES.filter(lambda rule: rule.enabled), TABLES, st.integers(1, 12))
def test_early_stop_refuses_only_what_the_whole_evaluation_would(rule, table, wave):
    after, before = sides(table)
    stop = EarlyStop(rule, before, wave)
    for item in stop.items:
        if stop.needed is None:
            stop.take(item, after.outcomes[item])
    if stop.needed is not None and stop.needed < len(stop.items):
        assert not decide(rule, after, before).decision.accepted


@pytest.mark.parametrize(
    ("candidate", "rule", "expected", "words"),
    [
        ((0.5, 80), TOKENS, Decision.ACCEPT_NEW_BEST, "it is accepted for fewer tokens"),
        ((0.5, 80), GateRule(), Decision.REJECT, ""),
        ((0.5, 95), TOKENS, Decision.ACCEPT_NEW_BEST, ""),  # just the margin
        ((0.5, 96), TOKENS, Decision.REJECT, "fewer by less than gate.token_margin, 0.05"),
        ((0.5, 100), TOKENS, Decision.REJECT, "not fewer"),
        ((0.4, 1), TOKENS, Decision.REJECT, ""),
        ((0.6, 200), TOKENS, Decision.ACCEPT_NEW_BEST, "+100.0 %"),
        ((0.6, 200), replace(TOKENS, max_tokens=150), Decision.REJECT, "more than gate.max_tokens_per_item, 150"),
        ((0.6, 90), replace(TOKENS, max_tokens=50), Decision.ACCEPT_NEW_BEST, ""),  # above it, and nearer to it
    ],
)
def test_what_is_accepted(candidate, rule, expected, words):
    rule = replace(rule, metric=Metric.SOFT)
    verdict = decide(rule, constant(*candidate), constant(0.5, 100))
    assert verdict.decision is expected
    assert words in verdict.account


def test_four_items_cannot_show_fewer_tokens():
    verdict = decide(TOKENS, constant(1.0, 50, 4), constant(1.0, 100, 4))
    assert verdict.decision is Decision.REJECT
    assert "its fewer tokens may be chance: p is 0.062, and 0.05 or less is wanted" in verdict.account


def test_without_the_tokens_of_an_item_nothing_is_decided():
    after, before = constant(1.0, 50), constant(0.0, 100)
    unknown = replace(after, outcomes={**after.outcomes, "q3": Scored(1.0, 1.0)})
    for verdict in (decide(TOKENS, unknown, before), decide(TOKENS, before, unknown)):
        assert verdict.decision is Decision.INDECISIVE
        assert "not known of every item" in verdict.account
    failed = replace(after, outcomes={**after.outcomes, "q3": FailedToEvaluate("timeout")})
    assert decide(TOKENS, failed, before).decision is Decision.ACCEPT_NEW_BEST


def test_of_equal_scores_the_one_with_fewer_tokens_is_the_best():
    best, current = constant(1.0, 100), constant(0.0, 300)
    for tokens, expected in ((90, Decision.ACCEPT_NEW_BEST), (100, Decision.ACCEPT), (200, Decision.ACCEPT)):
        assert decide(TOKENS, constant(1.0, tokens), current, best).decision is expected
    assert decide(TOKENS, constant(1.0, 90), current, 1.0).decision is Decision.ACCEPT


def test_repeats_confirm_a_tie_too_and_average_tokens():
    assert TOKENS.first_pass(2) == GateRule(policy=NOT_WORSE)
    again = averaged(constant(1.0, 100, 1), {"q0": [Scored(0.0, 0.0, tokens=40), FailedToEvaluate("timeout")]})
    assert again.outcomes["q0"].tokens == 70


@given(st.none() | st.integers(0, 10**12))
def test_a_row_of_evidence_keeps_the_tokens(tokens):
    outcome = Scored(1.0, 1.0, tokens=tokens)
    assert read_outcome(outcome_row(outcome)).tokens == tokens
    assert ("tokens" in outcome_row(outcome)) == (tokens is not None)


@pytest.mark.parametrize("tokens", [-1, 1.5, True, "7", 10**400, None])
def test_a_strangers_row_may_say_anything(tokens):
    assert read_outcome({"hard": 1.0, "soft": 1.0, "tokens": tokens}).tokens is None


def test_items_that_a_stopped_candidate_was_not_measured_on_count_for_neither_side():
    after, before = constant(1.0, 50), constant(0.0, 100)
    part = replace(after, outcomes={"q0": after.outcomes["q0"]}, unneeded=tuple(before.outcomes)[1:])
    assert Pairs(part, before, Metric.HARD, 0.5).measured == ("q0",)
    assert (decide(TOKENS, part, before).tokens, decide(TOKENS, part, before).tokens_before) == (50, 100)


def test_a_limit_needs_an_objective_that_counts():
    with pytest.raises(ValidationError, match="objective: score does not count any"):
        GateSettings(max_tokens_per_item=100)
    assert GateSettings(objective="score-then-tokens", max_tokens_per_item=100).objective is Objective.TOKENS
