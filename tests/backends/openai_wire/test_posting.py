"""Requests are posted as they stand, without the SDK's typed methods: what those would add must not be missed."""

from __future__ import annotations

import asyncio

import pytest
from wire import wire_server

from skillgit.plugin.backend import Request, Tool, system, user
from skillgit_backends.openai_chat import OpenAIChatBackend

HELLO = Request(model="echo", messages=(system("be brief"), user("hello there")))
TOOL = Tool(name="look", description="", parameters={"type": "object", "properties": {}})


@pytest.fixture
def wire():
    with wire_server(keep=True) as server:
        yield server


async def ask(backend, request):
    try:
        return await backend.complete(request)
    finally:
        await backend.aclose()


def posted(wire, request=HELLO, **settings):
    backend = OpenAIChatBackend({"base_url": f"{wire.url}/v1", "api_key_env": "MY_KEY", **settings})
    asyncio.run(ask(backend, request))
    return wire.log()[-1]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_key_of_an_administrator_stays_at_home(wire, monkeypatch, api):
    monkeypatch.setenv("MY_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-PLANTED")
    entry = posted(wire, api=api)
    assert entry.headers["authorization"] == "Bearer sk-mine"
    assert "sk-admin-PLANTED" not in str(entry.headers)


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_body_is_what_is_asked_and_nothing_else(wire, monkeypatch, api):
    monkeypatch.setenv("MY_KEY", "sk-mine")
    entry = posted(wire, Request(model="tooler", messages=HELLO.messages, tools=(TOOL,), temperature=0.5), api=api)
    common = {"model": "tooler", "temperature": 0.5}
    asked = {
        "chat": {
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello there"}],
            "max_tokens": 16384,
        },
        "responses": {"max_output_tokens": 16384, "store": False, "instructions": "be brief"},
    }[api]
    shown = {key: value for key, value in entry.document.items() if key not in ("tools", "input")}
    assert shown == common | asked
    assert len(entry.document["tools"]) == 1
    assert entry.headers["content-type"] == entry.headers["accept"] == "application/json"
