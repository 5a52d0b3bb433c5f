from __future__ import annotations

import asyncio

import pytest
from wire import wire_server

from skillgit.errors import ConfigError
from skillgit.plugin.backend import Request, user
from skillgit_backends.qwen_chat import QwenChatBackend

QUESTION = Request(model="qwen-thinking-echo", messages=(user("hello"),))


def answer(wire, request=QUESTION, **settings):
    async def ask():
        asked = QwenChatBackend({"base_url": f"{wire.url}/v1", **settings})
        try:
            return await asked.complete(request)
        finally:
            await asked.aclose()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("mode", "sent", "thinks"),
    [
        ("server_default", None, True),
        ("enabled", {"enable_thinking": True}, True),
        ("disabled", {"enable_thinking": False}, False),
    ],
)
def test_thinking_has_three_states_and_is_no_part_of_the_answer(mode, sent, thinks):
    with wire_server(keep=True) as wire:
        reply = answer(wire, thinking_mode=mode)
        (entry,) = wire.log()
    assert reply.text == "hello"
    assert (reply.usage.reasoning > 0) is thinks
    assert entry.document.get("chat_template_kwargs") == sent


def test_the_environment_names_server_and_key(monkeypatch):
    with wire_server(keep=True) as wire:
        monkeypatch.setenv("QWEN_CHAT_BASE_URL", f"{wire.url}/v1")
        monkeypatch.setenv("QWEN_CHAT_API_KEY", "q-key")
        assert answer(wire, base_url="").text == "hello"
        assert wire.log()[0].headers["authorization"] == "Bearer q-key"


def test_a_state_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match="thinking_mode is 'perhaps'"):
        QwenChatBackend({"thinking_mode": "perhaps"})
