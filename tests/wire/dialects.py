"""The APIs of providers, over the product's own codec: what each is strict about, its errors, and its odd answers.

The codec cannot vouch for itself: the clients of this server are the real SDKs, bodies that are recorded are played
against the same codec elsewhere, and what a real API refuses is written down here, by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from skillgit.plugin.backend import ANTHROPIC, Native, flatten
from skillgit.wire import CHAT, MESSAGES, RESPONSES, AgentQuestion, QuestionError
from skillgit.wire.wire_format import frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.plugin.backend import Reply
    from skillgit.wire import WireFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request as it came in; header names are lower case, ``document`` is the body read as JSON."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(AgentQuestion):
    """What is asked of a model, whatever the dialect."""

    thinking: bool | None = None
    """Whether the model shall think aloud; None leaves it to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer; ``frames`` are the pieces of a stream and stand in place of ``document``."""

    document: object = None
    frames: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class WireError(Exception):
    """A question that the server refuses, with the words of no dialect yet.

    ``code`` is one of: invalid_request, authentication, permission, model_not_found, context_length, content_filter,
    rate_limit, server_error, overloaded.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class Dialect:
    """One provider's API; ``route`` matches the whole path, without the query."""

    name: str
    wire: WireFormat
    route: re.Pattern[str]
    odd_answers: Mapping[str, Mapping[str, Any]]
    """What stands in an answer of status 200 that is not quite one, and what of it is gone where that is None.

    ``empty_choices`` (no answer inside), ``empty_text`` (an answer of no characters), ``refusal`` (the model refuses by
    policy), ``withheld`` (a filter keeps the answer back), ``used_up`` (its length was used up before a word was said).
    ``wrong_shape`` (JSON, but not of this API) and ``no_usage`` (tokens are not counted) are the same everywhere.
    """

    def question(self, request: HttpRequest) -> Question:
        """Read a question; refuse with ``WireError``."""
        self.check(request)
        try:
            asked = self.wire.read_question(dict(request.document))
        except QuestionError as error:
            raise _invalid(str(error)) from error
        given = {each.name: getattr(asked, each.name) for each in fields(asked)}
        return Question(**{**given, "with_usage": True}, thinking=self.thinking(request.document))

    def check(self, request: HttpRequest) -> None:
        """Refuse what this API does not take."""

    def thinking(self, document: Mapping[str, Any]) -> bool | None:
        """Say whether the model shall think aloud."""
        del document
        return None

    def error(self, error: WireError) -> object:
        """Write an error's body."""
        kind, code = _KINDS.get(error.code, ("invalid_request_error", None))
        body = self.wire.write_error(error.message)
        return {"error": body["error"] | {"type": kind, "code": code}}

    def adapted(self, question: Question, reply: Reply) -> Reply:
        """Return a reply as this provider gives it."""
        del question
        return reply

    def answer(self, question: Question, reply: Reply) -> Answer:
        """Write a reply, as a stream where the question asks for one."""
        reply = self.adapted(question, reply)
        if not question.stream:
            return Answer(document=self.wire.write_reply(question, reply, "wire"))
        events = list(_by_words(self.wire.write_events(question, reply, "wire")))
        numbered = [
            event | {"sequence_number": number} if "sequence_number" in event else event
            for number, event in enumerate(events)
        ]
        return Answer(frames=[*map(frame, numbered), *filter(None, [self.wire.last_frame])])

    def odd(self, kind: str, question: Question, reply: Reply) -> Answer:
        """Write an answer of status 200 that is not quite one."""
        if kind == "wrong_shape":
            return Answer(document={"object": "list", "data": "what"})
        document = self.wire.write_reply(question, self.adapted(question, reply), "wire")
        if kind == "no_usage":
            del document["usage"]
        return Answer(document=document | self.odd_answers.get(kind, {}))


