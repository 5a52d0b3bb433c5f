"""Owns what a failure of a call has to be: an error of the right kind, in time, without a key in its words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError
from skillgit.plugin.conformance.misbehaviour import Misbehaving, unreachable_address
from skillgit.plugin.conformance.promises import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.conformance.case import Case
    from skillgit.plugin.conformance.promises import Promises

_WAIT_S = 7.0
_LINGERS_S = 5.0
_SHORTEST_KEY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """What a server does, and what that has to become."""

    what: str
    kind: type[BackendError]
    status: int = 0
    body: str = ""


_FAULTS = (
    _Fault(what="a refused key (401)", status=401, kind=FatalBackendError),
    _Fault(what="a forbidden model (403)", status=403, kind=FatalBackendError),
    _Fault(what="an unknown model (404)", status=404, kind=FatalBackendError),
    _Fault(what="a request that is not understood (400)", status=400, kind=FatalBackendError),
    _Fault(what="a rate limit (429)", status=429, kind=RetryableBackendError),
    _Fault(what="a server's own failure (500)", status=500, kind=RetryableBackendError),
    _Fault(what="an overloaded server (503)", status=503, kind=RetryableBackendError),
    _Fault(what="an answer that is not JSON", status=200, body="<html>hello</html>", kind=BackendError),
    _Fault(what="an answer of another API", status=200, body='{"object": "list", "data": 1}', kind=BackendError),
    _Fault(what="a connection that breaks off", kind=RetryableBackendError),
)


async def check_failures(case: Case, promises: Promises) -> None:
    """Let the backend talk to servers that misbehave, if it can be sent to them."""
    if case.misbehaving is None:
        return
    settings = case.misbehaving(unreachable_address())
    error = await _error(case, settings, "a server that is not there", promises)
    _check_kind(error, RetryableBackendError, "a server that is not there", promises)
    for fault in _FAULTS:
        async with Misbehaving(status=fault.status, body=fault.body, retry_after_s=_WAIT_S) as server:
            error = await _error(case, case.misbehaving(server.url), fault.what, promises)
        _check_kind(error, fault.kind, fault.what, promises)
        _check_words(error, fault.what, server.keys, promises)
        if fault.status == 429 and isinstance(error, RetryableBackendError):  # noqa: PLR2004 - too many requests
            told = error.retry_after == _WAIT_S
            promises.hold(told, f"retry_after is {error.retry_after}, but the server said Retry-After: {_WAIT_S:g}")
    await _check_cancellation(case, promises)


async def _error(case: Case, settings: Mapping[str, object], what: str, promises: Promises) -> BaseException | None:
    try:
        async with case.opened(settings) as backend:
            await case.ask(backend, case.request)
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way; which one it was is looked at
        return error
    promises.hold(kept=False, sentence=f"{what} becomes a reply")
    return None


def _check_kind(error: BaseException | None, kind: type[BackendError], what: str, promises: Promises) -> None:
    if error is not None:
        promises.hold(isinstance(error, kind), f"{what} has to be a {kind.__name__}, but is {described(error)}")


def _check_words(error: BaseException | None, what: str, keys: set[str], promises: Promises) -> None:
    said = f"{error} {getattr(error, 'hint', '')}"
    told = any(len(key) >= _SHORTEST_KEY and key in said for key in keys)
    promises.hold(not told, f"the error for {what} repeats the key that the server quotes")


async def _check_cancellation(case: Case, promises: Promises) -> None:
    """Cancel a call that a server never answers: it has to end, and its connection with it."""
    assert case.misbehaving is not None  # noqa: S101 - for the type checker
    with promises.during("a call that is cancelled while the server is silent"):
        async with Misbehaving(silent=True) as server, case.opened(case.misbehaving(server.url)) as backend:
            task = asyncio.ensure_future(backend.complete(case.request))
            asked = asyncio.ensure_future(server.asked.wait())
            await asyncio.wait({task, asked}, timeout=case.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            task.cancel()
            ended, _ = await asyncio.wait({task}, timeout=_LINGERS_S)
            promises.hold(ended, f"a call that is cancelled does not end within {_LINGERS_S:g} s")
            if server.asked.is_set():
                left = await server.left(_LINGERS_S)
                promises.hold(left, "a call that is cancelled leaves its connection open, so that the server works on")
