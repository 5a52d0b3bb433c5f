from __future__ import annotations

from math import fsum, isclose

from hypothesis import given
from hypothesis import strategies as st

from skillgit.calls.ledger import Charge
from skillgit.calls.spending_caps import Meter, Receipt
from skillgit.domain.cost import Cost

amount = st.floats(0, 1e3, allow_nan=False)
count = st.integers(0, 99)
costs = st.builds(Cost, calls=st.just(1), tokens_in=count, cached=count, usd=amount, seconds=amount)
places = st.sampled_from(["target", "optimizer"])
charges = st.lists(
    st.builds(Charge, key=st.text(max_size=3), role=places, stage=places, cost=costs),
    max_size=20,
    unique_by=lambda charge: charge.key,
)


@given(charges, st.data())
def test_the_order_of_calls_does_not_change_a_cost_by_a_bit(paid, data):
    one, two = Meter(), Meter()
    for charge in paid:
        one.add(charge)
    for charge in data.draw(st.permutations(paid)):
        two.add(charge)
    assert one.total() == two.total()
    assert one.cost() == two.cost()


@given(charges)
def test_the_parts_make_up_the_whole(paid):
    meter = Meter()
    for charge in paid:
        meter.add(charge)
    cost = meter.cost()
    assert cost.whole == meter.total()
    places = [(part.role, part.stage) for part in cost.parts]
    assert places == sorted({(charge.role, charge.stage) for charge in paid})
    assert sum(part.cost.calls for part in cost.parts) == cost.calls
    assert sum(part.cost.cached for part in cost.parts) == cost.cached
    assert isclose(fsum(part.cost.usd for part in cost.parts), cost.usd)
    assert not any(part.cost.parts for part in cost.parts)


@given(charges)
def test_a_call_counts_once(paid):
    once, twice = Meter(), Meter()
    for charge in paid:
        once.add(charge)
    for charge in [*paid, *paid]:
        twice.add(charge)
    assert once.total() == twice.total()
    assert once.total().calls == len(paid)


@given(charges)
def test_a_tab_notes_each_call_once_in_a_fixed_order(paid):
    tab = Receipt("run/1")
    tab.add(paid)
    tab.add(reversed(paid))
    assert list(tab.charges()) == sorted(paid, key=lambda charge: charge.key)
