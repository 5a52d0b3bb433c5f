from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import PRICE, ScriptedBackend

from skillgit.calls.route import Route
from skillgit.calls.spending_caps import Budget, Stop, estimate
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import BudgetError
from skillgit.plugin.backend import user

ROUTE = Route(backend=ScriptedBackend(), backend_name="scripted", model="small", price=PRICE, max_output_tokens=50)


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        (Caps(max_calls=3), r"cap of 3 calls \(3 made\)"),
        (Caps(max_tokens=100), r"cap of 100 tokens \(90 used\)"),
        (Caps(max_usd=1.0), r"cap of \$1.0 \(\$0.9900 spent\)"),
    ],
)
def test_a_refusal_names_the_cap_and_what_was_spent(caps, said):
    spent = Cost(calls=3, tokens_in=60, tokens_out=30, usd=0.99)

    async def scenario():
        async with Budget(caps, lambda: spent, Stop()).reserve(Cost(calls=1, tokens_in=11, usd=0.02)):
            pass

    with pytest.raises(BudgetError, match=said) as caught:
        asyncio.run(scenario())
    assert caught.value.hint.startswith("raise max_")


def test_a_call_that_just_fits_passes():
    async def scenario():
        spent = Cost(calls=3, tokens_in=60, tokens_out=30, usd=0.75)
        caps = Caps(max_calls=4, max_tokens=100, max_usd=1.0)
        async with Budget(caps, lambda: spent, Stop()).reserve(Cost(calls=1, tokens_in=10, usd=0.25)):
            pass

    asyncio.run(scenario())


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=12), st.integers(0, 40))
def test_reservations_and_what_was_spent_stay_under_the_cap_while_estimates_hold(calls, cap):
    async def scenario():
        spent = Cost()
        reserved = 0

        async def one(guess, real):
            nonlocal spent, reserved
            async with budget.reserve(Cost(calls=1, tokens_in=guess)):
                reserved += guess
                assert spent.tokens_in + reserved <= cap
                await asyncio.sleep(0)
                reserved -= guess
                spent += Cost(calls=1, tokens_in=min(guess, real))

        budget = Budget(Caps(max_tokens=cap), lambda: spent, Stop())
        results = await asyncio.gather(*(one(*call) for call in calls), return_exceptions=True)
        refused = [call for call, result in zip(calls, results, strict=True) if isinstance(result, BudgetError)]
        assert [result for result in results if result is not None and not isinstance(result, BudgetError)] == []
        assert all(spent.tokens_in + guess > cap for guess, _ in refused)

    asyncio.run(scenario())


def test_a_waiting_call_may_be_cancelled():
    async def scenario():
        budget = Budget(Caps(max_calls=1), Cost, Stop())

        async def reserve():
            async with budget.reserve(Cost(calls=1)):
                pass

        async with budget.reserve(Cost(calls=1)):
            waiting = asyncio.create_task(reserve())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await reserve()
        assert budget._reserved == {}

    asyncio.run(scenario())


def test_an_estimate_counts_characters_and_expects_a_reply_of_mean_length():
    request = ROUTE.request([user("x" * 90)])
    first = estimate(ROUTE, request, Cost())
    assert (first.calls, first.tokens_in, first.tokens_out) == (1, 24, 0)
    later = estimate(ROUTE, request, Cost(calls=4, tokens_out=120))
    assert later.tokens_out == 30
    assert later.usd == pytest.approx((24 * 1.0 + 30 * 10.0) / 1e6)
    assert estimate(ROUTE, request, Cost(calls=1, tokens_out=1000)).tokens_out == 50
