"""A server with one model answers by any name: that is said, and no table of a provider holds at its address."""

from __future__ import annotations

import asyncio

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.models import context_of, find_routes
from skillgit.app.setup.servers import with_facts
from skillgit.domain.served_model import ServedModel

LOCAL = "http://127.0.0.1:9/v1"
LONG = {"build": "b" * 40, "file": "f" * 48, "ftype": "Q4_K - Medium", "n_params": 1_777_088_000}


@pytest.mark.parametrize("other_facts", [{}, LONG])
@pytest.mark.parametrize(
    ("listed", "answers_as"),
    [("", ""), ("m", ""), ("m:latest", ""), ("q15.gguf", "q15.gguf"), ("n:latest", "n:latest")],
)
def test_a_model_that_another_one_answers_for_is_named(listed, answers_as, other_facts):
    server = ServedModel(backend="openai_compatible", model="m", address=LOCAL)
    now = with_facts(server, {**other_facts, "name": listed})
    assert now.answers_as == answers_as
    assert now.warning == (f"warning: 127.0.0.1:9 answers as {answers_as}, not m" if answers_as else "")


async def context_at(route):
    try:
        return await context_of(route, {})
    finally:
        await route.backend.aclose()


@pytest.mark.parametrize(
    ("backend", "model", "address", "is_priced"),
    [
        ("openai_compatible", "gpt-5-mini", LOCAL, False),
        ("openai_compatible", "gpt-5-mini", "https://proxy.example/v1", False),
        ("openai_chat", "gpt-5-mini", LOCAL, False),
        ("openai_chat", "gpt-5-mini", "https://api.openai.com/v1", True),
        ("openai_chat", "gpt-5-mini", "", True),
        ("claude_chat", "claude-haiku-4-5", LOCAL, False),
        ("claude_chat", "claude-haiku-4-5", "", True),
    ],
)
def test_the_tables_hold_at_the_providers_own_host_alone(empty, monkeypatch, *, backend, model, address, is_priced):
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    overrides = [f"model.target_backend={backend}", f"model.target={model}"]
    overrides += [f"model.{backend}_base_url={address}"] if address else []
    route = find_routes(load_config(empty, "demo", overrides), ["target"])["target"]
    assert (route.price is not None) is is_priced
    if address == LOCAL:
        assert asyncio.run(context_at(route)).tokens is None
    priced = find_routes(load_config(empty, "demo", [*overrides, f"model.prices={{{model}: [1, 2]}}"]), ["target"])
    assert priced["target"].price.usd_out == 2
