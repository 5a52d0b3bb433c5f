"""Kills a toy run at its model calls and resumes it: the end has to be that of a run that was never killed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.calls.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.engine.run_loop import Trainer


class KilledError(BaseException):
    pass


def check_resume(
    backend: Callable[[], ToyBackend], *, every: int, make: Callable[..., Trainer] = trainer, **options
) -> History:
    """Kill a run that ``make`` makes at every ``every``-th call and resume it; return the unbroken run."""
    whole, unbroken = backend(), History()
    asyncio.run(run_to_end(make(whole, unbroken, **options), unbroken))
    calls = len(whole.requests)
    for kill_at in range(1, calls + 1, every):
        ledger, history, first = Ledger.in_memory(), History(), backend()
        answer = first.complete

        async def dying(request, answer=answer, kill_at=kill_at, first=first):
            if len(first.requests) == kill_at - 1:
                raise KilledError
            return await answer(request)

        first.complete = dying  # type: ignore[method-assign]
        with pytest.raises(KilledError):
            asyncio.run(run_to_end(make(first, history, ledger=ledger, **options), history))
        second = backend()
        asyncio.run(run_to_end(make(second, history, ledger=ledger, **options), history))
        assert facts(history) == facts(unbroken)
        assert len(first.requests) + len(second.requests) == calls
    return unbroken


def facts(history: History) -> list[tuple[object, ...]]:
    return [(transition.event, transition.skill, transition.evidence) for transition in history]
