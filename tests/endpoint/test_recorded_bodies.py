"""What Claude Code, Codex, OpenCode and Copilot really send, played: their words are left out, their forms are not."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from random import Random

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metered import USAGE, Model, metered, played

from skillgit.endpoint.server import Lease
from skillgit.plugin.backend import Reply, ToolCall
from skillgit.view.item import steps
from skillgit.wire import CHAT

FILES = sorted((Path(__file__).parent / "bodies").glob("*.json"))
TOOL = Reply(
    text="", usage=USAGE, finish_reason="tool_calls", tool_calls=(ToolCall(id="c1", name="look", arguments="{}"),)
)
SAID = Reply(text="The Seine.", usage=USAGE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_is_answered_in_its_dialect_and_what_it_says_arrives(path: Path):
    requests = json.loads(path.read_text(encoding="utf-8"))

    async def work(access):
        texts = []
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {access.token}"}) as session:
            for request in requests:
                async with session.post(access.url + request["path"], json=request["body"]) as answer:
                    assert answer.status == 200
                    kind = "text/event-stream" if request["body"].get("stream") else "application/json"
                    assert answer.headers["Content-Type"].startswith(kind)
                    texts.append(await answer.text())
        assert "look" in texts[0]
        assert "The Seine." in texts[-1]
        return "done"

    model = Model([TOOL, SAID])
    calls = metered(work, model)
    assert played(calls) == "done"
    assert calls.spent().calls == len(requests) == 2
    first, second = model.requests
    assert any(message.role == "system" for message in first.messages)
    assert all(tool.name and tool.description for tool in first.tools)
    assert "web_search" not in {tool.name for tool in first.tools}, "the provider's own tools are not offered"
    assert second.messages[: len(first.messages)] == first.messages, "the conversation goes on"
    rest = second.messages[len(first.messages) :]
    assert {"assistant", "tool"} <= {message.role for message in rest}
    [results] = [message for message in rest if message.role == "tool"]
    assert results.tool_call_id == rest[0].tool_calls[0].id


@given(st.lists(st.lists(st.booleans(), max_size=4), max_size=4), st.randoms())
def test_what_a_tool_brought_is_shown_below_its_call_in_whatever_order_results_arrive(work, random):
    """The forms are those of agents that call tools side by side; False is a call without a result."""
    messages, wanted = [{"role": "user", "content": "do it"}], []
    for number, calls in enumerate(work):
        identities = [f"{number}.{place}" for place in range(len(calls))]
        results = [identity for identity, has_result in zip(identities, calls, strict=True) if has_result]
        wanted += [(identity, identity if identity in results else "") for identity in identities]
        random.shuffle(results)
        made = [{"id": each, "type": "function", "function": {"name": each, "arguments": "{}"}} for each in identities]
        messages.append({"role": "assistant", "content": "", **({"tool_calls": made} if made else {})})
        messages += [{"role": "tool", "tool_call_id": result, "content": result} for result in results]
    lease = Lease(access=None, ask=None, context=None)
    lease.exchanges.append((CHAT.read_question({"model": "m", "messages": messages}), SAID))
    tree = [
        (call.name, brought.content if brought else "") for step in steps(lease.turns()) for call, brought in step.calls
    ]
    assert tree == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stream_that_is_cut_in_the_middle_is_not_paid_for_twice(path: Path):
    [request, *_] = json.loads(path.read_text(encoding="utf-8"))
    long = Reply(text="x" * 4_000_000, usage=USAGE)

    async def work(access):
        headers = {"Authorization": f"Bearer {access.token}"}
        async with aiohttp.ClientSession(headers=headers, read_bufsize=1 << 10) as session:
            address, body = access.url + request["path"], request["body"]
            async with session.post(address, json={**body, "stream": True}) as answer:
                await answer.content.read(100)
                answer.close()  # more is on its way than any buffer between holds
            async with session.post(address, json={**body, "stream": False}) as answer:
                return str(len(await answer.text()) > 4_000_000)

    model = Model([long])
    calls = metered(work, model)
    assert played(calls) == "True"
    assert len(model.requests) == calls.spent().calls == 1


JUNK = [
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "x",
    [],
    {},
    [None],
    {"type": "text"},
    [{"type": "image"}],
    "\ud800",
    10**30,
    [[]],
]


def spoilt(value: object, rate: float, chance: Random) -> object:
    """Return ``value`` with some of its parts left out and others replaced by what does not belong there."""
    if chance.random() < rate:
        return chance.choice(JUNK)
    if isinstance(value, dict):
        return {key: spoilt(part, rate, chance) for key, part in value.items() if chance.random() > rate / 2}
    if isinstance(value, list):
        return [spoilt(part, rate, chance) for part in value if chance.random() > rate / 2]
    return value


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 20))])
def test_any_body_is_answered_or_refused_for_good(seed: int):
    chance = Random(seed)  # noqa: S311 - to vary bodies
    requests = list(chain.from_iterable(json.loads(path.read_text(encoding="utf-8")) for path in FILES))
    statuses: set[int] = set()

    async def work(access):
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {access.token}"}) as session:
            for _ in range(200):
                request, rate = chance.choice(requests), chance.choice([0.001, 0.003, 0.01, 0.03])
                body = json.dumps(spoilt(request["body"], rate, chance)).encode()
                async with session.post(access.url + request["path"], data=body) as answer:
                    assert answer.status in {200, 400}, body
                    refused = answer.status == 400
                    assert not refused or (await answer.json())["error"]["message"]
                    assert not refused or answer.headers["x-should-retry"] == "false"
                    await answer.read()
                    statuses.add(answer.status)
        return "done"

    assert played(metered(work, Model([SAID]))) == "done"
    assert statuses == {200, 400}
