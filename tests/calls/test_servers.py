"""Whose answers the ledger keeps: those of one server are never another one's, and what is reused is said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from scripted import ScriptedBackend, ask, chance

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.served_model import ServedModel

FIRST = ServedModel(backend="b", model="m", address="http://127.0.0.1:8401/v1", facts=(("size", "1"),))
PINNED = ServedModel(backend="b", model="m", address="https://api.example.com", is_pinned=True)
OTHERS = {
    "address": replace(FIRST, address="http://127.0.0.1:8402/v1"),
    "path": replace(FIRST, address="http://127.0.0.1:8401/team/v1"),
    "facts": replace(FIRST, facts=(("size", "2"),)),
    "no facts": replace(FIRST, facts=()),
    "pinned": PINNED,
    "none": None,
}
NOW = datetime(2026, 11, 27, tzinfo=UTC)


async def no_sleep(_: float) -> None:
    """Wait for nothing."""


def calls_to(server: ServedModel | None, ledger: Ledger, *, run: str, backend=None, fresh: bool = False) -> Calls:
    route = Route(backend=backend or ScriptedBackend(), backend_name="b", model="m", server=server)
    calls = Calls(
        routes={"target": route},
        ledger=ledger,
        caps=Caps(),
        sleep=no_sleep,
        random=chance(1),
        clock=NOW.timestamp,
        fresh=fresh,
    )
    calls.enter(f"{run}/1", Cost())
    return calls


def questions_asked(server: ServedModel | None, ledger: Ledger, *, run: str, fresh: bool = False) -> list[str]:
    """Ask one question and one outcome, and return what reached the model."""
    backend = ScriptedBackend()
    calls = calls_to(server, ledger, run=run, backend=backend, fresh=fresh)

    async def produce() -> tuple[object, bool]:
        return await ask(calls, "b"), True

    async def scenario() -> None:
        await ask(calls, "a")
        await calls.rollout(f"k{calls.fingerprint('target')}", produce, f"k{calls.fingerprint_by_name('target')}")

    asyncio.run(scenario())
    questions_asked.reuse = calls.reuse
    return backend.asked


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_answers_of_one_server_are_never_anothers(other):
    for first, second in ((FIRST, other), (other, FIRST)):
        with Ledger.in_memory() as ledger:
            assert questions_asked(first, ledger, run="one") == ["a", "b"]
            assert questions_asked(second, ledger, run="two") == ["a", "b"]
            assert questions_asked(first, ledger, run="three") == []


def test_what_is_reused_is_said_with_its_source_and_its_age():
    with Ledger.in_memory() as ledger:
        questions_asked(FIRST, ledger, run="one")
        assert questions_asked.reuse.sentence(NOW) == ""
        assert questions_asked(FIRST, ledger, run="two") == []
        said = questions_asked.reuse.sentence(NOW + timedelta(days=3), "x asks again")
        assert said == (
            "1 of 1 rollouts and 1 other reply come from answers of b m at 127.0.0.1:8401, 3 days ago; x asks again"
        )
        assert questions_asked(FIRST, ledger, run="one") == []
        assert questions_asked.reuse.sentence(NOW) == "", "its own answers are not another's"


def test_what_an_older_skillgit_recorded_may_be_of_any_server_and_that_is_said():
    with Ledger.in_memory() as ledger:
        questions_asked(None, ledger, run="old")
        ledger._connection.execute("UPDATE reply SET served = '', time = 0")  # as the upgrade of its format leaves it
        assert questions_asked(FIRST, ledger, run="new") == []
        assert questions_asked.reuse.sentence(NOW).endswith("come from answers of a server that was not recorded")


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_fresh_run_asks_again_and_leaves_others_what_they_had(is_resumed):
    with Ledger.in_memory() as ledger:
        questions_asked(FIRST, ledger, run="one")
        assert questions_asked(FIRST, ledger, run="two", fresh=True) == ["a", "b"]
        if is_resumed:
            assert questions_asked(FIRST, ledger, run="two", fresh=True) == []
        kept = {paid.run for paid in ledger._replies("1 = 1")}
        assert kept == {"one", "two"}
        assert questions_asked(FIRST, ledger, run="one") == []
        assert questions_asked.reuse.sentence(NOW) == ""
        assert questions_asked(FIRST, ledger, run="three") == []


def test_a_server_that_is_down_is_what_it_said_last():
    with Ledger.in_memory() as ledger:
        questions_asked(FIRST, ledger, run="one")
        unknown = replace(FIRST, facts=())
        assert ledger.last_served(unknown) == FIRST
        assert ledger.last_served(OTHERS["address"]) is None
