"""How a use case that asks models opens the door to them, and how Ctrl-C closes it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

from skillgit.calls.client import CallPolicy, Calls
from skillgit.errors import BudgetError, ServiceError, StoppedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.setup.setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.calls.ledger import Ledger
    from skillgit.domain.cost import Caps


def open_door(context: Context, setup: Setup, caps: Caps, ledger: Ledger, *, ask_again: bool = False) -> Calls:
    """Return the door to the models of ``setup``; ``ask_again`` asks once more what is never answered."""
    settings = setup.config.values.calls
    return Calls(
        routes=setup.routes,
        ledger=ledger,
        caps=caps,
        sleep=asyncio.sleep,
        random=Random(context.entropy(8)),  # noqa: S311 - jitter of retries
        clock=lambda: context.clock().timestamp(),
        policy=CallPolicy(
            attempts=settings.max_retries + 1,
            patience_s=settings.retry_budget_s,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            item_timeout_s=settings.item_timeout_s,
            hedge=settings.hedge,
        ),
        ask_again=ask_again,
    )


@contextmanager
def stop_on_interrupt(calls: Calls) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one interrupts, and later ones do nothing.

    After an interruption SIGINT stays ignored: the process is on its way out, and another one would only break that.
    """

    def leave(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    def stop(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, leave)
        calls.stop()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread: whoever started it owns the signals
        yield
        return
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, before)


@contextmanager
def nothing_is_lost(on_stop: str = "the evaluation is stopped") -> Iterator[None]:
    """Say that nothing is lost where the work ends early; ``on_stop`` says so where the user stopped it."""
    hint = "type the same command again: what was measured is kept and costs nothing"
    try:
        yield
    except (StoppedError, KeyboardInterrupt) as error:
        raise StoppedError(f"{on_stop}; nothing is lost", hint=hint) from error
    except BudgetError as error:
        error.hint = f"{hint}, so a larger cap goes on where it stands"
        raise
    except ServiceError as error:
        error.hint = error.hint or hint
        raise
