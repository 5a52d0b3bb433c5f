"""Exact numbers behind decisions: what a float stands for, means and tests over pairs, and rows in evidence."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from operator import mul

from hypothesis import given
from hypothesis import strategies as st
from soaking import examples

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, FailureKind, Metric, Scored, Split
from skillgit.domain.outcomes import Pairs, averaged, exact, exact_value, outcome_row, pooled, read_outcomes
from skillgit.domain.statistics import binomial_test

DECIMALS = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
PARTS = st.dictionaries(st.sampled_from(["contains", "regex", "regex 2"]), st.floats(0, 1)).map(
    lambda parts: tuple(sorted(parts.items()))
)
SCORED = st.builds(Scored, st.floats(0, 1), st.floats(0, 1), PARTS)
OUTCOMES = st.one_of(
    SCORED, st.builds(FailedToEvaluate, st.text(), st.sampled_from([*FailureKind])), st.just(Scored(1.0, 1.0))
)


def evaluation(outcomes) -> Evaluation:
    named = {f"q{place}": outcome for place, outcome in enumerate(outcomes)}
    return Evaluation(split=Split.SELECTION, item_set="x", seed=1, outcomes=named)


def test_a_float_stands_for_the_number_that_was_meant():
    assert exact(0.7) == Fraction(7, 10)
    assert exact(1 / 3) == Fraction(1, 3)
    assert exact(0.1 + 0.2) == Fraction(3, 10)
    assert exact(2 * 0.4 * 0.7 / 1.1) == Fraction(28, 55), "an F1 of precision 0.4 and recall 0.7"
    assert exact(0.1234567) == Fraction(1234567, 10**7)


@given(DECIMALS)
def test_every_decimal_is_itself(value):
    assert exact(value) == Fraction(str(value))


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_greater_float_is_never_a_smaller_number(one, other):
    low, high = sorted((one, other))
    assert exact(low) <= exact(high)
    assert abs(float(exact(one)) - one) < 1e-14


@examples(1)
@given(st.lists(st.tuples(DECIMALS, DECIMALS), min_size=1, max_size=9))
def test_p_is_the_share_of_sign_assignments_counted_with_fractions(pairs):
    base, candidate = (evaluation([Scored(0.0, pair[side]) for pair in pairs]) for side in (0, 1))
    gains = [Fraction(str(after)) - Fraction(str(before)) for before, after in pairs]
    sizes = [abs(gain) for gain in gains]
    sums = [sum(map(mul, signs, sizes)) for signs in product((1, -1), repeat=len(sizes))]

    assert Pairs(candidate, base, Metric.SOFT, 0.5).p == sum(total >= sum(gains) for total in sums) / len(sums)


@given(st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=1, max_size=12), st.sampled_from(Metric), DECIMALS)
def test_means_are_over_what_both_sides_scored(table, metric, weight):
    candidate, base = (evaluation([pair[side] for pair in table]) for side in (0, 1))
    pairs = Pairs(candidate, base, metric, weight)
    both = [item for item in base.outcomes if item in base.scored and item in candidate.scored]

    assert list(pairs.gains) == both
    for mean, side in ((pairs.score, candidate), (pairs.current, base)):
        values = [exact_value(side.scored[item], metric, weight) for item in both]
        assert mean == (sum(values) / len(values) if values else 0)
    assert {*pairs.fixed, *pairs.broken, *pairs.stable} == set(both)
    assert {*pairs.lost} == base.scored.keys() - candidate.scored.keys()
    assert {*pairs.regained} == candidate.scored.keys() - base.scored.keys()


@given(st.lists(OUTCOMES, min_size=1, max_size=6))
def test_several_samples_are_their_mean_or_the_first_failure(samples):
    found, scored = pooled(samples), [one for one in samples if isinstance(one, Scored)]

    if not scored:
        assert found == samples[0]
    else:
        assert isinstance(found, Scored)
        assert exact(found.hard) == exact(float(sum(exact(one.hard) for one in scored) / len(scored)))
    assert averaged(evaluation(samples[:1]), {"q0": samples[1:]}).outcomes["q0"] == found


@given(st.lists(OUTCOMES, max_size=6))
def test_rows_of_evidence_say_all_of_an_outcome(outcomes):
    rows = [{"id": f"q{place}"} | outcome_row(outcome) for place, outcome in enumerate(outcomes)]

    assert read_outcomes(json.dumps(rows).encode()) == {f"q{place}": one for place, one in enumerate(outcomes)}
    assert read_outcomes(None) is None
    assert read_outcomes(b"[{}]") is None


def test_the_binomial_test_takes_any_number_of_items():
    assert binomial_test(550, 1100, 0.5) == 1.0
    assert 0.0 < binomial_test(600, 1100, 0.5) < 0.01
    assert binomial_test(3, 10, 0.3) == 1.0
