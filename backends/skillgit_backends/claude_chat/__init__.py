"""The ``claude_chat`` backend: Anthropic's Messages API through the official SDK.

Without a key in `ANTHROPIC_API_KEY`, a token in `ANTHROPIC_AUTH_TOKEN` is used. Keys are read at each call. They go to
Anthropic, or to the address in `ANTHROPIC_BASE_URL`; an address from the settings gets only the key that `api_key_env`
names, and without one a word that local servers ignore.

**Thinking.** Without `model.reasoning_effort`, nothing is said of it and the model's default holds. With it, `adaptive`
lets the model think as much as it finds right at that effort; `budget` gives it so many tokens (low 1024, medium 4096,
high 16384, xhigh 32768, max 65536, and never more than half of `calls.max_output_tokens`, which counts both thinking
and answer); `off` forbids it. `auto` is `budget` for the models that know nothing else, up to Claude 4.5, and
`adaptive` for all others. With a budget, a model does not think on while tools are in use: its earlier thoughts would
have to be sent back, and a conversation does not keep them. A temperature cannot be set together with thinking.

**Structured output.** The schema of a reply goes into `output_config.format`, next to the effort; no tool is forced for
it, which thinking would forbid. A model that refuses it is asked without. There is no seed.

**Caching.** The system prompt, with the tools before it, is marked for caching, and so is the first user text of 4096
characters or more that something follows, for only a prefix can be read again. Writing a cache costs a quarter more
than reading plain tokens, reading it a tenth.

**Long answers.** Above 21333 tokens of `calls.max_output_tokens` answers are streamed, for the API refuses to wait.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import (
    BackendError,
    BadRequestError,
    ContentFilterError,
    FatalBackendError,
    PromptTooLongError,
    RetryableBackendError,
)
from skillgit.plugin.backend import BackendInfo, BatchState, ModelServer, Probe, Reply, Request, encodable
from skillgit_backends.claude_chat.messages import StreamError, parameters, read_answer, read_message
from skillgit_backends.claude_chat.settings import (
    SETTINGS,
    Credential,
    credential,
    host,
    read_settings,
    server_of,
    source,
)
from skillgit_backends.provider_messages import asked_pause, is_unreached, lost_connection, mapping, quoted
from skillgit_backends.request_fields import Refusals

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


STREAMED_FROM = 21_333  # tokens above which an answer may take more than ten minutes, for which the API wants a stream
_CONNECT_S = 10.0
_PAGE = 100
_NOT_TYPED = {"temperature", "top_p"}  # parameters that the API takes for older models, and that the SDK no longer has


class ClaudeChatBackend:
    info = BackendInfo(
        name="claude_chat",
        summary="Claude through Anthropic's Messages API: tools, pictures, thinking, prompt caching.",
        settings=SETTINGS,
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = read_settings(settings)
        self._client: AsyncAnthropic | None = None
        self._made_for: tuple[asyncio.AbstractEventLoop, Credential] | None = None
        self._replaced: list[AsyncAnthropic] = []
        self._refusals = Refusals()

    async def complete(self, request: Request) -> Reply:
        try:
            return await self._refusals.ask(host(self._settings), encodable(request), self._answer)
        except BackendError as error:
            error.hint = error.hint.replace("model.claude_chat_base_url", source(self._settings))
            raise

    async def _answer(self, request: Request) -> Reply:
        payload = parameters(request, self._settings)
        key = credential(self._settings)
        return read_answer(await self._ask(self._connected(key), key, payload), request)

    async def probe(self) -> Probe:
        """Return where calls go and which variable the key comes from; a FatalBackendError if there is no key."""
        key = credential(self._settings)
        self._connected(key)  # so that the time of the first call is that of its answer, not of loading the SDK
        return Probe(place=host(self._settings), ready=True, detail=f"the key in {key.name}" if key.name else "no key")

    def server(self) -> ModelServer:
        return server_of(self._settings)

    async def served_facts(self, model: str) -> Mapping[str, object]:
        """Return nothing: an address that speaks the Messages API has no list that identifies weights."""
        del model
        return {}

    async def send_batch(self, mark: str, requests: Mapping[str, Request]) -> str:
        del mark  # the API keeps none: the keys of the results have to tell whose a batch is
        entries = [{"custom_id": key, "params": self._parameters(request)} for key, request in requests.items()]
        document = await self._batches("POST", "", {"requests": entries})
        if not isinstance(batch := document.get("id"), str):
            raise RetryableBackendError("Claude's answer names no batch", hint="check model.claude_chat_base_url")
        return batch

    async def find_batches(self, mark: str, count: int, since: float) -> Sequence[str]:
        del mark
        ids, after = list[str](), ""
        while True:
            page = await self._batches("GET", f"?limit={_PAGE}{f'&after_id={after}' if after else ''}")
            batches = [mapping(entry) for entry in cast("list[object]", page.get("data") or [])]
            recent = [batch for batch in batches if _moment(batch) >= since]
            ids += [str(batch.get("id")) for batch in recent if sum(_counts(batch).values()) == count]
            if not page.get("has_more") or len(recent) < len(batches) or not batches:
                return ids
            after = str(batches[-1].get("id"))

    async def batch_state(self, batch: str) -> BatchState:
        document = await self._batches("GET", f"/{quote(batch, safe='')}")
        answers = _counts(document).get("succeeded", 0)
        return BatchState(is_over=document.get("processing_status") == "ended", answers=answers)

    async def batch_results(self, batch: str, requests: Mapping[str, Request]) -> Mapping[str, Reply | BackendError]:
        key, results = credential(self._settings), dict[str, Reply | BackendError]()
        async with _failures(key):
            content = await self._sent(key, "GET", f"/{quote(batch, safe='')}/results")
            entries = [mapping(read_document(line)) for line in content.splitlines() if line.strip()]
        for entry in entries:
            custom_id, result = str(entry.get("custom_id")), mapping(entry.get("result"))
            if custom_id in requests:
                results[custom_id] = _result(result, requests[custom_id])
        return results

    def _parameters(self, request: Request) -> dict[str, Any]:
        return parameters(self._refusals.without(host(self._settings), encodable(request)), self._settings)

    async def _batches(self, method: str, path: str, body: object = None) -> Mapping[str, object]:
        key = credential(self._settings)
        async with _failures(key):
            return mapping(read_document(await self._sent(key, method, path, body)))

    async def _sent(self, key: Credential, method: str, path: str, body: object = None) -> bytes:
        """Return what is at ``path`` of the batches; the SDK's own way to results goes wherever an answer says."""
        from httpx2 import Response  # noqa: PLC0415 - slow to import; the SDK has done so

        client, path = self._connected(key), f"/v1/messages/batches{path}"
        call = client.get(path, cast_to=Response) if method == "GET" else client.post(path, cast_to=Response, body=body)
        return (await call).content

    async def aclose(self) -> None:
        clients = [*self._replaced, *([self._client] if self._client else [])]
        self._client, self._made_for, self._replaced = None, None, []
        for client in clients:
            await client.close()

    async def _ask(self, client: AsyncAnthropic, key: Credential, payload: dict[str, Any]) -> object:
        is_stream = payload["max_tokens"] > STREAMED_FROM
        # The raw body is read here: the SDK takes any JSON for a message, and builds objects that are never used.
        create = client.messages.with_raw_response.create
        if extra := {name: payload.pop(name) for name in _NOT_TYPED & payload.keys()}:
            payload["extra_body"] = extra
        call = create(**payload, stream=True) if is_stream else create(**payload)
        async with _failures(key):
            return read_message((await call).http_response.content, is_stream=is_stream)

    def _connected(self, key: Credential) -> AsyncAnthropic:
        """Return the client; a new one where the key is another one now, or the event loop."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._made_for == (loop, key):
            return self._client
        from anthropic import AsyncAnthropic, DefaultAioHttpClient, Timeout  # noqa: PLC0415 - slow to import

        from skillgit_backends.bounded_http import BoundedClient  # noqa: PLC0415

        class AnthropicHttpClient(BoundedClient, DefaultAioHttpClient):
            """The SDK's client over aiohttp, with limits, and redirects that stay where they are."""

        timeout = Timeout(None, connect=_CONNECT_S)  # the caller has a deadline
        if self._client is not None:
            self._replaced.append(self._client)
        self._client = AsyncAnthropic(
            api_key=None if key.is_token else key.secret,
            auth_token=key.secret if key.is_token else None,
            base_url=self._settings.base_url or None,
            max_retries=0,
            timeout=timeout,
            http_client=AnthropicHttpClient(backend=self.info.name, timeout=timeout),
        )
        self._made_for = (loop, key)
        return self._client


