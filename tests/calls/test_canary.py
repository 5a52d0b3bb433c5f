"""What an outage takes at the end of an event is not taken for faults of single items."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from scripted import ScriptedBackend, ask, door

from skillgit.calls.route import QUESTION, STAGE
from skillgit.errors import BackendError, ProviderFailureError, RefusalError, RetryableBackendError


def failing(*words: str, error: type[BackendError] = RetryableBackendError):
    async def answer(request) -> str:
        text = request.messages[-1].text
        if any(word in text for word in words):
            raise error("503")
        return "fine"

    return ScriptedBackend(answer)


async def ask_all(calls, *texts: str) -> None:
    for text in texts:
        with suppress(BackendError):
            await ask(calls, text)


CANARY = QUESTION[0].text


def test_a_provider_that_answers_is_not_asked_again():
    backend = failing("poison")
    calls = door(backend)

    async def course() -> None:
        await ask_all(calls, "poison", "good")
        await calls.settle()

    asyncio.run(course())
    assert CANARY not in backend.asked


def test_one_poisonous_item_at_the_end_is_its_own_fault_and_the_question_is_charged():
    backend = failing("poison")
    calls = door(backend)

    async def course() -> None:
        await ask_all(calls, "good", "poison")
        await calls.settle()
        await calls.settle()

    asyncio.run(course())
    assert backend.asked.count(CANARY) == 1
    assert [(part.role, part.stage) for part in calls.meter.cost().parts] == [("target", STAGE), ("target", "rollout")]


def test_an_outage_at_the_end_is_a_failure_of_the_provider():
    calls = door(failing("poison", CANARY))

    async def course() -> None:
        await ask_all(calls, "good", "poison")
        await calls.settle()

    with pytest.raises(ProviderFailureError, match="does not answer any more: 503"):
        asyncio.run(course())


def test_what_a_provider_refuses_in_one_call_says_nothing_of_the_others():
    backend = failing("poison", CANARY, error=RefusalError)
    calls = door(backend)

    async def course() -> None:
        await ask_all(calls, "poison")
        await calls.settle()

    asyncio.run(course())
    assert CANARY not in backend.asked
