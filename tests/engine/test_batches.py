from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.trajectory import Item
from skillgit.engine.search import epoch_of, slow_sample, step_items, steps_per_epoch


def items(count: int) -> list[Item]:
    return [Item(id=f"i{number}", content={"n": number}) for number in range(count)]


@given(count=st.integers(1, 60), size=st.integers(1, 70), epoch=st.integers(1, 4), seed=st.integers(0, 5))
def test_an_epoch_uses_every_item_exactly_once(count, size, epoch, seed):
    per_epoch = steps_per_epoch(count, size)
    steps = range((epoch - 1) * per_epoch + 1, epoch * per_epoch + 1)
    seen = [item.id for step in steps for item in step_items(items(count), seed=seed, step=step, step_size=size)]
    assert sorted(seen) == sorted(item.id for item in items(count))
    assert {epoch_of(step, per_epoch) for step in steps} == {epoch}


def test_epochs_and_slow_samples_have_streams_of_their_own():
    pool = items(40)
    orders = [tuple(item.id for item in step_items(pool, seed=42, step=step, step_size=40)) for step in range(1, 6)]
    orders += [tuple(item.id for item in slow_sample(pool, seed=42, epoch=epoch, size=40)) for epoch in range(1, 6)]
    assert len(set(orders)) == len(orders)