@asynccontextmanager
async def _failures(key: Credential) -> AsyncIterator[None]:
    """Make backend errors without the key of what the SDK, its transport or a reader raises in the block."""
    import aiohttp  # noqa: PLC0415 - slow to import
    import anthropic  # noqa: PLC0415
    import httpx2  # noqa: PLC0415

    try:
        yield
    except (anthropic.AnthropicError, httpx2.HTTPError, aiohttp.ClientError, OSError, StreamError) as error:
        fault = failure(error, key.name)
        fault.message = key.scrub(fault.message)
        fault.args = (fault.message,)
        raise fault from None  # the SDK's error holds the request with its headers
    except DocumentError as error:
        hint = "check model.claude_chat_base_url, or what is in between"
        raise RetryableBackendError(f"Claude's answer {error}", hint=hint) from None


__all__ = ["ClaudeChatBackend"]


def _result(result: Mapping[str, object], request: Request) -> Reply | BackendError:
    if result.get("type") != "succeeded":
        return RetryableBackendError(f"Claude's batch ended without an answer to this: {result.get('type')}", hint="")
    try:
        return read_answer(result.get("message"), request)
    except BackendError as error:
        return error


def _counts(batch: Mapping[str, object]) -> dict[str, int]:
    return {name: count for name, count in mapping(batch.get("request_counts")).items() if isinstance(count, int)}


