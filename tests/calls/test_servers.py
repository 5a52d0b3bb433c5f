"""Whose answers the ledger keeps: those of one server are never another one's, and what is reused is said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from scripted import ScriptedBackend, ask, chance

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger, run_of
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
        await calls.rollout(
            f"k{calls.routes['target'].fingerprint}", produce, f"k{calls.routes['target'].by_name.fingerprint}"
        )

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
        kept = {run_of(scope) for (scope,) in ledger._connection.execute("SELECT scope FROM reply")}
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


def rollout_costs(ledger: Ledger, run: str, *, kill: bool = False) -> Cost:
    """Return what an event of ``run`` records that asks for an outcome of two answers and for one answer."""
    calls = calls_to(FIRST, ledger, run=run)

    async def produce() -> tuple[object, bool]:
        return [await ask(calls, "b"), await ask(calls, "c")], True

    async def scenario() -> None:
        await calls.rollout(f"outcome of {run.partition('-')[0]}", produce)
        if not kill:
            await ask(calls, "a")

    asyncio.run(scenario())
    return calls.meter.cost()


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("known", ["nothing", "answers", "outcome", "one answer"])
def test_an_event_records_how_many_answers_were_reused_also_after_a_resume(known, is_killed):
    with Ledger.in_memory() as ledger:
        other = {"answers": "other", "outcome": "one-before", "nothing": "", "one answer": ""}[known]
        if other:  # an outcome has another key where another scorer looked at the same answers
            rollout_costs(ledger, other)
        if known == "one answer":
            asyncio.run(ask(calls_to(FIRST, ledger, run="other"), "b"))
        if is_killed:
            rollout_costs(ledger, "one", kill=True)
        cost = rollout_costs(ledger, "one")
        # an outcome for which one question was asked is not a reused one
        reused, asked = {"nothing": (0, 3), "answers": (2, 0), "outcome": (2, 0), "one answer": (0, 2)}[known]
        assert (cost.reused, cost.unidentified, cost.calls) == (reused, 0, asked)


def test_a_reused_answer_of_an_unknown_server_is_counted_as_that():
    with Ledger.in_memory() as ledger:
        calls = calls_to(None, ledger, run="old")
        asyncio.run(ask(calls, "a"))
        ledger._connection.execute("UPDATE reply SET served = '', time = 0")  # as the upgrade of its format leaves it
        calls = calls_to(FIRST, ledger, run="new")
        asyncio.run(ask(calls, "a"))
        cost = calls.meter.cost()
        assert (cost.reused, cost.unidentified, cost.calls) == (1, 1, 0)


ALIASES = [
    ("m", "m"),
    ("gpt-x", "gpt-x-2026-01-01"),
    ("gpt-x", "GPT-X-0613"),
    ("maker/x-latest", "x-20260101"),
    ("llama3", "llama3:latest"),
    ("llama3:8b", "llama3"),
    ("x", "/models/x.gguf"),
    ("x-20260101", "x"),
    ("gpt-4", ""),
]
OTHER_NAMES = [
    ("gpt-x", "gpt-x-mini"),
    ("qwen2.5", "llama3"),
    ("llama3:8b", "llama3:70b"),
    ("gpt-4-0613", "gpt-4-1106"),
    ("opus-4", "opus-4-1-20250805"),
    ("x", "y/x-instruct"),
]


@pytest.mark.parametrize(
    ("asked", "answered", "is_told"),
    [*((*names, False) for names in ALIASES), *((*names, True) for names in OTHER_NAMES)],
)
def test_a_model_that_answers_by_another_name_is_told_once(asked, answered, is_told):
    server, remarks = replace(FIRST, model=asked), list[str]()
    backend = ScriptedBackend(name=answered)
    with Ledger.in_memory() as ledger:
        calls = calls_to(server, ledger, run="one", backend=backend)
        calls.traffic.remark = remarks.append
        for question in "abc":
            asyncio.run(ask(calls, question))
    assert remarks == ([f"warning: 127.0.0.1:8401 answers as {answered}, not {asked}"] if is_told else [])


@pytest.mark.parametrize(
    "server", [PINNED, replace(FIRST, names_deployments=True), replace(FIRST, answers_as="llama3"), None]
)
def test_a_name_that_its_provider_or_owner_gives_and_one_that_was_told_already_are_no_surprise(server):
    remarks = list[str]()
    with Ledger.in_memory() as ledger:
        calls = calls_to(server, ledger, run="one", backend=ScriptedBackend(name="llama3"))
        calls.traffic.remark = remarks.append
        asyncio.run(ask(calls, "a"))
    assert remarks == []
