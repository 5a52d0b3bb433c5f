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

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from urllib.parse import quote

from skillgit.errors import BackendError, ConfigError, FatalBackendError, RetryableBackendError
from skillgit.plugin import backend_settings
from skillgit.plugin.backend import BackendInfo, BatchState, ModelServer, Probe, Reply, Request, encodable
from skillgit.plugin.backend_settings import Knob
from skillgit.wire import MESSAGES
from skillgit.wire.json_values import Fields, entries_at, fields_at, text_at
from skillgit_backends.backend_settings import NO_KEY, Endpoint, gets_usual_key, server
from skillgit_backends.provider_failures import read_reply
from skillgit_backends.request_fields import Refusals
from skillgit_backends.sdk_connection import AnthropicConnection

ANTHROPIC = "https://api.anthropic.com"
URL_VARIABLE = "ANTHROPIC_BASE_URL"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - a name
THINKING = ("auto", "adaptive", "budget", "off")
CACHE = ("prefix", "system", "off")
SETTINGS = {
    "base_url": Knob(default="", meaning="another address of the API; empty: ANTHROPIC_BASE_URL, else Anthropic's"),
    "api_key_env": Knob(default="", meaning="the environment variable that holds the key; empty: ANTHROPIC_API_KEY"),
    "thinking": Knob(default="auto", meaning="how model.reasoning_effort is asked for", choices=THINKING),
    "cache": Knob(default="prefix", meaning="what the provider shall cache: prefix, system or off", choices=CACHE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeChatSettings:
    base_url: str  # empty for the provider's own
    api_key_env: str  # the variable that holds the key; empty for the usual ones
    thinking: str
    cache: str


def read_settings(values: Mapping[str, object]) -> ClaudeChatSettings:
    """Return the settings; a ConfigError for a wrong key or value."""
    settings = cast("dict[str, str]", backend_settings.read_settings("claude_chat", SETTINGS, values))
    if settings["base_url"] and not settings["base_url"].startswith(("http://", "https://")):
        hint = "it begins with https:// or http://"
        raise ConfigError(f"model.claude_chat_base_url is '{settings['base_url']}'", hint=hint)
    return ClaudeChatSettings(**settings)


def find_endpoint(settings: ClaudeChatSettings) -> Endpoint:
    """Return where to call, and as whom; a FatalBackendError if the environment holds no key for it."""
    env_url = _variable(URL_VARIABLE)
    url = settings.base_url or env_url or ANTHROPIC
    source = URL_VARIABLE if env_url and not settings.base_url else "model.claude_chat_base_url"
    names = (settings.api_key_env,) if settings.api_key_env else (KEY_VARIABLE, TOKEN_VARIABLE)
    name = next(filter(_variable, names), "")
    if not settings.api_key_env and not gets_usual_key(settings.base_url, [ANTHROPIC, env_url]):
        name = ""
    elif not name:
        hint = f"export {names[0]}=… in the shell that skillgit runs in"
        raise FatalBackendError(f"claude_chat has no key: the environment variable {names[0]} is not set", hint=hint)
    return Endpoint(
        backend="claude_chat",
        url=url,
        key=_variable(name) if name else NO_KEY,
        key_name=name,
        api=MESSAGES.api,
        source=source,
        auth="bearer" if name == TOKEN_VARIABLE else "api_key",
    )


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


STREAMED_FROM = 21_333  # tokens above which an answer may take more than ten minutes, for which the API wants a stream
BUDGETS = {"low": 1024, "medium": 4096, "high": 16384, "xhigh": 32768, "max": 65536}
LEAST_BUDGET = 1024
LARGE = 4096
"""Characters of a user text from which caching pays: about the least number of tokens that a provider caches."""
_CACHED = {"type": "ephemeral"}
_BUDGET_ONLY = re.compile(r"claude-(?:3\b|[a-z]+-4(?:-[015])?(?:-\d{8}|-latest|@.*|\Z))")
"""Claude 3.7 to 4.5: models that think by a budget and know nothing of effort."""
_PAGE = 100
_BATCHES = "/v1/messages/batches"


def write_body(request: Request, settings: ClaudeChatSettings, *, stream: bool = False) -> Fields:
    """Return what to ask the Messages API with; a FatalBackendError if it cannot be asked this."""
    thinking, effort = _thinking(request, settings)
    body = MESSAGES.write_question(request, thinking=thinking, effort=effort, stream=stream)
    _mark_for_caching(body, settings)
    return body


def _thinking(request: Request, settings: ClaudeChatSettings) -> tuple[Fields | None, str]:
    """Return how the model is to think, None where nothing is said of it, and with which effort."""
    if settings.thinking == "off":
        return {"type": "disabled"}, ""
    if not request.reasoning_effort:
        return None, ""
    by_budget = settings.thinking == "budget" or (settings.thinking == "auto" and _BUDGET_ONLY.match(request.model))
    if by_budget and request.messages[-1].role == "tool":
        return None, ""
    if request.temperature is not None:
        hint = "unset calls.temperature, or unset model.reasoning_effort, or model.claude_chat_thinking: off"
        raise FatalBackendError("Claude takes no temperature while it thinks", hint=hint)
    if not by_budget:
        return {"type": "adaptive"}, request.reasoning_effort
    budget = min(BUDGETS[request.reasoning_effort], request.max_output_tokens // 2)
    if budget < LEAST_BUDGET:
        hint = f"calls.max_output_tokens must be {2 * LEAST_BUDGET} or more, or model.reasoning_effort unset"
        raise FatalBackendError(f"Claude cannot think within {request.max_output_tokens} tokens", hint=hint)
    return {"type": "enabled", "budget_tokens": budget}, ""


def _mark_for_caching(body: Fields, settings: ClaudeChatSettings) -> None:
    """Mark the ends of the prefixes that later calls share; the order of the API is tools, system prompt, turns."""
    if settings.cache == "off":
        return
    prefix = body.get("system") or body.get("tools")
    if prefix:
        prefix[-1]["cache_control"] = _CACHED
    if settings.cache == "prefix":
        large = _first_large(body["messages"], goes_on="tools" in body)
        if large is not None:
            large["cache_control"] = _CACHED


def _first_large(turns: list[Fields], *, goes_on: bool) -> Fields | None:
    """Return the first large text of the user that something follows, now or in the next call of the conversation."""
    blocks: list[tuple[str, Fields]] = [(turn["role"], block) for turn in turns for block in turn["content"]]
    for number, (role, block) in enumerate(blocks):
        if role == "user" and len(block.get("text", "")) >= LARGE:
            return block if goes_on or number + 1 < len(blocks) else None
    return None


class ClaudeChatBackend:
    info = BackendInfo(
        name="claude_chat",
        summary="Claude through Anthropic's Messages API: tools, pictures, thinking, prompt caching.",
        provider="anthropic",
        settings=SETTINGS,
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = read_settings(settings)
        self._connection = AnthropicConnection(None)  # the caller has a deadline
        self._refusals = Refusals()

    async def complete(self, request: Request) -> Reply:
        endpoint, stream = find_endpoint(self._settings), request.max_output_tokens > STREAMED_FROM

        async def answer(question: Request) -> Reply:
            body = write_body(question, self._settings, stream=stream)
            content = await self._connection.post(endpoint, MESSAGES.path, body)
            return read_reply(MESSAGES, MESSAGES.read_body(content, endpoint.backend), question, endpoint)

        try:
            return await self._refusals.ask(endpoint.host, encodable(request), answer)
        except BackendError as error:
            error.hint = error.hint.replace("model.claude_chat_base_url", endpoint.source)
            raise

    async def probe(self) -> Probe:
        """Return where calls go and which variable the key comes from; a FatalBackendError if there is no key."""
        endpoint = find_endpoint(self._settings)
        self._connection.client(endpoint)  # so that the first call's time is that of its answer, not of loading the SDK
        return Probe(place=endpoint.host, ready=True, detail=endpoint.credential)

    def server(self) -> ModelServer:
        env_url = "" if self._settings.base_url else _variable(URL_VARIABLE)
        url = self._settings.base_url or env_url or ANTHROPIC
        variable = URL_VARIABLE if env_url else ""
        return ModelServer(url=url, variable=variable, is_pinned=server(url) == server(ANTHROPIC))

    async def models(self) -> list[str]:
        """Return the names that the API lists."""
        endpoint = find_endpoint(self._settings)
        content = await self._connection.get(endpoint, "/v1/models?limit=1000")
        entries = entries_at(MESSAGES.read_body(content, endpoint.backend), "data")
        return [name for entry in entries if (name := text_at(entry, "id"))]

    async def served_facts(self, model: str) -> Mapping[str, object]:
        """Return nothing: an address that speaks the Messages API has no list that identifies weights."""
        del model
        return {}

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def send_batch(self, mark: str, requests: Mapping[str, Request]) -> str:
        del mark  # the API keeps none: the keys of the results have to tell whose a batch is
        endpoint, entries = find_endpoint(self._settings), []
        for key, request in requests.items():
            question = self._refusals.without(endpoint.host, encodable(request))
            entries.append({"custom_id": key, "params": write_body(question, self._settings)})
        content = await self._connection.post(endpoint, _BATCHES, {"requests": entries})
        document = MESSAGES.read_body(content, endpoint.backend)
        if not (batch := text_at(document, "id")):
            raise MESSAGES.not_an_answer("claude_chat", "names no batch")
        return batch

    async def find_batches(self, mark: str, count: int, since: float) -> Sequence[str]:
        del mark
        ids, after = list[str](), ""
        while True:
            page = await self._get(f"?limit={_PAGE}{f'&after_id={after}' if after else ''}")
            batches = entries_at(page, "data")
            recent = [batch for batch in batches if _moment(batch) >= since]
            ids += [str(batch.get("id")) for batch in recent if sum(_counts(batch).values()) == count]
            if not page.get("has_more") or len(recent) < len(batches) or not batches:
                return ids
            after = str(batches[-1].get("id"))

    async def batch_state(self, batch: str) -> BatchState:
        document = await self._get(f"/{quote(batch, safe='')}")
        answers = _counts(document).get("succeeded", 0)
        return BatchState(is_over=document.get("processing_status") == "ended", answers=answers)

    async def batch_results(self, batch: str, requests: Mapping[str, Request]) -> Mapping[str, Reply | BackendError]:
        endpoint, results = find_endpoint(self._settings), dict[str, Reply | BackendError]()
        # The SDK's own way to results goes wherever an answer says.
        content = await self._connection.get(endpoint, f"{_BATCHES}/{quote(batch, safe='')}/results")
        for line in filter(bytes.strip, content.splitlines()):
            entry = MESSAGES.read_body(line, endpoint.backend)
            if (key := str(entry.get("custom_id"))) in requests:
                results[key] = self._result(fields_at(entry, "result"), requests[key], endpoint)
        return results

    async def _get(self, path: str) -> Fields:
        endpoint = find_endpoint(self._settings)
        return MESSAGES.read_body(await self._connection.get(endpoint, f"{_BATCHES}{path}"), endpoint.backend)

    def _result(self, result: Fields, request: Request, endpoint: Endpoint) -> Reply | BackendError:
        if result.get("type") != "succeeded":
            sentence = f"claude_chat: a batch ended without an answer to this: {result.get('type')}"
            return RetryableBackendError(sentence, hint="")
        try:
            return read_reply(MESSAGES, fields_at(result, "message"), request, endpoint)
        except BackendError as error:
            return error


def _counts(batch: Fields) -> dict[str, int]:
    return {name: count for name, count in fields_at(batch, "request_counts").items() if isinstance(count, int)}


def _moment(batch: Fields) -> float:
    """Return when ``batch`` was made; one that does not say may be the latest."""
    try:
        return datetime.fromisoformat(text_at(batch, "created_at")).timestamp()
    except ValueError:
        return math.inf


__all__ = ["ClaudeChatBackend"]
