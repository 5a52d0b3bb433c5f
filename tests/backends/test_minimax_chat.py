from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from wire import wire_server

from skillgit.errors import ContentFilterError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import Request, user
from skillgit_backends.backend_settings import Endpoint
from skillgit_backends.minimax_chat import MiniMaxChatBackend, _fault
from skillgit_backends.provider_failures import ServerFault, judge

QUESTION = Request(model="MiniMax-M3-echo", messages=(user("hello"),), reasoning_effort="high")


def answer(wire, request=QUESTION, **settings):
    async def ask():
        asked = MiniMaxChatBackend({"base_url": f"{wire.url}/v1", **settings})
        try:
            return await asked.complete(request)
        finally:
            await asked.aclose()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("mode", "sent", "thinks"),
    [
        ("server_default", None, False),
        ("enabled", {"type": "adaptive"}, True),
        ("disabled", {"type": "disabled"}, False),
    ],
)
def test_thinking_is_sent_as_minimax_names_it(mode, sent, thinks):
    with wire_server(keep=True) as wire:
        reply = answer(wire, thinking_mode=mode)
        (entry,) = wire.log()
    assert reply.text == "hello"
    assert (reply.usage.reasoning > 0) is thinks
    assert entry.document.get("thinking") == sent
    assert "reasoning_effort" not in entry.document


def test_a_model_that_always_thinks_is_not_told_to_stop():
    with wire_server() as wire:
        with pytest.raises(FatalBackendError, match="always thinks"):
            answer(wire, replace(QUESTION, model="MiniMax-M2.5-echo"), thinking_mode="disabled")
        assert wire.log() == []


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        (1002, RetryableBackendError, "rate limit"),
        (1013, RetryableBackendError, "500"),
        (1004, FatalBackendError, "refused the key"),
        (1008, FatalBackendError, "quota"),
        (1027, ContentFilterError, "content filter withholds it"),
        (2013, FatalBackendError, "400"),
    ],
)
def test_errors_in_answers_of_status_200_are_recognised(code, kind, told):
    status, said = _fault({"base_resp": {"status_code": code, "status_msg": "what"}})
    here = Endpoint(backend="minimax_chat", url="https://h/v1", key="k", key_name="MINIMAX_API_KEY")
    error = judge(ServerFault(status=status, message=said), here)
    assert isinstance(error, kind)
    assert told in error.message


def test_an_answer_without_an_error_has_none():
    assert _fault({"base_resp": {"status_code": 0, "status_msg": "success"}}) is None
    assert _fault({}) is None
