"""Owns the fields of a request that not every model takes: parameters, and the schema of the reply."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from skillgit.errors import ContentFilterError, FatalBackendError, PromptTooLongError
from skillgit.plugin.backend import Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillgit.plugin.backend import Request

_REFUSED = frozenset({400, 422})
_UNBILLED = (None, Usage(tokens_in=0, tokens_out=0))
_NAMES = {"stop": "stop texts"}
_KEYS = {"temperature": "calls.temperature"}
T = TypeVar("T")


def refuse(request: Request, *fields: str, answerer: str) -> None:
    """Refuse a request that sets one of ``fields``: ``answerer`` has no such parameter, and ignores none silently."""
    for field in fields:
        if getattr(request, field) not in (None, ()):
            raise FatalBackendError(
                f"{answerer} takes no {_NAMES.get(field, field)}",
                hint=f"leave {_KEYS.get(field, f'model.{field}')} empty",
            )


class SchemaRefusals:
    """Remembers which models take no schema; whoever refuses one is asked without it."""

    def __init__(self) -> None:
        self._models: set[tuple[str, str]] = set()

    async def ask(self, url: str, request: Request, answer: Callable[[Request], Awaitable[T]]) -> T:
        """Return the answer to ``request`` of a model at ``url``, which is asked without its schema if need be.

        Servers word this refusal in many ways, so what counts is that the same question is answered without the
        schema. A refusal is not billed, and is no failed call.
        """
        model, plain = (url, request.model), replace(request, schema=None)
        if request.schema is None or model in self._models:
            return await answer(plain)
        try:
            return await answer(request)
        except FatalBackendError as error:
            is_other = isinstance(error, PromptTooLongError | ContentFilterError) or error.usage not in _UNBILLED
            if error.status_code not in _REFUSED or is_other:
                raise
        reply = await answer(plain)
        self._models.add(model)
        return reply
