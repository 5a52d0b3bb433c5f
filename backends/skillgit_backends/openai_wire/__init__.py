"""What all backends share that speak OpenAI's protocol; each of them is a :class:`Variant` in a package of its own.

How an address and a key are found, which of the two wire formats is asked in, and what servers list.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from skillgit.domain.did_you_mean import nearest
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import BackendError, FatalBackendError
from skillgit.plugin.backend import BackendInfo, ModelServer, Probe, Reply, Request, encodable, token_count
from skillgit.wire import CHAT, RESPONSES, WireFormat
from skillgit.wire.json_values import Fields, entries_at, fields_at, text_at
from skillgit_backends.backend_settings import Endpoint
from skillgit_backends.openai_wire.endpoint import Variables, find_endpoint, find_server, looked_at, require_address
from skillgit_backends.openai_wire.served_facts import served_facts
from skillgit_backends.openai_wire.variant import Settings, Variant, read_settings
from skillgit_backends.provider_failures import UNKNOWN_MODEL, ServerFault, judge, read_reply
from skillgit_backends.request_fields import Refusals
from skillgit_backends.sdk_connection import OpenAIConnection

_RESPONSES_AT_AZURE = "2025-04-01-preview"  # the oldest version of Azure's API that is asked for Responses
_RESPONSES_ONLY = re.compile(r"codex|computer-use|deep-research|(?:\A|[/-])(?:o\d|gpt-\d+(?:\.\d+)?)-pro\b")


def wants_responses(model: str) -> bool:
    """Say whether ``model`` of OpenAI cannot be asked by chat completions."""
    return _RESPONSES_ONLY.search(model) is not None


_NAMES = ("max_model_len", "context_length", "context_window")  # vLLM and SGLang; gateways; others


_NAMED = 12


def model_names(document: object) -> list[str]:
    """Return the names of the models that a server lists."""
    return [name for entry in entries_at(document, "data") if (name := text_at(entry, "id"))]


def known_models(model: str, names: list[str], role: str) -> str:
    """Return the hint for a model that a server does not have; empty if it does not say which it has."""
    if not names:
        return ""
    near = nearest(model, names)
    listing = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    name = near or (names[0] if len(names) == 1 else "MODEL")
    meant = f"did you mean '{near}'? " if near else ""
    return f"{meant}The server has {listing}: -o model.{role or 'target'}={name}"


def context_in(document: object, model: str) -> int | None:
    """Return the tokens that ``model`` takes as ``GET /models`` reports them; None if it does not."""
    for entry in entries_at(document, "data"):
        if entry.get("id") == model:
            meta = fields_at(entry, "meta")  # llama.cpp
            numbers = (
                token_count(fields.get(name))
                for fields, names in ((entry, _NAMES), (meta, ("n_ctx",)))
                for name in names
            )
            return next(filter(None, numbers), None)
    return None


_LIST_S = 10.0
_FACTS_S = 60.0
"""A busy server takes its time, and what it says identifies all that it answers; one that is down fails at once."""
_NOTHING_THERE = frozenset({400, 404, 405, 501})  # what servers answer at paths that they do not have
_NEWER, _OLDER = "max_completion_tokens", "max_tokens"
_NOT_KNOWN = re.compile(r"unsupported|not supported|unrecognized|unknown|unexpected|extra|not permitted", re.IGNORECASE)


class OpenAIWireBackend:
    """Talks to any server of OpenAI's protocol; a subclass says in what it differs."""

    info: BackendInfo
    variant: ClassVar[Variant]

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = read_settings(self.variant, settings)
        self._connection = OpenAIConnection(self._settings.timeout_s)
        self._role = ""
        self._learnt: dict[tuple[str, str], str] = {}
        self._refusals = Refusals()

    async def complete(self, request: Request) -> Reply:
        endpoint = self._endpoint()
        try:
            return await self._refusals.ask(endpoint.url, request, lambda question: self._answer(question, endpoint))
        except BackendError as error:
            if UNKNOWN_MODEL.search(error.message) and not endpoint.azure:
                names = model_names(await self._models(endpoint))
                error.hint = known_models(request.model, names, self._role) or error.hint
            error.hint = error.hint.replace(f"model.{self.variant.name}_base_url", endpoint.source)
            raise

    async def _answer(self, request: Request, endpoint: Endpoint) -> Reply:
        adapted_request = self._adapted(request, endpoint)
        wire = self._format(adapted_request, endpoint)
        if wire is RESPONSES:
            is_old = endpoint.azure and endpoint.version < _RESPONSES_AT_AZURE
            query = {"api-version": _RESPONSES_AT_AZURE} if is_old else {}
            answer = await self._connection.post(endpoint, "/responses", self._body(wire, adapted_request), query)
        else:
            answer = await self._ask_chat(adapted_request, endpoint)
        return self._read(wire, wire.read_body(answer, self.variant.name), adapted_request, endpoint)

    def play(self, role: str) -> tuple[str, ...]:
        """Look for the variables of ``role`` before the shared ones; return those of its own that are set."""
        self._role = role
        require_address(self.variant, self._settings, os.environ, role)
        variables = Variables(os.environ, role)
        return tuple(variables.name(name) for name in looked_at(self.variant) if variables.is_own(name))

    async def probe(self) -> Probe:
        """Return where calls go and which variable the key comes from; a FatalBackendError if it lacks a key."""
        endpoint = self._endpoint()
        self._connection.client(endpoint)  # so that the first call's time is that of its answer, not of loading the SDK
        return Probe(place=endpoint.host, ready=True, detail=endpoint.credential)

    async def context(self, model: str) -> int | None:
        """Return the tokens that the server says ``model`` takes; OpenAI and Azure do not tell, local servers may."""
        endpoint = self._endpoint()
        return None if endpoint.official else context_in(await self._models(endpoint), model)

    async def _models(self, endpoint: Endpoint) -> object:
        """Return what the server lists as its models; None if it lists none, which a server need not do."""
        try:
            async with asyncio.timeout(_LIST_S):
                return read_document(await self._connection.get(endpoint, "/models"))
        except (BackendError, TimeoutError, ValueError):
            return None

    async def models(self) -> list[str]:
        """Return the names that the server lists."""
        return model_names(read_document(await self._connection.get(self._endpoint(), "/models")))

    def server(self) -> ModelServer | None:
        return find_server(self.variant, self._settings, os.environ, self._role)

    async def served_facts(self, model: str) -> Mapping[str, object] | None:
        """Return what the server says about ``model`` in its list of models, and where it is one that says more."""
        endpoint = self._endpoint()
        if endpoint.azure:
            return {}  # a deployment has no list of models
        # A connection of its own, for the caller may be in another event loop than the calls.
        connection = OpenAIConnection(_FACTS_S)
        try:
            async with asyncio.timeout(_FACTS_S):
                return await served_facts(lambda url: self._listed(connection, endpoint, url), endpoint.url, model)
        except (BackendError, TimeoutError):
            return None
        finally:
            await connection.aclose()

    async def _listed(self, connection: OpenAIConnection, endpoint: Endpoint, url: str) -> object:
        """Return the JSON at ``url``; None if the server has nothing there. A BackendError if it does not answer."""
        try:
            return read_document(await connection.get(endpoint, url))
        except DocumentError:
            return None
        except BackendError as error:
            if error.status_code in _NOTHING_THERE:
                return None
            raise

    async def aclose(self) -> None:
        await self._connection.aclose()

    def _endpoint(self) -> Endpoint:
        return find_endpoint(self.variant, self._settings, os.environ, self._role)

    def _adapted(self, request: Request, endpoint: Endpoint) -> Request:
        settings, effort = self._settings, request.reasoning_effort
        if effort == "max" and endpoint.official:
            effort = "xhigh"  # OpenAI's highest
        limit = request.max_output_tokens
        return replace(
            encodable(request),
            temperature=settings.temperature if request.temperature is None else request.temperature,
            reasoning_effort=effort if self.variant.effort else "",
            max_output_tokens=limit if settings.max_tokens is None else min(limit, settings.max_tokens),
        )

    def _format(self, request: Request, endpoint: Endpoint) -> WireFormat:
        if self._settings.api != "auto":
            return RESPONSES if self._settings.api == "responses" else CHAT
        # Newer models of OpenAI take tools together with an effort only there.
        both = bool(request.tools and request.reasoning_effort) and not endpoint.azure
        return RESPONSES if endpoint.official and (both or wants_responses(request.model)) else CHAT

    async def _ask_chat(self, request: Request, endpoint: Endpoint) -> bytes:
        """Ask by chat completions; which of two names the server has for a reply's limit is learned once, for free."""
        limit_name, path = self._limit_name(request, endpoint), "/chat/completions"
        try:
            return await self._connection.post(endpoint, path, self._body(CHAT, request, limit_name))
        except FatalBackendError as error:
            parameter = self._settings.token_parameter
            if parameter != "auto" or limit_name not in error.message or not _NOT_KNOWN.search(error.message):
                raise
        limit_name = self._learnt[endpoint.url, request.model] = _OLDER if limit_name == _NEWER else _NEWER
        return await self._connection.post(endpoint, path, self._body(CHAT, request, limit_name))

    def _limit_name(self, request: Request, endpoint: Endpoint) -> str:
        parameter = self._settings.token_parameter
        usual_name = self._learnt.get((endpoint.url, request.model), _NEWER if endpoint.official else _OLDER)
        return usual_name if parameter == "auto" else parameter

    def _body(self, wire: WireFormat, request: Request, limit_name: str = "") -> Fields:
        body = wire.write_question(request) if wire is RESPONSES else CHAT.write_question(request, limit_name)
        return body | self.variant.extra_body(self._settings, request)

    def _read(self, wire: WireFormat, document: Fields, request: Request, endpoint: Endpoint) -> Reply:
        fault = self.variant.fault(document)
        problem = judge(ServerFault(status=fault[0], message=fault[1]), endpoint) if fault is not None else None
        return read_reply(wire, document, request, endpoint, problem)


__all__ = ["OpenAIWireBackend", "Settings", "Variant"]
