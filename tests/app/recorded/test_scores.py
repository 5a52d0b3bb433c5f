from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.recorded.score_summary import by_type, compare, scores
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.trajectory import Item

FAILED = FailedToEvaluate("the provider is down")
shares = st.floats(0, 1)
outcomes = st.one_of(st.builds(Scored, shares, shares), st.just(FAILED))


def evaluation(*found) -> Evaluation:
    named = {f"q{number}": outcome for number, outcome in enumerate(found)}
    return Evaluation(split=Split.TEST, item_set="4be1", outcomes=named, seed=1)


@given(st.lists(outcomes, max_size=12))
def test_a_mean_lies_in_its_interval_and_what_failed_is_in_neither(found):
    result = scores(found)
    scored = [outcome for outcome in found if isinstance(outcome, Scored)]
    assert (result.n, result.scored) == (len(found), len(scored))
    for mean, interval in ((result.hard, result.hard_interval), (result.soft, result.soft_interval)):
        assert (mean is None) is (interval is None) is (not scored)
        if mean is not None and interval is not None:
            assert 0 <= interval[0] <= interval[1] <= 1
            assert interval[0] <= mean + 1e-9
            assert mean - 1e-9 <= interval[1] or mean == pytest.approx(interval[1])


def test_equal_scores_of_few_items_are_not_taken_for_certain():
    result = scores([Scored(1.0, 1.0)] * 5)
    assert result.soft_interval == result.hard_interval
    assert result.hard_interval[0] < 0.6


def test_without_a_scored_item_there_is_no_score():
    result = scores([FAILED])
    assert (result.hard, result.soft, result.hard_interval, result.coverage) == (None, None, None, 0.0)


def test_task_types_are_groups_by_name():
    items = [Item(id=f"q{number}", content={}, task_type="ab"[number % 2]) for number in range(3)]
    groups = by_type(items, evaluation(Scored(1.0, 1.0), FAILED, Scored(0.0, 0.5)))
    assert [(group.task_type, group.n, group.scored, group.hard) for group in groups] == [
        ("a", 2, 2, 0.5),
        ("b", 1, 0, None),
    ]


def test_a_comparison_pairs_the_items_that_both_have():
    one = evaluation(*[Scored(1.0, 1.0)] * 6, Scored(0.0, 0.5), FAILED)
    other = evaluation(*[Scored(0.0, 0.0)] * 5, FAILED, Scored(1.0, 0.0), Scored(1.0, 1.0))
    found = compare(GateRule(), ("v2", one), ("v0", other))
    assert (found.split, found.name, found.against, found.metric, found.n) == ("test", "v2", "v0", "hard", 6)
    assert (found.fixed, found.broken) == (("q0", "q1", "q2", "q3", "q4"), ("q6",))
    assert found.delta == pytest.approx(4 / 6)
    assert found.p == pytest.approx(7 / 64)
    assert found.interval[0] < found.delta < found.interval[1]
    softly = compare(GateRule(metric=Metric.SOFT), ("v2", one), ("v0", other))
    assert (softly.delta, softly.broken) == (pytest.approx(5.5 / 6), ())


def test_without_a_common_item_nothing_is_compared():
    found = compare(GateRule(), ("v1", evaluation(FAILED)), ("none", evaluation(Scored(1.0, 1.0))))
    assert (found.n, found.delta, found.interval, found.p) == (0, None, None, 1.0)
