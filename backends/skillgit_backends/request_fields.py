"""Owns the fields of a request that not every model takes: parameters, and the schema of the reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import TypeVar

from skillgit.errors import ContentFilterError, FatalBackendError, PromptTooLongError
from skillgit.plugin.backend import NO_TOKENS, Image, Part, Request, Text

_UNBILLED = (None, NO_TOKENS)
T = TypeVar("T")


def _without_schema(request: Request) -> Request:
    return replace(request, schema=None)


def _without_pictures(request: Request) -> Request:
    messages = tuple(replace(message, parts=tuple(map(_in_words, message.parts))) for message in request.messages)
    return request if messages == request.messages else replace(request, messages=messages)


def _in_words(part: Part) -> Part:
    return Text(text="[not shown: you take no pictures]") if isinstance(part, Image) and part.is_optional else part


_REFUSED = frozenset({400, 422})
_LEFT_OUT: Mapping[Callable[[Request], Request], frozenset[int]] = {
    _without_schema: _REFUSED,
    _without_pictures: _REFUSED | {404, 415},
}
"""What a request can do without, and with which statuses servers refuse it."""


class Refusals:
    """Remembers which models take no schema and which no pictures; models that refuse them are asked without."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], tuple[Callable[[Request], Request], ...]] = {}

    def without(self, url: str, request: Request) -> Request:
        """Return ``request`` without what its model refused before."""
        return reduce(_applied, self._refused.get((url, request.model), ()), request)

    async def ask(self, url: str, request: Request, answer: Callable[[Request], Awaitable[T]]) -> T:
        """Return the answer to ``request`` without what this model refused before, found by unbilled trial."""
        model, request = (url, request.model), self.without(url, request)
        optional = [left_out for left_out in _LEFT_OUT if left_out(request) != request]
        trials = [trial for size in range(len(optional) + 1) for trial in combinations(optional, size)]
        for trial in trials:
            try:
                reply = await answer(reduce(_applied, trial, request))
            except FatalBackendError as error:
                if trial == trials[-1] or not any(_refuses(error, _LEFT_OUT[left_out]) for left_out in optional):
                    raise
            else:
                self._refused[model] = (*self._refused.get(model, ()), *trial)
                return reply
        raise AssertionError("the last trial ends the loop")


def _applied(request: Request, left_out: Callable[[Request], Request]) -> Request:
    return left_out(request)


def _refuses(error: FatalBackendError, statuses: frozenset[int]) -> bool:
    """Say whether ``error`` may be about a field: it is unbilled, and nothing else is known to be wrong."""
    is_other = isinstance(error, PromptTooLongError | ContentFilterError) or error.usage not in _UNBILLED
    return error.status_code in statuses and not is_other
