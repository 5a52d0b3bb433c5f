from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.outcomes import confirmation, contradicted

FAILED = FailedToEvaluate("timeout")
EIGHTHS = st.integers(0, 8).map(lambda number: number / 8)  # sums of them are exact, so that ties are ties
OUTCOMES = st.one_of(st.builds(Scored, EIGHTHS, EIGHTHS), st.just(FAILED))
METRICS = st.sampled_from([(Metric.HARD, 0.5), (Metric.SOFT, 0.5), (Metric.MIXED, 0.25), (Metric.MIXED, 0.5)])


def evaluated(outcomes) -> Evaluation:
    named = {f"t{number}": outcome for number, outcome in enumerate(outcomes)}
    return Evaluation(split=Split.TEST, item_set="s", outcomes=named, seed=0)


@given(st.lists(st.tuples(OUTCOMES, OUTCOMES), max_size=40), METRICS)
def test_the_test_split_contradicts_exactly_where_the_items_scored_under_both_sum_to_less(table, rule):
    found = confirmation(evaluated([a for a, _ in table]), evaluated([b for _, b in table]), *rule)
    pairs = [(a.value(*rule), b.value(*rule)) for a, b in table if FAILED not in (a, b)]
    if not pairs:
        assert found is None
        return
    assert found.items == len(pairs)
    assert found.contradicts == (sum(Fraction(b) - Fraction(a) for a, b in pairs) < 0)
    assert 0.0 < found.p_loss <= 1.0


@given(st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=1, max_size=40), METRICS)
def test_where_every_item_has_a_score_the_means_of_the_commit_say_the_same(table, rule):
    seed, best = evaluated([a for a, _ in table]), evaluated([b for _, b in table])
    said = contradicted(seed.summary(0), best.summary(1), *rule)
    if FAILED in [outcome for pair in table for outcome in pair]:
        assert said is None
    else:
        assert said == confirmation(seed, best, *rule).contradicts


def test_means_over_different_items_are_not_compared():
    seed, best = evaluated([Scored(1.0, 1.0)]).summary(0), evaluated([Scored(0.0, 0.0)]).summary(1)
    assert contradicted(seed, best, Metric.HARD, 0.5) is True
    assert contradicted(seed, replace(best, item_set="other"), Metric.HARD, 0.5) is None


@pytest.mark.parametrize(("fixed", "broken", "loss"), [(2, 4, False), (0, 5, True)])
def test_the_paired_test_tells_a_loss_from_chance(fixed, broken, loss):
    won, lost = Scored(1.0, 1.0), Scored(0.0, 0.0)
    seed = evaluated([lost] * fixed + [won] * broken)
    best = evaluated([won] * fixed + [lost] * broken)
    found = confirmation(seed, best, Metric.HARD, 0.5)
    assert found.contradicts
    assert (found.p_loss <= 0.05) is loss
