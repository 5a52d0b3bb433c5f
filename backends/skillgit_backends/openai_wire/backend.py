"""Owns one call from request to reply: which dialect is spoken, and with what parameters of the server's."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from skillgit.errors import FatalBackendError
from skillgit_backends.openai_wire import chat, responses
from skillgit_backends.openai_wire.connection import Connection
from skillgit_backends.openai_wire.endpoint import find_endpoint
from skillgit_backends.openai_wire.failing import Fault, embedded, failure, judged
from skillgit_backends.openai_wire.reading import not_an_answer
from skillgit_backends.openai_wire.variant import read_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openai import AsyncOpenAI

    from skillgit.plugin.backend import BackendInfo, Reply, Request
    from skillgit_backends.openai_wire.endpoint import Endpoint
    from skillgit_backends.openai_wire.variant import Variant

_NEWER, _OLDER = "max_completion_tokens", "max_tokens"
_NOT_KNOWN = re.compile(r"unsupported|not supported|unrecognized|unknown|unexpected|extra|not permitted", re.IGNORECASE)


class OpenAIWireBackend:
    """Talks to whatever speaks OpenAI's protocol; a subclass says in what it differs."""

    info: BackendInfo
    variant: ClassVar[Variant]

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = read_settings(self.variant, settings)
        self._connection = Connection(self._settings.timeout_s)
        self._learnt: dict[tuple[str, str], str] = {}

    async def complete(self, request: Request) -> Reply:
        """Answer ``request``.

        Raises:
            RetryableBackendError: The call may succeed if it is repeated.
            FatalBackendError: It will not, or there is no key.
        """
        endpoint = find_endpoint(self.variant, self._settings, os.environ)
        client = self._connection.client(endpoint)
        asked = self._adapted(request, endpoint)
        if self._wants_responses(asked, endpoint):
            document = self._checked(await self._ask_responses(client, asked, endpoint), endpoint)
            return responses.read(document, asked, self.variant.name)
        document = self._checked(await self._ask_chat(client, asked, endpoint), endpoint)
        return chat.read(document, asked, self.variant.name)

    async def aclose(self) -> None:
        """Release connections."""
        await self._connection.aclose()

    def _adapted(self, request: Request, endpoint: Endpoint) -> Request:
        """Return ``request`` with what the settings and the provider make of it."""
        settings, effort = self._settings, request.reasoning_effort
        if effort == "max" and endpoint.official:
            effort = "xhigh"  # OpenAI's highest
        limit = request.max_output_tokens
        return replace(
            request,
            temperature=settings.temperature if request.temperature is None else request.temperature,
            reasoning_effort=effort if self.variant.effort else "",
            max_output_tokens=limit if settings.max_tokens is None else min(limit, settings.max_tokens),
        )

    def _wants_responses(self, request: Request, endpoint: Endpoint) -> bool:
        if self._settings.api != "auto":
            return self._settings.api == "responses"
        # Newer models of OpenAI take tools together with an effort only there.
        both = bool(request.tools and request.reasoning_effort) and not endpoint.azure
        return endpoint.official and (both or responses.only_here(request.model))

    async def _ask_responses(self, client: AsyncOpenAI, request: Request, endpoint: Endpoint) -> bytes:
        asked = responses.parameters(request, limit=request.max_output_tokens)
        if endpoint.azure and endpoint.version < responses.AZURE_VERSION:
            asked["extra_query"] = {"api-version": responses.AZURE_VERSION}
        asked["extra_body"] = self.variant.extra_body(self._settings, request)
        return await self._sent(client.responses.with_raw_response.create, asked, endpoint)

    async def _ask_chat(self, client: AsyncOpenAI, request: Request, endpoint: Endpoint) -> bytes:
        """Ask by chat completions; a server that knows the reply's limit by its other name is asked by that one.

        The refusal costs nothing, and it happens once: what a server wants is remembered.
        """
        place, wanted = (endpoint.url, request.model), self._settings.token_parameter
        known = wanted if wanted != "auto" else self._learnt.get(place, _NEWER if endpoint.official else _OLDER)
        try:
            return await self._ask_chat_by(known, client, request, endpoint)
        except FatalBackendError as error:
            if wanted != "auto" or known not in error.message or not _NOT_KNOWN.search(error.message):
                raise
        self._learnt[place] = _OLDER if known == _NEWER else _NEWER
        return await self._ask_chat_by(self._learnt[place], client, request, endpoint)

    async def _ask_chat_by(self, limit_name: str, client: AsyncOpenAI, request: Request, endpoint: Endpoint) -> bytes:
        asked = chat.parameters(request, limit=request.max_output_tokens, token_parameter=limit_name)
        asked["extra_body"] = self.variant.extra_body(self._settings, request)
        return await self._sent(client.chat.completions.with_raw_response.create, asked, endpoint)

    async def _sent(self, create: Callable[..., Awaitable[Any]], asked: dict[str, Any], endpoint: Endpoint) -> bytes:
        try:
            answer = await create(**asked)
        except Exception as error:  # SDK, transport and sign-in raise classes of their own; the rest is raised again
            known = failure(error, endpoint, self.variant.name)
            if known is None:
                raise
            raise known from None  # the SDK's error may quote the key
        body: bytes = answer.content
        return body

    def _checked(self, body: bytes, endpoint: Endpoint) -> Mapping[str, object]:
        """Return what an answer of status 200 says, if it is no error after all."""
        name = self.variant.name
        try:
            document = json.loads(body)
        except ValueError:
            raise not_an_answer(name, "is not JSON") from None
        if not isinstance(document, dict):
            raise not_an_answer(name, "is not an object of JSON")
        fault = self.variant.fault(document)
        if fault is not None:
            raise judged(Fault(status=fault[0], said=fault[1]), endpoint, name)
        if document.get("error"):
            raise embedded(document["error"], endpoint, name)
        return document
