"""No wait of more than five seconds is silent: its reason and the time of the next try are told."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise

import pytest
import virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ScriptedBackend, ask, door

from skillgit.calls.traffic import SILENT_S, Waits
from skillgit.errors import BackendError, RetryableBackendError


def refused(status=429, retry_after=None):
    state = "its rate limit is reached" if status == 429 else f"it answered {status}"
    return RetryableBackendError(f"the server {state}", status_code=status, retry_after=retry_after)


class Told(list):
    def __call__(self, line):
        self.append((virtual_time.now(), line))


async def pausing(waits, pauses):
    with waits.call("m at 127.0.0.1:1", 600) as wait:
        for flight, pause in pauses:
            await asyncio.sleep(flight)
            with waits.pause(wait, "it said 429", pause):
                await asyncio.sleep(pause)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 90), st.floats(0, 120)), min_size=1, max_size=6))
def test_no_wait_over_five_seconds_is_silent(pauses):
    told = Told()
    virtual_time.run(pausing(Waits(told), pauses))
    begun = 0.0
    promised = 0.0
    for flight, pause in pauses:
        begun += flight
        if pause > SILENT_S + 1.1:
            lines = [(moment, line) for moment, line in told if begun - 0.1 <= moment <= begun + SILENT_S + 1.1]
            assert lines or begun < promised + SILENT_S, (begun, pause, told)
        begun += pause
        promised = max((moment for moment, _ in told if moment < begun), default=0.0)
    if sum(map(sum, pauses)) > 2 * SILENT_S:
        assert told
    for _, line in told:
        assert re.search(r"next try in \d+ s|\d+ s so far", line)
    gaps = [second - first for (first, _), (second, _) in pairwise(told)]
    assert all(gap >= SILENT_S - 0.1 for gap in gaps), "a pipe is not flooded"


def test_what_is_quick_is_not_talked_about():
    told = Told()
    virtual_time.run(pausing(Waits(told), [(1, 0.5), (1, 1)]))
    assert told == []


def test_a_long_call_names_its_server_and_how_long_it_took():
    told = Told()

    async def flying():
        with Waits(told).call("openai_compatible/m at 127.0.0.1:8081", 600):
            await asyncio.sleep(200)

    virtual_time.run(flying())
    first, line = told[0]
    assert first <= SILENT_S + 0.1
    assert line == f"waiting for openai_compatible/m at 127.0.0.1:8081, {first:.0f} s so far, at most 600 s each try"
    assert 3 <= len(told) <= 6, "lines become rarer"


@pytest.mark.parametrize("status", [429, 500, 503, 529])
@pytest.mark.parametrize("retry_after", [None, 20.0])
def test_retries_of_a_real_call_are_told_with_their_reason(status, retry_after):
    told = Told()

    async def asking():
        async def refuse(_):
            raise refused(status, retry_after)

        calls = door(ScriptedBackend(refuse), sleep=asyncio.sleep)
        calls.traffic.remark = told
        with pytest.raises(BackendError):
            await ask(calls, "question")
        return virtual_time.now()

    end = virtual_time.run(asking())
    if end > 2 * SILENT_S:
        assert told
        assert told[0][0] <= SILENT_S + 0.1
    for _, line in told:
        assert line.startswith("waiting: the server it") or "so far" in line