def _moment(batch: Mapping[str, object]) -> float:
    """Return when ``batch`` was made; one that does not say may be the latest."""
    try:
        return datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
    except ValueError:
        return math.inf


_PASSING = {"rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529}
"""Errors in the middle of a stream, whose status was 200."""
_RETRYABLE = frozenset({408, 409, 425, 429})
_OVERFLOW = re.compile(
    r"prompt is too long|exceed(?:s|ed)? (?:the )?context|context (?:window|length|limit)", re.IGNORECASE
)
_POLICY = re.compile(r"content filter|usage polic", re.IGNORECASE)
_SHARED = re.compile(
    r"`?(?:max_tokens|temperature|top_[pk]|stop_sequences|model|thinking|output_config|tools|tool_choice|cache_control|stream)\b|"
    r"extra inputs are not permitted",
    re.IGNORECASE,
)
"""Complaints of what all requests of a run have in common; the API begins with the parameter that it means."""
_REQUEST = frozenset({400, 422})


def failure(error: Exception, key_name: str, place: str = "the server") -> BackendError:
    """Return what ``error``, which the SDK or its transport raised, means; ``key_name`` is empty if no key was sent."""
    from anthropic import APIStatusError  # noqa: PLC0415 - slow to import

    if isinstance(error.__cause__, BackendError):
        return error.__cause__  # the client's own refusal, which the SDK takes for a broken connection
    if isinstance(error, APIStatusError):
        text = str(error.api_message or error.message or "")
        kind, pause = str(error.type), asked_pause(error.response.headers)
        return _refused(error.status_code, kind, text, key_name=key_name, retry_after=pause)
    if isinstance(error, StreamError):
        return _refused(200, error.kind, error.message, key_name=key_name)
    if (loss := lost_connection(error, place, "model.claude_chat_base_url")) is not None:
        return RetryableBackendError(
            f"the connection to Claude broke: {loss[0]}", hint=loss[1], sent=not is_unreached(error)
        )
    cause = error.__cause__ or error
    return RetryableBackendError(
        f"the connection to Claude broke: {type(cause).__name__}{f': {_cut(str(cause))}' if str(cause) else ''}",
        hint="check the network and model.claude_chat_base_url",
        sent=not is_unreached(error),
    )


def _refused(status: int, kind: str, words: str, *, key_name: str, retry_after: float | None = None) -> BackendError:
    status = _PASSING.get(kind, status) if status < 400 else status  # noqa: PLR2004
    text = _cut(words)
    if status in _RETRYABLE or status >= 500:  # noqa: PLR2004 - the server's own errors
        state = {429: "its rate limit is reached", 529: "it is overloaded"}.get(status, f"it answered {status}")
        return RetryableBackendError(
            f"Claude cannot answer now: {state}: {text}",
            hint="lower calls.concurrency, or wait for your quota" if status == 429 else "",  # noqa: PLR2004
            retry_after=retry_after,
            status_code=status,
        )
    message = f"Claude refused the request ({status}): {text}"
    return _kind(status, text)(message, hint=_hint(status, text, key_name), status_code=status)


def _kind(status: int, text: str) -> type[FatalBackendError]:
    if status == 413 or (status == 400 and _OVERFLOW.search(text)):  # noqa: PLR2004 - too large, bad request
        return PromptTooLongError
    if status not in _REQUEST or _SHARED.match(text) or "credit balance" in text:
        return FatalBackendError
    return ContentFilterError if _POLICY.search(text) else BadRequestError


def _hint(status: int, text: str, key_name: str) -> str:
    if _OVERFLOW.search(text) or status == 413:  # noqa: PLR2004 - too large
        return "the prompt does not fit into the model's context: shorten the items or the skill, or take another model"
    if "credit balance" in text or status == 402:  # noqa: PLR2004 - payment required
        return "the account has no credit left"
    if status in (401, 403) and not key_name:
        return "none was sent: name the environment variable that holds the key in model.claude_chat_api_key_env"
    return {
        401: f"check the key in {key_name}",
        403: f"the key in {key_name} may not use this model or this API",
        404: "check the model's name, and model.claude_chat_base_url",
    }.get(status, "")


def _cut(text: str) -> str:
    return quoted(text, longest=500)
