"""Owns the connection to a provider: the official SDK's client, with its sign-in and transport.

Bodies are posted as they are and answers read as bytes, by the SDKs' own way for requests that they have no method for:
``skillgit.wire`` writes and reads them. The typed methods would walk through all of a body first, and build objects of
an answer that are never used, at twice the cost of a call. The SDKs load at the first call.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from skillgit.errors import BackendError, FatalBackendError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.plugin_identity import install_command
from skillgit_backends.backend_settings import NO_KEY, Endpoint
from skillgit_backends.provider_failures import failure

with loaded_on_use():
    import anthropic
    import httpx2
    import openai

    from skillgit_backends import bounded_http

_CONNECT_S = 20.0


class SdkConnection(ABC):
    """Holds the client of one address and key, in one event loop; keys live in it and nowhere else."""

    options: ClassVar[Mapping[str, Any]] = {}  # of every request

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._client: Any = None
        self._made_for: tuple[asyncio.AbstractEventLoop, Endpoint] | None = None
        self._to_close: list[Any] = []

    @abstractmethod
    def _make(self, endpoint: Endpoint) -> Any: ...  # noqa: ANN401 - an AsyncOpenAI or an AsyncAnthropic

    def client(self, endpoint: Endpoint) -> Any:  # noqa: ANN401 - likewise
        here = (asyncio.get_running_loop(), endpoint)
        if self._client is None or self._made_for != here:
            # Calls may still be in flight on the one before, so it is closed only at the end.
            self._client, self._made_for = self._make(endpoint), here
            self._to_close.append(self._client)
        return self._client

    async def aclose(self) -> None:
        closing, self._to_close = self._to_close, []
        self._client, self._made_for = None, None
        for handle in closing:
            await handle.close()

    async def post(self, endpoint: Endpoint, path: str, body: object, query: Mapping[str, str] | None = None) -> bytes:
        options = {**self.options, "params": query} if query else self.options
        call = self.client(endpoint).post(path, cast_to=httpx2.Response, body=body, options=options)
        return await self.send(call, endpoint)

    async def get(self, endpoint: Endpoint, path: str) -> bytes:
        call = self.client(endpoint).get(path, cast_to=httpx2.Response, options=self.options)
        return await self.send(call, endpoint)

    async def send(self, call: Awaitable[Any], endpoint: Endpoint) -> bytes:
        """Return what an SDK's ``call`` is answered; what it raises becomes a BackendError, as far as that is known."""
        try:
            answer = await call
        except BackendError:
            raise
        except Exception as error:  # SDK, transport and sign-in raise classes of their own; the rest is raised again
            fault = failure(error, endpoint)
            if fault is None:
                raise
            raise fault from None  # the SDK's error may quote the key
        body: bytes = answer.content
        return body


class OpenAIConnection(SdkConnection):
    # As the typed methods have it; what the SDK takes without it sends a key of an administrator that it finds.
    options: ClassVar = {"security": {"bearer_auth": True}}

    def _make(self, endpoint: Endpoint) -> Any:  # noqa: ANN401 - as above
        class OpenAIHttpClient(bounded_http.BoundedClient, openai.DefaultAioHttpClient):
            """The SDK's client over aiohttp, with limits, and redirects that stay where they are."""

        assert self._timeout_s is not None  # noqa: S101 - its setting has a default
        timeout = openai.Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s))
        # Without TLS no certificates count, which spares reading all that there are.
        verify = endpoint.url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = OpenAIHttpClient(backend=endpoint.backend, timeout=timeout, verify=verify)
        if not endpoint.azure:
            return openai.AsyncOpenAI(
                base_url=endpoint.url, api_key=endpoint.key or NO_KEY, max_retries=0, http_client=transport
            )
        return openai.AsyncAzureOpenAI(
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
                hint=f"{install_command('azure')}, or put a key into AZURE_OPENAI_API_KEY",
            ) from None
        is_cli, client_id = endpoint.auth == "azure_cli", endpoint.client_id or None
        credential = AzureCliCredential() if is_cli else ManagedIdentityCredential(client_id=client_id)
        self._to_close.append(credential)
        return get_bearer_token_provider(credential, endpoint.scope)


class AnthropicConnection(SdkConnection):
    def _make(self, endpoint: Endpoint) -> Any:  # noqa: ANN401 - as above
        class AnthropicHttpClient(bounded_http.BoundedClient, anthropic.DefaultAioHttpClient):
            """The SDK's client over aiohttp, with limits, and redirects that stay where they are."""

        timeout = anthropic.Timeout(self._timeout_s, connect=_CONNECT_S)
        is_token = endpoint.auth == "bearer"
        return anthropic.AsyncAnthropic(
            api_key=None if is_token else endpoint.key,
            auth_token=endpoint.key if is_token else None,
            base_url=endpoint.url,
            max_retries=0,
            timeout=timeout,
            http_client=AnthropicHttpClient(backend=endpoint.backend, timeout=timeout),
        )
