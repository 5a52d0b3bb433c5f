"""What all backends share that speak OpenAI's protocol; each of them is a :class:`Variant` in a package of its own.

How an address and a key are found, the connection, the two dialects (chat completions and Responses), and what a
failure means. The SDK is imported at the first call.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from skillgit.domain.did_you_mean import nearest
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import BackendError, FatalBackendError
from skillgit.plugin.backend import BackendInfo, ModelServer, Probe, Reply, Request, encodable, token_count
from skillgit_backends.backend_settings import NO_KEY
from skillgit_backends.openai_wire import dialects
from skillgit_backends.openai_wire.dialects import mappings, not_an_answer
from skillgit_backends.openai_wire.endpoint import (
    UNKNOWN_MODEL,
    Endpoint,
    ServerFault,
    Variables,
    embedded,
    failure,
    find_endpoint,
    find_server,
    judged,
    looked_at,
    require_address,
)
from skillgit_backends.openai_wire.served_facts import served_facts
from skillgit_backends.openai_wire.variant import Settings, Variant, read_settings
from skillgit_backends.provider_messages import mapping
from skillgit_backends.request_fields import Refusals

if TYPE_CHECKING:
    from openai import AsyncOpenAI, RequestOptions


_CONNECT_S = 20.0


class Connection:
    """Holds the client; keys live in it and nowhere else."""

    def __init__(self, backend: str, timeout_s: float) -> None:
        self._backend = backend
        self._timeout_s = timeout_s
        self._client: AsyncOpenAI | None = None
        self._made_for: tuple[asyncio.AbstractEventLoop, Endpoint] | None = None
        self._to_close: list[Any] = []

    def client(self, endpoint: Endpoint) -> AsyncOpenAI:
        here = (asyncio.get_running_loop(), endpoint)
        if self._client is None or self._made_for != here:
            # Calls may still be in flight on the one before, so it is closed only at the end.
            self._client, self._made_for = self._made(endpoint), here
            self._to_close.append(self._client)
        return self._client

    async def aclose(self) -> None:
        closing, self._to_close = self._to_close, []
        self._client, self._made_for = None, None
        for handle in closing:
            await handle.close()

    def _made(self, endpoint: Endpoint) -> AsyncOpenAI:
        from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient, Timeout  # noqa: PLC0415 - slow

        from skillgit_backends.bounded_http import BoundedClient  # noqa: PLC0415

        class OpenAIHttpClient(BoundedClient, DefaultAioHttpClient):
            """The SDK's client over aiohttp, with limits, and redirects that stay where they are."""

        timeout = Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s))
        # Without TLS no certificates count, which spares reading all that there are.
        verify = endpoint.url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = OpenAIHttpClient(backend=self._backend, timeout=timeout, verify=verify)
        if not endpoint.azure:
            return AsyncOpenAI(
                base_url=endpoint.url, api_key=endpoint.key or NO_KEY, max_retries=0, http_client=transport
            )
        return AsyncAzureOpenAI(
            azure_endpoint=endpoint.url.rstrip("/"),
            api_version=endpoint.version,
            api_key=endpoint.key or None,
            azure_ad_token_provider=None if endpoint.key else self._tokens(endpoint),
            max_retries=0,
            http_client=transport,
        )

    def _tokens(self, endpoint: Endpoint) -> Callable[[], Awaitable[str]]:
        """Return where the SDK gets a token for each call; it is kept until shortly before it expires."""
        try:
            from azure.identity.aio import AzureCliCredential, ManagedIdentityCredential, get_bearer_token_provider  # noqa: PLC0415 - an extra that few need
        except ImportError:
            raise FatalBackendError(
                f"the sign-in '{endpoint.auth}' needs the package azure-identity",
                hint="pip install 'skillgit[azure]', or put a key into AZURE_OPENAI_API_KEY",
            ) from None
        is_cli, client_id = endpoint.auth == "azure_cli", endpoint.client_id or None
        credential = AzureCliCredential() if is_cli else ManagedIdentityCredential(client_id=client_id)
        self._to_close.append(credential)
        return get_bearer_token_provider(credential, endpoint.scope)


_NAMES = ("max_model_len", "context_length", "context_window")  # vLLM and SGLang; gateways; others


_NAMED = 12


