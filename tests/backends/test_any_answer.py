"""Whatever a server answers, over real HTTP and through the real SDKs, a call ends in a reply or in a known failure.

The bodies are answers of the dialects with texts that real models have written, with parts of them replaced by what no
server should say, or with their bytes spoilt.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples
from wire.rough import Rough, rough_server
from wire.small_answers import CHAT, DIALECTS, FRAMES, KEY, MESSAGE, RESPONSES, backend

from skillgit.calls.client import CallPolicy, Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.errors import BackendError, BudgetError, ProviderFailureError
from skillgit.plugin.backend import MOST_TOKENS, Reply, user
from skillgit_backends.claude_chat import STREAMED_FROM

REAL = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "replies"
TEXTS = tuple(path.read_text("utf-8") for path in sorted(REAL.glob("*.answer.md")))
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
FULL = {
    "chat": CHAT
    | {
        "id": "x",
        "model": "m",
        "created": 1,
        "choices": [{"message": {"content": "TEXT", "tool_calls": [CALL], "refusal": None}, "finish_reason": "stop"}],
        "usage": CHAT["usage"]
        | {"prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 1}},
    },
    "responses": RESPONSES
    | {
        "model": "m",
        "incomplete_details": None,
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "TEXT"}, {"type": "refusal"}]},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        ],
        "usage": RESPONSES["usage"] | {"input_tokens_details": {"cached_tokens": 1}},
    },
    "claude": MESSAGE
    | {
        "model": "m",
        "stop_details": None,
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "TEXT"},
            {"type": "tool_use", "id": "c", "name": "look", "input": {"a": 1}},
        ],
        "usage": MESSAGE["usage"]
        | {"cache_read_input_tokens": 1, "cache_creation_input_tokens": 1, "output_tokens_details": {}},
    },
    "claude streamed": [json.loads(line.removeprefix("data: ")) for line in FRAMES.splitlines() if "data:" in line]
    + [{"type": "error", "error": {"type": "overloaded_error", "message": "later"}}],
}
FULL["compatible"] = FULL["chat"]
ERROR = {"error": {"type": "invalid_request_error", "code": 429, "param": "messages", "message": "no such thing"}}
ODD = st.sampled_from(
    [
        *(
            10**30,
            -1,
            -(10**400),
            1.5,
            1e308,
            math.nan,
            math.inf,
            -math.inf,
            None,
            True,
            "",
            "12",
            "\ud800",
            "\x1b[31m",
        ),
        *([], {}, [[]], [1, "a", None], {"a": {"b": []}}, "x" * 100_000, [{}] * 1000, [CALL] * 1000),
    ]
)
TEXT = st.sampled_from(TEXTS or ("a text",)) | st.text(max_size=50)


def _places(value, place=()):
    yield place
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from _places(entry, (*place, key))


@st.composite
def documents(draw, dialect):
    """An answer of ``dialect`` in which up to three parts are replaced, taken out or repeated."""
    text = json.dumps(draw(TEXT))[1:-1]
    document = json.loads(json.dumps(draw(st.sampled_from([FULL[dialect], ERROR]))).replace("TEXT", text))
    for _ in range(draw(st.integers(0, 3))):
        *way, last = draw(st.sampled_from([place for place in _places(document) if place] or [("nothing",)]))
        holder = document
        for key in way:
            holder = holder[key]
        if not isinstance(holder, dict | list):
            continue
        what = draw(st.sampled_from(["odd", "odd", "odd", "gone", "twice"]))
        if what == "odd":
            # Through text: a deep copy keeps a thousand references to one call, and what goes into it a thousandfold.
            holder[last] = json.loads(json.dumps(draw(ODD)))
        elif what == "gone" and isinstance(holder, dict):
            holder.pop(last, None)
        elif isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[:3]))
    return document


@st.composite
def answers(draw, dialect):
    """A whole answer: its status, its headers and the bytes of its body, which may be spoilt."""
    document = draw(documents(dialect))
    if isinstance(document, list):
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in document).encode()
    else:
        body = json.dumps(document).encode()
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(body)))
        piece = draw(st.binary(max_size=8) | st.sampled_from([b"[" * 5000, b'{"a":' * 5000, b"9" * 5000, b"\n" * 99]))
        body = body[:at] + piece + draw(st.sampled_from([body[at:], b""]))
    pause = draw(
        st.sampled_from(["nan", "-5", "inf", "1e9", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "0000", "x"])
        | st.none()
    )
    status = draw(st.sampled_from([200] * 8 + [201, 204, 304, 400, 401, 404, 413, 429, 500, 503, 529, 599]))
    return Rough(status=status, pieces=[body], headers={} if pause is None else {"retry-after": pause})


async def _nap(seconds):
    assert 0 <= seconds < math.inf


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="module")
def served(runner):
    """Every dialect's backend with its server, one for all examples."""
    os.environ["MY_KEY"] = KEY
    with rough_server() as server:
        backends = {}

        async def make():
            backends.update({dialect: backend(dialect, server.url) for dialect in DIALECTS})

        async def close():
            for made in backends.values():
                await made.aclose()

        runner.run(make())
        try:
            yield server, backends
        finally:
            runner.run(close())
            del os.environ["MY_KEY"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_answer_is_a_reply_or_a_known_failure_and_costs_what_a_call_can_cost(dialect, runner, served):
    server, backends = served
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @examples(0.6)
    @given(answers(dialect))
    def check(answer):
        server.answer = lambda _: answer
        runner.run(_check(backends[dialect], STREAMED_FROM + 1 if dialect == "claude streamed" else 16384))

    check()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 640 << 10


async def _check(asked, limit):
    route = Route(backend=asked, backend_name=asked.info.name, model="m", max_output_tokens=limit)
    with Ledger.in_memory() as ledger:
        policy = CallPolicy(attempts=1, patience_s=0.0, breaker_limit=1)
        calls = Calls(
            routes={"target": route},
            ledger=ledger,
            caps=Caps(max_tokens=10**12),
            sleep=_nap,
            random=None,
            policy=policy,
        )
        calls.enter("run/1", calls.spent())
        try:
            reply = await calls.call("target", "rollout", [user("a question")], draw=(1,))
        except (BackendError, ProviderFailureError) as error:
            failure = error.message
        else:
            failure = ""
            assert isinstance(reply, Reply)
            assert reply.text or reply.tool_calls
        assert "broke down" not in failure
        spent = calls.spent()
        assert 0 <= spent.tokens_in <= 2 * MOST_TOKENS
        assert 0 <= spent.tokens_out <= 2 * MOST_TOKENS
        assert math.isfinite(spent.usd)
        assert ledger.spent("run/1") == spent


def test_texts_that_real_models_wrote_are_among_the_answers():
    if not TEXTS:
        pytest.skip("the recorded replies are not here")
    assert len(TEXTS) > 10


def test_a_cap_ends_a_run_however_often_a_server_says_that_nothing_was_read(runner, served):
    """What is not counted is estimated, so that a server cannot talk its way past a cap."""
    server, backends = served
    usage = {"prompt_tokens": -(10**30), "completion_tokens": 0}
    server.answer = lambda _: Rough(pieces=[json.dumps(CHAT | {"usage": usage}).encode()])

    async def ask():
        route = Route(backend=backends["compatible"], backend_name="openai_compatible", model="m")
        with Ledger.in_memory() as ledger:
            calls = Calls(routes={"target": route}, ledger=ledger, caps=Caps(max_tokens=100), sleep=_nap, random=None)
            calls.enter("run/1", calls.spent())
            asked = [calls.call("target", "rollout", [user(f"a question {n}")], draw=(n,)) for n in range(100)]
            with pytest.raises(BudgetError):
                await asyncio.gather(*asked)

    runner.run(ask())
