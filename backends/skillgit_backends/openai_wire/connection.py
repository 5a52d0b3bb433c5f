"""Owns the connection: one client of the official SDK for as long as endpoint and event loop stay the same."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

from skillgit.errors import FatalBackendError
from skillgit_backends.openai_wire.reading import count, mapping, mappings
from skillgit_backends.trusted_hosts import NO_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openai import AsyncOpenAI

    from skillgit_backends.openai_wire.endpoint import Endpoint


_CONNECT_S = 20.0


def _trust(url: str) -> bool | ssl.SSLContext:
    """Return whose certificates count: for a server without TLS nobody's, which spares reading all that there are."""
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Connection:
    """Holds the client; keys live in it and nowhere else.

    Args:
        timeout_s: Seconds without a byte from the server after which a call has failed.
    """

    def __init__(self, backend: str, timeout_s: float) -> None:
        self._backend = backend
        self._timeout_s = timeout_s
        self._client: AsyncOpenAI | None = None
        self._made_for: tuple[asyncio.AbstractEventLoop, Endpoint] | None = None
        self._to_close: list[Any] = []

    def client(self, endpoint: Endpoint) -> AsyncOpenAI:
        """Return the client for ``endpoint``."""
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
        from openai import AsyncAzureOpenAI, AsyncOpenAI, Timeout  # noqa: PLC0415 - slow

        from skillgit_backends.openai_wire.client import OpenAIHttpClient  # noqa: PLC0415

        timeout = Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s))
        transport = OpenAIHttpClient(backend=self._backend, timeout=timeout, verify=_trust(endpoint.url))
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
            from azure.identity.aio import (  # noqa: PLC0415 - an extra that few need
                AzureCliCredential,
                ManagedIdentityCredential,
                get_bearer_token_provider,
            )
        except ImportError:
            raise FatalBackendError(
                f"the sign-in '{endpoint.auth}' needs the package azure-identity",
                hint="pip install 'skillgit[azure]', or put a key into AZURE_OPENAI_API_KEY",
            ) from None
        credential = (
            AzureCliCredential()
            if endpoint.auth == "azure_cli"
            else ManagedIdentityCredential(client_id=endpoint.client_id or None)
        )
        self._to_close.append(credential)
        return get_bearer_token_provider(credential, endpoint.scope)


_NAMES = ("max_model_len", "context_length", "context_window")
"""vLLM and SGLang; gateways; others."""


def context_in(document: object, model: str) -> int | None:
    """Return the tokens that ``model`` takes as ``GET /models`` tells them; None if it does not."""
    for entry in mappings(mapping(document).get("data")):
        if entry.get("id") == model:
            return next((number for number in (count(entry.get(name)) for name in _NAMES) if number), None)
    return None