def model_names(document: object) -> list[str]:
    """Return the names of the models that a server lists."""
    return [str(entry["id"]) for entry in mappings(mapping(document).get("data")) if isinstance(entry.get("id"), str)]


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
    for entry in mappings(mapping(document).get("data")):
        if entry.get("id") == model:
            meta = mapping(entry.get("meta"))  # llama.cpp
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
        self._connection = Connection(self.variant.name, self._settings.timeout_s)
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
        client = self._connection.client(endpoint)
        adapted_request = self._adapted(request, endpoint)
        if self._wants_responses(adapted_request, endpoint):
            body, read = await self._ask_responses(client, adapted_request, endpoint), dialects.read_responses
        else:
            body, read = await self._ask_chat(client, adapted_request, endpoint), dialects.read_chat
        return read(self._checked(body, endpoint), adapted_request, self.variant.name)

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
                client = self._connection.client(endpoint)
                return read_document(await self._sent(client.models.with_raw_response.list(), endpoint))
        except (BackendError, TimeoutError, ValueError):
            return None

    def server(self) -> ModelServer | None:
        return find_server(self.variant, self._settings, os.environ, self._role)

    async def served_facts(self, model: str) -> Mapping[str, object] | None:
        """Return what the server says about ``model`` in its list of models, and where it is one that says more."""
        endpoint = self._endpoint()
        if endpoint.azure:
            return {}  # a deployment has no list of models
        # A connection of its own, for the caller may be in another event loop than the calls.
        connection = Connection(self.variant.name, _FACTS_S)
        try:
            async with asyncio.timeout(_FACTS_S):
                return await served_facts(lambda url: self._listed(connection, endpoint, url), endpoint.url, model)
        except (BackendError, TimeoutError):
            return None
        finally:
            await connection.aclose()

    async def _listed(self, connection: Connection, endpoint: Endpoint, url: str) -> object:
        """Return the JSON at ``url``; None if the server has nothing there. A BackendError if it does not answer."""
        from httpx2 import Response  # noqa: PLC0415 - slow to import; the SDK has done so

        options: RequestOptions = {"security": {"bearer_auth": True}}
        call = connection.client(endpoint).get(url, cast_to=Response, options=options)
        try:
            return read_document(await self._sent(call, endpoint))
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

    def _wants_responses(self, request: Request, endpoint: Endpoint) -> bool:
        if self._settings.api != "auto":
            return self._settings.api == "responses"
        # Newer models of OpenAI take tools together with an effort only there.
        both = bool(request.tools and request.reasoning_effort) and not endpoint.azure
        return endpoint.official and (both or dialects.wants_responses(request.model))

    async def _ask_responses(self, client: AsyncOpenAI, request: Request, endpoint: Endpoint) -> bytes:
        old = endpoint.azure and endpoint.version < dialects.AZURE_VERSION
        query = {"api-version": dialects.AZURE_VERSION} if old else {}
        return await self._posted(client, "/responses", self._responses_body(request), endpoint, query)

    def _responses_body(self, request: Request) -> dict[str, Any]:
        return dialects.responses_parameters(request) | self.variant.extra_body(self._settings, request)

    async def _ask_chat(self, client: AsyncOpenAI, request: Request, endpoint: Endpoint) -> bytes:
        """Ask by chat completions; which of two names the server has for a reply's limit is learned once, for free."""
        limit_name = self._limit_name(request, endpoint)
        try:
            return await self._posted(client, "/chat/completions", self._chat_body(request, limit_name), endpoint, {})
        except FatalBackendError as error:
            parameter = self._settings.token_parameter
            if parameter != "auto" or limit_name not in error.message or not _NOT_KNOWN.search(error.message):
                raise
        limit_name = self._learnt[endpoint.url, request.model] = _OLDER if limit_name == _NEWER else _NEWER
        return await self._posted(client, "/chat/completions", self._chat_body(request, limit_name), endpoint, {})

    def _limit_name(self, request: Request, endpoint: Endpoint) -> str:
        parameter = self._settings.token_parameter
        usual_name = self._learnt.get((endpoint.url, request.model), _NEWER if endpoint.official else _OLDER)
        return usual_name if parameter == "auto" else parameter

    def _chat_body(self, request: Request, limit_name: str) -> dict[str, Any]:
        return dialects.chat_parameters(request, limit_name) | self.variant.extra_body(self._settings, request)

    async def _posted(
        self, client: AsyncOpenAI, path: str, body: dict[str, Any], endpoint: Endpoint, query: dict[str, str]
    ) -> bytes:
        """Post ``body`` unchanged: the SDK's typed methods walk through all of it first, at twice the cost."""
        from httpx2 import Response  # noqa: PLC0415 - slow to import; the SDK has done so

        # As the typed methods have it; what the SDK takes without it sends a key of an administrator that it finds.
        options: RequestOptions = {"security": {"bearer_auth": True}, "params": query}
        return await self._sent(client.post(path, cast_to=Response, body=body, options=options), endpoint)

    async def _sent(self, call: Awaitable[Any], endpoint: Endpoint) -> bytes:
        try:
            answer = await call
        except BackendError:
            raise
        except Exception as error:  # SDK, transport and sign-in raise classes of their own; the rest is raised again
            fault = failure(error, endpoint, self.variant.name)
            if fault is None:
                raise
            raise fault from None  # the SDK's error may quote the key
        body: bytes = answer.content
        return body

    def _checked(self, body: bytes, endpoint: Endpoint) -> Mapping[str, object]:
        """Return what an answer of status 200 says, unless it is an error after all."""
        name = self.variant.name
        try:
            document = read_document(body)
        except DocumentError as error:
            raise not_an_answer(name, str(error)) from None
        if not isinstance(document, dict):
            raise not_an_answer(name, "is not an object of JSON")
        return self._without_fault(document, endpoint)

    def _without_fault(self, document: Mapping[str, object], endpoint: Endpoint) -> Mapping[str, object]:
        name = self.variant.name
        fault = self.variant.fault(document)
        problem = judged(ServerFault(status=fault[0], message=fault[1]), endpoint, name) if fault is not None else None
        if problem is None and document.get("error"):
            problem = embedded(document["error"], endpoint, name)
        if problem is None:
            return document
        problem.usage = dialects.billed(document)
        raise problem


__all__ = ["OpenAIWireBackend", "Settings", "Variant"]