_WORD = re.compile(r"\s*\S+\s*|\s+")
_KINDS = {
    "authentication": ("invalid_request_error", "invalid_api_key"),
    "permission": ("invalid_request_error", "permission_denied"),
    "model_not_found": ("invalid_request_error", "model_not_found"),
    "context_length": ("invalid_request_error", "context_length_exceeded"),
    "content_filter": ("invalid_request_error", "content_filter"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server_error": ("server_error", None),
    "overloaded": ("server_error", "overloaded"),
}


def _invalid(message: str) -> WireError:
    return WireError(400, "invalid_request", message)


def _by_words(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream, and one for each word where an event adds text, as models write."""
    for event in events:
        match event:
            case {"choices": [{"delta": {"content": str(text)}} as choice]} if text:
                for word in _WORD.findall(text):
                    yield event | {"choices": [choice | {"delta": {"content": word}}]}
            case {"type": "response.output_text.delta", "delta": str(text)}:
                yield from (event | {"delta": word} for word in _WORD.findall(text))
            case {"type": "content_block_delta", "delta": {"text": str(text)} as delta}:
                yield from (event | {"delta": delta | {"text": word}} for word in _WORD.findall(text))
            case _:
                yield event


def _choice(content: str | None, reason: str, **more: object) -> Mapping[str, Any]:
    message = {"role": "assistant", "content": content, **more}
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


class _Chat(Dialect):
    """POST /v1/chat/completions, and under every other base path that ends the same."""

    name = "chat"
    wire = CHAT
    route = re.compile(r"(?:/openai/deployments/(?P<deployment>[^/]+)|(?:/[\w.-]+)*)/chat/completions")
    odd_answers: ClassVar = {
        "empty_choices": {"choices": []},
        "empty_text": _choice("", "stop"),
        "refusal": _choice(None, "stop", refusal="I can't help with that."),
        "withheld": _choice("", "content_filter"),
        "used_up": _choice("", "length"),
    }

    def question(self, request: HttpRequest) -> Question:
        match = self.route.fullmatch(request.path)
        deployment = match["deployment"] if match else None
        question = super().question(request)
        return replace(question, model=deployment) if deployment else question

    def check(self, request: HttpRequest) -> None:
        document = request.document
        if request.path.startswith("/openai/deployments/") and "api-version=" not in request.query:
            raise WireError(404, "invalid_request", "Resource not found")
        if not document.get("messages"):
            raise _invalid("'messages' is a required property")
        if "max_tokens" in document and re.match(r"o\d|gpt-5", str(document.get("model", ""))):
            raise _invalid("Unsupported parameter: 'max_tokens' is not supported with this model.")

    def thinking(self, document: Mapping[str, Any]) -> bool | None:
        template = document.get("chat_template_kwargs")
        if isinstance(template, dict) and "enable_thinking" in template:
            return bool(template["enable_thinking"])
        thinking = document.get("thinking")
        return thinking.get("type") in ("adaptive", "enabled") if isinstance(thinking, dict) else None


def _output(**part: object) -> Mapping[str, Any]:
    return {
        "output": [{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}]
    }


def _incomplete(reason: str) -> Mapping[str, Any]:
    return {"output": [], "status": "incomplete", "incomplete_details": {"reason": reason}}


class _Responses(Dialect):
    """POST /v1/responses."""

    name = "responses"
    wire = RESPONSES
    route = re.compile(r"(?:/[\w.-]+)*/responses")
    odd_answers: ClassVar = {
        "empty_choices": {"output": []},
        "empty_text": _output(type="output_text", text="", annotations=[]),
        "refusal": _output(type="refusal", refusal="I can't help with that."),
        "withheld": _incomplete("content_filter"),
        "used_up": _incomplete("max_output_tokens"),
    }

    def check(self, request: HttpRequest) -> None:
        if not request.document.get("input"):
            raise _invalid("Missing required parameter: 'input'.")


_LEAST_BUDGET = 1024
_BREAKPOINTS = 4
_THOUGHT = re.compile(r"<think>\n(.*?)\n</think>\n\n", re.DOTALL)
_ERRORS = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "model_not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "server_error": "api_error",
    "overloaded": "overloaded_error",
}
_REFUSAL = {
    "content": [],
    "stop_reason": "refusal",
    "stop_details": {"type": "refusal", "category": "bio", "explanation": "This could enable harm."},
}


class _Messages(Dialect):
    """POST /v1/messages; as strict as the real one where a mistake in a request is easy.

    The system prompt counts as written to a cache; as read from one, for a model with ``cached`` in its name.
    """

    name = "messages"
    wire = MESSAGES
    route = re.compile(r"(?:/[\w.-]+)*/v1/messages")
    odd_answers: ClassVar = {
        "empty_choices": {"content": [], "stop_reason": "end_turn"},
        "empty_text": {"content": [{"type": "text", "text": ""}], "stop_reason": "end_turn"},
        "refusal": _REFUSAL,
        "withheld": _REFUSAL,
        "used_up": {"content": [], "stop_reason": "max_tokens"},
    }

    def check(self, request: HttpRequest) -> None:
        headers, document = request.headers, request.document
        if not headers.get("authorization", headers.get("x-api-key")):
            raise WireError(401, "authentication", "x-api-key header is required")
        if "anthropic-version" not in headers:
            raise _invalid("anthropic-version: header is required")
        turns = document.get("messages")
        if not isinstance(turns, list) or not turns or turns[0]["role"] != "user":
            raise _invalid("messages: first message must use the user role")
        if not isinstance(document.get("max_tokens"), int) or document["max_tokens"] < 1:
            raise _invalid("max_tokens: Field required")
        said = [_list(document.get("system")), *(_list(turn["content"]) for turn in turns)]
        marked = sum("cache_control" in block for blocks in (document.get("tools", ()), *said) for block in blocks)
        if marked > _BREAKPOINTS:
            raise _invalid(f"A maximum of {_BREAKPOINTS} blocks with cache_control may be provided. Found {marked}.")
        if any(block.get("type") == "text" and not block["text"] for blocks in said for block in blocks):
            raise _invalid("messages: text content blocks must be non-empty")
        called: set[str] = set()
        for blocks in said[1:]:  # every use of a tool is followed by its result, in the very next turn
            if called != {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}:
                raise _invalid("messages: `tool_use` ids were found without `tool_result` blocks immediately after")
            called = {block["id"] for block in blocks if block["type"] == "tool_use"}
        self._check_thinking(document)

    def _check_thinking(self, document: Mapping[str, Any]) -> None:
        thinking = document.get("thinking") or {"type": "disabled"}
        if thinking["type"] == "disabled":
            return
        if document.get("temperature") not in (None, 1):
            raise _invalid("`temperature` may only be set to 1 when thinking is enabled")
        if thinking["type"] == "enabled":
            if not _LEAST_BUDGET <= thinking["budget_tokens"] < document["max_tokens"]:
                raise _invalid("thinking.enabled.budget_tokens: must be 1024 or more and less than max_tokens")
            if any(block["type"] == "tool_result" for block in _list(document["messages"][-1]["content"])):
                raise _invalid("messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`")

    def thinking(self, document: Mapping[str, Any]) -> bool | None:
        return (document.get("thinking") or {"type": "disabled"})["type"] != "disabled"

    def adapted(self, question: Question, reply: Reply) -> Reply:
        first = flatten(question.messages[:1]) if question.messages[0].role == "system" else ""
        kept = min(len(first) // 4, reply.usage.tokens_in)
        cache = {"cached" if "cached" in question.model else "cache_written": kept}
        reply = replace(reply, usage=replace(reply.usage, **cache))
        thought = _THOUGHT.match(reply.text)
        if thought is None:
            return reply
        rest = replace(reply, text=reply.text[thought.end() :])
        blocks = self.wire.write_reply(question, rest, "wire")["content"]
        own = {"type": "thinking", "thinking": thought.group(1), "signature": "c2lnbmVk"}
        return replace(rest, native=Native(provider=ANTHROPIC, content=(own, *blocks)))

    def error(self, error: WireError) -> object:
        said = "prompt is too long: 250000 tokens > 200000 maximum" if error.code == "context_length" else error.message
        body = self.wire.write_error(said)
        kind = _ERRORS.get(error.code, "invalid_request_error")
        return body | {"error": body["error"] | {"type": kind}, "request_id": "req_wire"}


def _list(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


_CHAT = _Chat()
DIALECTS: Sequence[Dialect] = (_CHAT, _Responses(), _Messages())
"""All that is answered by a model; nothing else registers a dialect."""
CONTEXT = 131072
"""What the server says that its models take, as vLLM does."""
openai_error = _CHAT.error


def find(method: str, path: str) -> Dialect | None:
    """Return what answers at ``path``."""
    return next((each for each in DIALECTS if method == "POST" and each.route.fullmatch(path)), None)


def model_list(names: Sequence[str]) -> object:
    """Return what ``GET /v1/models`` says."""
    more = {"object": "model", "created": 0, "owned_by": "wire", "max_model_len": CONTEXT}
    return {"object": "list", "data": [{"id": name, **more} for name in names]}
