from __future__ import annotations

import asyncio

import virtual_time
from hypothesis import given
from hypothesis import strategies as st
from scripted import ScriptedBackend, ask, door
from virtual_time import now

from skillgit.calls.retries_and_limits import Rates


def timed(backend):
    sent = []

    async def answer(_):
        sent.append(now())
        return "ok"

    backend.answer = answer
    return sent


def most_in_a_minute(times):
    return max(sum(begin <= time < begin + 60 for time in times) for begin in times)


def test_no_more_requests_than_allowed_are_sent_in_any_minute():
    async def scenario():
        backend = ScriptedBackend()
        sent = timed(backend)
        calls = door(backend, requests_per_minute=120, concurrency=16)
        await asyncio.gather(*(ask(calls, str(n)) for n in range(300)))
        assert most_in_a_minute(sent) <= 120 + 2
        assert 147 < now() < 151

    virtual_time.run(scenario())


def test_less_than_one_request_a_second_is_a_limit_too():
    async def scenario():
        backend = ScriptedBackend()
        sent = timed(backend)
        calls = door(backend, requests_per_minute=6)
        await asyncio.gather(*(ask(calls, str(n)) for n in range(4)))
        assert [round(time) for time in sent] == [0, 10, 20, 30]

    virtual_time.run(scenario())


def test_tokens_are_taken_as_estimated_and_large_calls_do_not_starve():
    async def scenario():
        backend = ScriptedBackend()
        sent = timed(backend)
        calls = door(backend, tokens_per_minute=6000)
        large, small = "x" * 4 * 1000, "y" * 4 * 50
        order = [large, *(f"{small}{n}" for n in range(10)), f"{large}!"]
        await asyncio.gather(*(ask(calls, text) for text in order))
        assert [request.messages[0].text[0] for request in backend.requests] == [text[0] for text in order]
        # (2 * 1000 + 10 * about 52) tokens at 100 a second, and 10 for each reply once their length is known
        assert 23 < sent[-1] < 28

    virtual_time.run(scenario())


rates = st.sampled_from([None, 6, 60, 130, 6000])
arrivals = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 3.0]), st.sampled_from([1, 40, 500]), st.booleans()), min_size=1, max_size=9
)


@given(rates, rates, arrivals)
def test_in_no_stretch_of_time_more_is_sent_than_leaks_meanwhile_and_one_bucket(requests, tokens, calls):
    sent = []

    async def one(rates, start, size, gives_up):
        await asyncio.sleep(start)
        try:
            async with asyncio.timeout(3.0 if gives_up else None):
                with rates.line():
                    await rates.take(size)
        except TimeoutError:
            return
        sent.append((now(), size))

    async def scenario():
        rates = Rates(requests_per_minute=requests, tokens_per_minute=tokens)
        await asyncio.gather(*(one(rates, *call) for call in calls))

    virtual_time.run(scenario())
    for limit, amounts in ((requests, [1] * len(sent)), (tokens, [size for _, size in sent])):
        for first in range(len(sent)) if limit else ():
            for last in range(first, len(sent)):
                seconds, bucket = sent[last][0] - sent[first][0], max(limit / 60, 1)
                # of the first one, a part that is larger than the bucket was paid for by the wait before it
                total = min(amounts[first], bucket) + sum(amounts[first + 1 : last + 1])
                assert total <= limit / 60 * (seconds + 0.001) + bucket + 1e-6


def test_without_limits_nothing_is_waited_for():
    async def scenario():
        rates = Rates(requests_per_minute=None, tokens_per_minute=None)
        assert not rates.limited
        assert rates.have(10**9)
        await rates.take(10**9)

    virtual_time.run(scenario())


def test_a_call_waits_for_its_rate_without_a_slot():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, requests_per_minute=6, concurrency=1)
        tasks = [asyncio.create_task(ask(calls, str(n))) for n in range(3)]
        await asyncio.sleep(1)
        lane = calls._live.limits["scripted/small"]
        assert len(backend.asked) == 1
        assert lane.queue.free()
        await asyncio.gather(*tasks)

    virtual_time.run(scenario())


def test_a_stop_ends_the_wait_for_a_rate():
    async def scenario():
        calls = door(ScriptedBackend(), requests_per_minute=1)
        tasks = [asyncio.create_task(ask(calls, str(n))) for n in range(3)]
        await asyncio.sleep(1)
        calls.stop()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [str(result) for result in results] == ["re 0", "stopped", "stopped"]
        assert now() < 2

    virtual_time.run(scenario())
