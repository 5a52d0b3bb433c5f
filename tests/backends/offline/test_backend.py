from __future__ import annotations

import asyncio

import pytest

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import Backend, Request, system, user
from skillgit_backends.offline import OfflineBackend

MESSAGES = (system("Answer."), user("Nora Finch rang the bell.\n\nWho rang the bell?"))


def test_it_is_a_backend_that_needs_no_network_and_costs_nothing():
    backend = OfflineBackend({})
    assert isinstance(backend, Backend)
    assert not backend.info.needs_network
    assert {price.usd_in + price.usd_out for price in backend.info.prices.values()} == {0.0}
    assert set(backend.info.models) == {"reader", "agent", "analyst"}
    asyncio.run(backend.aclose())


def test_it_says_that_it_is_no_language_model():
    assert "not an LLM" in OfflineBackend.info.summary


def test_usage_is_estimated_from_characters():
    reply = asyncio.run(OfflineBackend({}).complete(Request(model="reader", messages=MESSAGES)))
    assert (reply.text, reply.finish_reason) == ("<answer>Nora Finch</answer>", "stop")
    assert reply.usage.tokens_out == 7
    assert reply.usage.tokens_in > 10


def test_a_reply_that_is_too_long_is_cut():
    reply = asyncio.run(OfflineBackend({}).complete(Request(model="reader", messages=MESSAGES, max_output_tokens=2)))
    assert (reply.text, reply.finish_reason, reply.usage.tokens_out) == ("<answer>", "length", 2)


def test_an_unknown_model_is_refused():
    with pytest.raises(FatalBackendError, match="no model 'gpt'") as caught:
        asyncio.run(OfflineBackend({}).complete(Request(model="gpt", messages=MESSAGES)))
    assert "offline/reader" in caught.value.hint


def test_settings_are_refused_as_there_are_none():
    with pytest.raises(ConfigError, match="offline_seed"):
        OfflineBackend({"seed": 1})
