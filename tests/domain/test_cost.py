from __future__ import annotations

from dataclasses import replace
from math import fsum

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.cost import Cost, CostPart, CostSum

count = st.integers(0, 10**6)
amount = st.floats(0, 1e3, allow_nan=False)
bare = st.builds(
    Cost,
    calls=count,
    tokens_in=count,
    tokens_out=count,
    usd=amount,
    seconds=amount,
    cached=count,
    cache_written=count,
    reasoning=count,
    unpriced=count,
)


def part(role, stage, **spent):
    return CostPart(role=role, stage=stage, cost=Cost(**spent))


def test_parts_of_the_same_role_and_stage_are_joined_and_the_others_kept_in_order():
    one = Cost(calls=3, parts=(part("optimizer", "reflect", calls=1, usd=0.5), part("target", "rollout", calls=2)))
    two = Cost(calls=4, parts=(part("judge", "test", calls=1), part("target", "rollout", calls=3, cached=7)))
    both = one + two
    assert both.calls == 7
    assert both.parts == (
        part("judge", "test", calls=1),
        part("optimizer", "reflect", calls=1, usd=0.5),
        part("target", "rollout", calls=5, cached=7),
    )
    assert two + one == both


def test_a_cost_without_parts_adds_none_and_loses_none():
    known = Cost(calls=1, parts=(part("target", "rollout", calls=1),))
    assert (known + Cost(calls=1)).parts == (Cost(calls=1) + known).parts == known.parts
    assert known.whole == Cost(calls=1)


@given(bare, bare)
def test_every_number_is_added(one, two):
    both = one + two
    for name in Cost.__dataclass_fields__.keys() - {"parts"}:
        assert getattr(both, name) == getattr(one, name) + getattr(two, name)


@given(st.lists(bare, max_size=12), st.data())
def test_an_exact_sum_is_the_same_in_any_order_and_may_be_asked_for_at_any_time(costs, data):
    one, two = CostSum(), CostSum()
    for cost in costs:
        one.add(cost)
    for cost in data.draw(st.permutations(costs)):
        two.add(replace(cost, parts=(CostPart(role="target", stage="rollout", cost=cost),)))
        two.total()
    assert one.total() == two.total()
    assert one.total().usd == fsum(cost.usd for cost in costs)
    assert one.total().unpriced == sum(cost.unpriced for cost in costs)
    assert one.total() is one.total()
