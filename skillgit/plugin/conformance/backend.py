"""Owns what every backend promises: what it says of itself, how it is made, how it answers and how it ends."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.errors import SkillgitError
from skillgit.plugin.backend import Backend, BackendInfo, system, user
from skillgit.plugin.conformance import answering, failing
from skillgit.plugin.conformance.case import Case
from skillgit.plugin.conformance.promises import Promises, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from skillgit.plugin.backend import Message

_PLAIN = (system("You are brief."), user("Say hello."))
_NO_SETTING = "a_setting_that_no_backend_has"
_LINGERS_S = 5.0


def check_backend(
    cls: type[Backend],
    settings: Mapping[str, object] | None = None,
    *,
    model: str,
    messages: Sequence[Message] = _PLAIN,
    echoes: bool = False,
    tools: bool = False,
    images: bool = False,
    misbehaving: Callable[[str], Mapping[str, object]] | None = None,
    timeout_s: float = 60.0,
) -> None:
    """Examine a backend, with about 40 small calls of its model; call it where no event loop runs.

    Args:
        cls: The backend's class.
        settings: Settings that it works with.
        model: The model to ask.
        messages: A conversation that the model can answer; the last message is the user's.
        echoes: Whether the model's reply repeats the last user message. Only then mixed-up answers can be told.
        tools: Whether the model calls a tool when it is offered one.
        images: Whether the model takes pictures.
        misbehaving: Returns the settings with which the backend asks the server at an address. The kit runs servers
            that refuse, break off and never answer there. Without it, these failures are not examined.
        timeout_s: Seconds that one reply may take.

    Raises:
        ConformanceError: It breaks promises of the contract.
    """
    promises = Promises(cls.__name__)
    case = Case(
        cls=cls,
        settings=dict(settings or {}),
        model=model,
        messages=tuple(messages),
        echoes=echoes,
        tools=tools,
        images=images,
        misbehaving=misbehaving,
        timeout_s=timeout_s,
    )
    _check_info(case, promises)
    if _check_making(case, promises):
        asyncio.run(_check_calls(case, promises))
    promises.settle()


async def _check_calls(case: Case, promises: Promises) -> None:
    with promises.during("a plain request"):
        async with case.opened() as backend:
            reply = await case.ask(backend, case.request)
            answering.check_reply(reply, promises)
        await answering.check_repetition(case, promises)
        await answering.check_letters(case, promises)
        await answering.check_many(case, promises)
        await answering.check_tools(case, promises)
        await answering.check_images(case, promises)
    await _check_cancellation(case, promises)
    await _check_closing(case, promises)
    await failing.check_failures(case, promises)


def _check_info(case: Case, promises: Promises) -> None:
    info = getattr(case.cls, "info", None)
    if not promises.hold(isinstance(info, BackendInfo), "its class has no info, which is a BackendInfo"):
        return
    assert isinstance(info, BackendInfo)  # noqa: S101 - for the type checker
    promises.hold(info.name.isidentifier(), f"info.name is '{info.name}', which no configuration key can begin with")
    promises.hold(info.summary.strip(), "info.summary is empty")
    promises.hold("\n" not in info.summary, "info.summary is longer than one line")
    known = not info.models or any(case.model == name or name in case.model for name in info.models)
    promises.hold(known, f"info.models lists the models that it knows, but not '{case.model}'")
    priced = all(price.usd_in >= 0 and price.usd_out >= 0 for price in info.prices.values())
    promises.hold(priced, "info.prices has a price below zero")


def _check_making(case: Case, promises: Promises) -> bool:
    """Say whether a backend can be made, so that there is something to ask."""
    with _connections() as made:
        try:
            backend = case.cls(dict(case.settings))
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
            return promises.hold(kept=False, sentence=f"it cannot be made with its settings: {described(error)}")
    promises.hold(not made, "it uses the network while it is made; that is for the first call")
    promises.hold(isinstance(backend, Backend), "it lacks a method of the contract: complete, aclose")
    try:
        case.cls({**case.settings, _NO_SETTING: 1})
    except SkillgitError:
        return True
    except Exception as error:  # noqa: BLE001 - see above
        promises.hold(
            kept=False, sentence=f"a setting that it does not know raises {described(error)}, not ConfigError"
        )
        return True
    promises.hold(kept=False, sentence="it silently ignores a setting that it does not know")
    return True


@contextmanager
def _connections() -> Iterator[list[object]]:
    """Note every connection that is tried while the block lasts."""
    made: list[object] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def noted_connect(self: socket.socket, address: object) -> None:
        made.append(address)
        connect(self, address)  # type: ignore[arg-type]

    def noted_look_up(*place: object, **more: object) -> object:
        made.append(place)
        return look_up(*place, **more)  # type: ignore[arg-type]

    socket.socket.connect = noted_connect  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = noted_look_up  # type: ignore[assignment]
    try:
        yield made
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.getaddrinfo = look_up


async def _check_cancellation(case: Case, promises: Promises) -> None:
    """Cancel a call that has just begun: a run that is stopped must not wait for what nobody wants any more."""
    with promises.during("a call that is cancelled"):
        async with case.opened() as backend:
            task = asyncio.ensure_future(backend.complete(case.request))
            for _ in range(3):
                await asyncio.sleep(0)
            task.cancel()
            ended, _ = await asyncio.wait({task}, timeout=_LINGERS_S)
            promises.hold(ended, f"a call that is cancelled does not end within {_LINGERS_S:g} s")
            if ended and not task.cancelled() and (error := task.exception()):
                promises.hold(kept=False, sentence=f"a call that is cancelled raises {described(error)}")


async def _check_closing(case: Case, promises: Promises) -> None:
    with promises.during("aclose before the first call"):
        await case.cls(dict(case.settings)).aclose()
    with promises.during("a second aclose"):
        backend = case.cls(dict(case.settings))
        await backend.aclose()
        await backend.aclose()
