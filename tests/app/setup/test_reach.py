from __future__ import annotations

import asyncio

import pytest

from skillgit.app.setup.models import PromptRoom, context_of, look, room
from skillgit.calls.pricing import context_table, price_table
from skillgit.calls.route import Route
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import BackendInfo, Probe


class Silent:
    """A backend that tells nothing."""

    info = BackendInfo(name="silent", summary="")


class Telling(Silent):
    """A backend that tells everything."""

    def __init__(self, *, ready: bool = True, length: int | None = None) -> None:
        self.ready, self.length = ready, length

    async def probe(self) -> Probe:
        return Probe(place="here", ready=self.ready, detail="log in first")

    async def context(self, model: str) -> int | None:
        del model
        return self.length


def route(backend, model="m", limit=100):
    return Route(backend=backend, backend_name="b", model=model, max_output_tokens=limit)


@pytest.mark.parametrize(
    ("context", "prompt", "reply", "fit"),
    [
        (None, 10**9, 1, "unknown"),
        (1000, 500, 100, "fits"),
        (1000, 800, 200, "fits"),
        (1000, 801, 0, "near"),
        (1000, 500, 501, "near"),
        (1000, 2000, 0, "near"),
        (1000, 2001, 0, "too long"),
    ],
)
def test_a_prompt_is_too_long_only_if_that_is_certain(context, prompt, reply, fit):
    assert PromptRoom(context=context, source="table", prompt=prompt, reply=reply).fit == fit


@pytest.mark.parametrize(
    ("backend", "contexts", "model", "expected"),
    [
        (Silent(), {}, "nobody-knows-it", (None, "")),
        (Silent(), {}, "gpt-4o-mini-2024-07-18", (128_000, "table")),
        (Telling(length=None), {}, "gpt-4o", (128_000, "table")),
        (Telling(length=4096), {}, "gpt-4o", (4096, "server")),
        (Telling(length=4096), {"gpt-4o": 77}, "gpt-4o", (77, "configuration")),
    ],
)
def test_the_user_goes_before_the_server_and_the_server_before_the_table(backend, contexts, model, expected):
    asked = route(backend, model)
    found = room(asked, 5, asyncio.run(context_of(asked, contexts)))
    assert (found.context, found.source) == expected
    assert (found.prompt, found.reply) == (5, 100)


def test_what_is_not_ready_is_an_error_with_what_to_do():
    assert asyncio.run(look(route(Silent()))) is None
    found = asyncio.run(look(route(Telling())))
    assert found is not None
    assert found.place == "here"
    with pytest.raises(FatalBackendError, match="b is not ready to call its model") as caught:
        asyncio.run(look(route(Telling(ready=False))))
    assert caught.value.hint == "log in first"


def test_the_table_of_contexts_is_about_models_with_a_price():
    assert set(context_table().rows) <= set(price_table().rows)
    assert all(length >= 1000 for length in context_table().rows.values())
    assert context_table().find("no-such-model") is None
