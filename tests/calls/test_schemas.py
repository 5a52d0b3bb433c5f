"""What a run has paid for without a schema is not bought again with one; another run is another matter."""

from __future__ import annotations

import asyncio

import pytest
from scripted import ScriptedBackend, chance

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.plugin.backend import user

SCHEMA = {"title": "Answer", "type": "object"}


async def nap(_seconds):
    pass


def call(ledger, scope, schema):
    """Ask the same question at the same place of a run; return what it asked the model, and what it cost."""
    backend = ScriptedBackend()
    route = Route(backend=backend, backend_name="scripted", model="small")
    calls = Calls(routes={"optimizer": route}, ledger=ledger, caps=Caps(), sleep=nap, random=chance(0))
    calls.enter(scope, Cost())
    asyncio.run(calls.call("optimizer", "reflect", [user("q")], draw=("reflect", 1), schema=schema))
    return [request.schema for request in backend.requests], calls.meter.cost().calls


@pytest.fixture
def ledger():
    with Ledger.in_memory() as opened:
        yield opened


def test_an_event_that_was_begun_without_schemas_goes_on_at_the_same_cost(ledger):
    assert call(ledger, "run/step-1", None) == ([None], 1)
    assert call(ledger, "run/step-1", SCHEMA) == ([], 1)


def test_another_run_asks_with_its_schema_once(ledger):
    call(ledger, "run/step-1", None)
    assert call(ledger, "other/step-1", SCHEMA) == ([SCHEMA], 1)
    assert call(ledger, "other/step-1", SCHEMA) == ([], 1)


def test_a_run_that_sends_none_does_not_take_the_answer_to_one(ledger):
    call(ledger, "run/step-1", SCHEMA)
    assert call(ledger, "run/step-1", None) == ([None], 1)
