"""What a wire format is, what an agent asks in any of them, and how every answer of a model is judged."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from skillgit.domain.ids import digest
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import (
    ContentFilterError,
    FatalBackendError,
    NoAnswerError,
    RefusalError,
    RetryableBackendError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import (
    FinishReason,
    Image,
    Message,
    MessageRole,
    Native,
    Part,
    Reply,
    Request,
    Text,
    Tool,
    ToolCall,
    Usage,
    estimated_tokens,
    flatten,
)
from skillgit.plugin.call_records import message_json, tool_json
from skillgit.plugin.redaction import redact
from skillgit.wire.json_values import Fields, fields_at, text_at

_LOG = logging.getLogger(__name__)
_POLICY = "look at the item: the provider's content policy does not allow it"


class QuestionError(ValueError):
    """A body that is not a question of its format, or asks for what cannot be passed on; its text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentQuestion:
    """A request of an agent. The model that it names and how it wants it to sample are not part of it: the route rules.

    ``identity`` is the same for the same question: streamed or not, and from any session or folder.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    schema: Mapping[str, object] | None
    tool_choice: str  # empty, `none`, `required`, or the name of a tool
    max_output_tokens: int | None
    model: str  # as the agent calls it, to be echoed
    stream: bool
    with_usage: bool  # whether a stream ends with the counts of tokens, where the format lets clients choose

    @property
    def identity(self) -> str:
        return digest(
            [
                [message_json(message) for message in self.messages],
                [tool_json(tool) for tool in self.tools],
                None if self.schema is None else dict(self.schema),
                self.tool_choice,
                self.max_output_tokens,
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The tokens that an answer counts; None where it does not, or says what is not a number of tokens."""

    tokens_in: int | None  # cached ones included
    tokens_out: int | None
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What an answer of a provider says, before it is judged whether it is one."""

    text: str
    calls: Sequence[ToolCall]
    finish_reason: FinishReason = "stop"
    thinking: str = ""  # that is in no count of the answer, or not for sure
    fault: str = ""  # what it is not, to go on after "the answer"; it is billed all the same
    refusal: str | None = None  # the model's words, or empty ones, where it refuses by policy
    withheld: bool = False  # whether a filter of the provider keeps it back
    native: Native | None = None


class WireFormat(ABC):
    """One wire format: a question and its answer, written and read."""

    path: ClassVar[str]  # at which servers are asked in it, from the root of an address
    api: ClassVar[str]  # what a server in it is called in a hint
    provider: ClassVar[str]  # whose own form of messages it is; see ``skillgit.plugin.backend.Native``
    keep_alive: ClassVar[bytes]  # what a stream may hold before it has anything to say
    last_frame: ClassVar[bytes] = b""

    @abstractmethod
    def write_question(self, request: Request) -> Fields:
        """Return the body that asks ``request``; a FatalBackendError for a parameter that the format lacks."""

    @abstractmethod
    def read_question(self, body: Fields) -> AgentQuestion:
        """Return the question in ``body``; a QuestionError if there is none."""

    @abstractmethod
    def write_reply(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        """Return the whole answer; ``name`` is an id of letters and digits that no other answer has."""

    @abstractmethod
    def read_answer(self, document: Fields) -> ModelAnswer | str:
        """Return what ``document`` says; a clause after "the answer" if it has not the shape of an answer."""

    @abstractmethod
    def read_counts(self, document: Fields) -> Counts: ...

    @abstractmethod
    def write_events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[Fields]:
        """Yield the answer as the events of a stream."""

    @abstractmethod
    def write_error(self, message: str) -> Fields:
        """Return the answer that refuses."""

    def write_error_event(self, message: str) -> Fields:
        """Return the event that refuses in a stream which has begun."""
        return self.write_error(message)

    def write_stream(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[bytes]:
        yield from map(frame, self.write_events(question, reply, name))
        yield self.last_frame

    def read_body(self, body: bytes, backend: str) -> Fields:
        """Return the object of JSON in ``body``; the error of an answer that is not one."""
        try:
            document = self._read_document(body)
        except DocumentError as error:
            raise self.not_an_answer(backend, str(error)) from None
        if not isinstance(document, dict):
            raise self.not_an_answer(backend, "is not an object of JSON")
        return document

    def _read_document(self, body: bytes) -> object:
        return read_document(body)

    def read_reply(self, body: object, request: Request, backend: str) -> Reply:
        """Return the reply in ``body``, which may be any value of JSON; a BackendError if there is none.

        Tokens that a server does not count, or counts as nothing, are estimated.
        """
        document = fields_at(body)
        answer = self.read_answer(document)
        if isinstance(answer, str):
            raise self.not_an_answer(backend, answer, self.read_billed(document))
        if not all(call.name for call in answer.calls):
            raise self.not_an_answer(backend, "has a tool call without a name", self.read_billed(document))
        counts = self.read_counts(document)
        usage = _counted_or_estimated(counts, answer, request, backend)
        if answer.refusal is not None:
            words = quoted(answer.refusal)
            sentence = f"{backend}: the model refuses by policy{f': {words}' if words else ''}"
            raise RefusalError(sentence, hint=_POLICY, usage=usage)
        if answer.withheld:
            raise withheld("its answer was withheld", backend, usage)
        if answer.fault:
            raise self.not_an_answer(backend, answer.fault, usage)
        if not answer.text and not answer.calls:
            raise _nothing_said(backend, usage, cut=answer.finish_reason == "length")
        return Reply(
            text=answer.text,
            usage=usage,
            finish_reason=answer.finish_reason,
            tool_calls=tuple(answer.calls),
            native=answer.native if request.native else None,
            model=text_at(document, "model"),
            counted=bool(counts.tokens_in and counts.tokens_out),  # no question and no answer has none
        )

    def read_billed(self, document: Fields) -> Usage | None:
        """Return the tokens that an answer counts, even a faulty one; None if it counts none."""
        counts = self.read_counts(document)
        if counts.tokens_in is None or counts.tokens_out is None:
            return None
        return _usage(counts, counts.tokens_in, counts.tokens_out, counts.reasoning)

    def not_an_answer(self, backend: str, fault: str, usage: Usage | None = None) -> RetryableBackendError:
        """Return the error of an answer that has not the shape of one; ``usage`` is billed for it."""
        kind = RetryableBackendError if usage is None else UnusableAnswerError
        hint = f"if this lasts, check that model.{backend}_base_url is the address of {self.api}"
        return kind(f"{backend}: the server's answer {fault}", hint=hint, usage=usage)


def _counted_or_estimated(counts: Counts, answer: ModelAnswer, request: Request, backend: str) -> Usage:
    texts = answer.thinking + answer.text + "".join(call.name + call.arguments for call in answer.calls)
    tokens_in, tokens_out = counts.tokens_in, counts.tokens_out
    if not tokens_in or tokens_out is None or (texts and not tokens_out):
        _say_estimated(backend, request.model)
        tokens_in = tokens_in or estimated_tokens(flatten(request.messages))
        tokens_out = tokens_out or estimated_tokens(texts)
    return _usage(counts, tokens_in, tokens_out, counts.reasoning or estimated_tokens(answer.thinking))


def _usage(counts: Counts, tokens_in: int, tokens_out: int, reasoning: int) -> Usage:
    cached = min(counts.cached, tokens_in)
    written = min(counts.cache_written, tokens_in - cached)
    reasoning = min(reasoning, tokens_out)
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out, cached=cached, cache_written=written, reasoning=reasoning)


@cache
def _say_estimated(backend: str, model: str) -> None:
    _LOG.warning("%s/%s does not count tokens: they are estimated at four characters each", backend, model)


def _nothing_said(backend: str, usage: Usage, *, cut: bool) -> UnusableAnswerError | NoAnswerError:
    if cut:
        return NoAnswerError(
            f"{backend}: the model reached the limit of its length before it said anything",
            hint="raise calls.max_output_tokens, which counts thinking too, or lower model.reasoning_effort",
            usage=usage,
        )
    return UnusableAnswerError(
        f"{backend}: the model's answer is empty", hint="if this lasts, look at the prompt", usage=usage
    )


def withheld(reason: str, backend: str, usage: Usage | None = None) -> ContentFilterError:
    """Return the error of a question or an answer that the provider's filter keeps back; ``usage`` is billed for it."""
    sentence = f"{backend}: the provider's content filter withholds it{f': {reason}' if reason else ''}"
    return ContentFilterError(sentence, hint=_POLICY, usage=usage)


