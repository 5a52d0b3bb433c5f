"""What the door takes from a backend, which may be anybody's plug-in."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import USAGE, Naps, ScriptedBackend, door

from skillgit.calls.pricing import dollars
from skillgit.calls.route import MOST_TOOL_CALLS, retry_after
from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import Price, Reply, ToolCall, user

CALL = ToolCall(id="1", name="look", arguments="{}")
REPLY = Reply(text="hello", usage=USAGE)


class Answering(ScriptedBackend):
    """Answers with whatever it was given."""

    def __init__(self, answer):
        super().__init__()
        self.given = answer

    async def complete(self, request):
        self.requests.append(request)
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


def ask(answer, **more):
    backend = Answering(answer)
    calls = door(backend, **more)

    async def work():
        try:
            return await calls.call("target", "rollout", [user("a question")], draw=(1,))
        except BackendError as error:
            return error

    return asyncio.run(work()), calls.meter.total(), backend


@pytest.mark.parametrize(
    "answer",
    [
        *(None, "hello", {"text": "hello"}),
        *(replace(REPLY, text=None), replace(REPLY, text=b"x"), replace(REPLY, usage=None), replace(REPLY, model=1)),
        *(replace(REPLY, finish_reason="done"), replace(REPLY, finish_reason=[])),
        *(replace(REPLY, tool_calls=None), replace(REPLY, tool_calls=[CALL]), replace(REPLY, tool_calls=("look",))),
        replace(REPLY, tool_calls=(replace(CALL, arguments={"a": 1}),)),
    ],
)
def test_what_is_no_reply_is_a_fault_of_the_backend(answer):
    error, cost, _ = ask(answer)
    assert isinstance(error, FatalBackendError)
    assert "returned no reply" in error.message
    assert cost.tokens_in == 0


@pytest.mark.parametrize(
    "answer",
    [
        replace(REPLY, tool_calls=(CALL,) * (MOST_TOOL_CALLS + 1)),
        replace(REPLY, text="x" * (MOST_BYTES + 1)),
        replace(REPLY, tool_calls=(replace(CALL, arguments="x" * (MOST_BYTES + 1)),)),
    ],
)
def test_a_reply_beyond_measure_is_billed_tried_as_often_as_others_and_never_a_reply(answer):
    error, cost, backend = ask(answer, attempts=3, sleep=Naps())
    assert isinstance(error, UnusableAnswerError)
    assert len(backend.requests) == 3
    assert (cost.calls, cost.tokens_in) == (3, 3 * USAGE.tokens_in)


def test_lone_surrogates_are_replaced_everywhere():
    odd = replace(REPLY, text="a\ud800", tool_calls=(ToolCall(id="\ud800", name="\ud800", arguments="\ud800"),))
    reply, _, _ = ask(odd)
    assert (reply.text, reply.tool_calls[0]) == ("a\ufffd", ToolCall(id="\ufffd", name="\ufffd", arguments="\ufffd"))
    error, _, _ = ask(FatalBackendError("no \ud800"))
    assert error.message == "no \ufffd"


@given(st.one_of(st.floats(), st.integers(), st.sampled_from([None, "5", [], 10**400, -(10**400)])))
def test_a_pause_is_a_finite_number_of_seconds_or_none(asked):
    pause = retry_after(asked)
    assert pause is None or (isinstance(pause, float) and 0 <= pause < math.inf)
    if isinstance(asked, int | float) and 0 <= asked <= 1e9:
        assert pause == asked


@pytest.mark.parametrize("asked", [math.nan, math.inf, -math.inf, -5.0, "soon"])
def test_an_absurd_wish_to_wait_is_none(asked):
    naps = Naps()
    error, _, backend = ask(RetryableBackendError("busy", retry_after=asked, status_code=500), attempts=3, sleep=naps)
    assert isinstance(error, RetryableBackendError)
    assert len(backend.requests) == 3
    assert all(0 <= nap <= 60 for nap in naps)


def test_a_wish_to_wait_longer_than_the_patience_is_the_end():
    naps = Naps()
    _, _, backend = ask(RetryableBackendError("busy", retry_after=1e9, status_code=429), patience_s=600.0, sleep=naps)
    assert (len(backend.requests), naps) == (1, [])


@pytest.mark.parametrize("usd", [math.nan, math.inf, -1.0, 1e308])
def test_a_price_that_is_none_is_not_known(usd):
    assert dollars(USAGE, Price(usd_in=usd, usd_out=usd)) is None
    reply, cost, _ = ask(REPLY, price=Price(usd_in=usd, usd_out=usd))
    assert reply == REPLY
    assert (cost.usd, cost.unpriced) == (0.0, 1)
