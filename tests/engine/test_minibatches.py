from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.edit import EditSource
from skillgit.domain.evaluation import FailedToEvaluate, Scored
from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine.method_settings import GradientSettings
from skillgit.engine.reflect import Cutter
from skillgit.engine.search import shuffled_batches

OUTCOMES = st.sampled_from([Scored(1.0, 1.0), Scored(0.0, 0.5), Scored(0.4, 0.4), FailedToEvaluate("down")])


def rollouts(outcomes) -> list[Rollout]:
    return [
        Rollout(item=Item(id=f"i{place}", content={}), trajectory=None, outcome=outcome)
        for place, outcome in enumerate(outcomes)
    ]


def cut(found, arriving, **settings):
    """Return what is cut after each arrival."""
    cutter = Cutter([rollout.item for rollout in found], 0, GradientSettings(**settings))
    return [cutter.take(rollout) for rollout in arriving]


@given(st.lists(OUTCOMES, max_size=20), st.integers(1, 5), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_in_which_rollouts_end_changes_no_minibatch(outcomes, size, failure_only, random):
    found = rollouts(outcomes)
    arriving = random.sample(found, len(found))
    options = {"minibatch_size": size, "failure_only": failure_only}
    made = [group for groups in cut(found, arriving, **options) for group in groups]
    expected = [group for groups in cut(found, found, **options) for group in groups]
    assert sorted(made, key=lambda group: group.place) == sorted(expected, key=lambda group: group.place)
    shown = [rollout for group in sorted(made, key=lambda group: group.place) for rollout in group.rollouts]
    scored = [rollout for rollout in found if isinstance(rollout.outcome, Scored)]
    failed = [rollout for rollout in scored if not rollout.outcome.passed]
    assert shown == [*failed, *(rollout for rollout in scored if rollout.outcome.passed and not failure_only)]


def test_a_minibatch_is_complete_with_its_last_member_and_the_short_ones_with_the_last_item():
    found = rollouts([Scored(0.0, 0.0)] * 5 + [Scored(1.0, 1.0)])
    steps = cut(
        found, [found[1], found[0], found[3], found[4], found[2], found[5]], minibatch_size=2, failure_only=False
    )
    assert [[(group.source, group.number) for group in groups] for groups in steps] == [
        [],
        [(EditSource.FAILURE, 0)],
        [],
        [],
        [(EditSource.FAILURE, 1)],
        [(EditSource.FAILURE, 2), (EditSource.SUCCESS, 0)],
    ]


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 5), st.integers(1, 6))
def test_batches_are_stretches_of_the_step_in_another_order(count, size, seed, step):
    items = [Item(id=f"i{place}", content={}) for place in range(count)]
    batches = shuffled_batches(items, seed=seed, step=step, size=size)
    for number, batch in enumerate(batches):
        assert {item.id for item in batch} == {item.id for item in items[number * size : (number + 1) * size]}
    assert batches == shuffled_batches(items, seed=seed, step=step, size=size)