MOST_READ = 8_000  # characters of a provider's words that are looked at


def quoted(text: str, *secrets: str, longest: int = 400) -> str:
    """Return a provider's words on one line without ``secrets``, then cut, as half a key would not be recognised."""
    line = " ".join(text[:MOST_READ].split())
    if len(text) > MOST_READ:
        line = line.rpartition(" ")[0]
    for secret in secrets:
        line = line.replace(secret, "…")
    return redact(line)[:longest]


def frame(event: Fields) -> bytes:
    """Return an event of a stream of server-sent events; its type is its name, where the format has types."""
    kind = text_at(event, "type")
    head = f"event: {kind}\n" if kind else ""
    return f"{head}data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n".encode(errors="replace")


_NAMES = {"stop": "stop texts"}
_KEYS = {"temperature": "calls.temperature"}


def refuse(request: Request, *fields: str, answerer: str) -> None:
    """Refuse a request that sets one of ``fields``: ``answerer`` has no such parameter, and ignores none silently."""
    for field in fields:
        if getattr(request, field) not in (None, ()):
            hint = f"leave {_KEYS.get(field, f'model.{field}')} empty"
            raise FatalBackendError(f"{answerer} takes no {_NAMES.get(field, field)}", hint=hint)


def without_none(**parameters: object) -> Fields:
    return {name: value for name, value in parameters.items() if value is not None}


def require_entries(value: object, what: str) -> list[Fields]:
    """Return ``value``, which has to be a list of objects; a QuestionError names ``what`` is not."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise QuestionError(f"{what} has to be a list of objects")
    return value


def limit_at(body: Fields, *names: str) -> int | None:
    """Return the limit of a reply's length under the first of ``names`` that has one."""
    values = (body.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


def read_picture(url: object, detail: object = "") -> Image:
    """Return the picture in a ``data:`` address; a QuestionError for any other: nothing is fetched."""
    head, separator, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
    if not separator or not head.startswith("data:image/"):
        raise QuestionError("a picture has to be in the request, as data:image/...;base64,...")
    return Image(media_type=head.removeprefix("data:"), data=data, detail=detail if isinstance(detail, str) else "")


def message_of(role: MessageRole, parts: Sequence[Part]) -> list[Message]:
    """Return a message of ``role``, none if it would be empty."""
    contents = tuple(part for part in parts if not isinstance(part, Text) or part.text)
    return [Message(role=role, parts=contents)] if contents else []
