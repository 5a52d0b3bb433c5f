"""What an agent asks, in any dialect, and what a dialect is."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skillgit.domain.ids import digest
from skillgit.plugin.backend import Image, Message, Part, Reply, Text, Tool, Usage
from skillgit.plugin.call_records import message_json, tool_json

Fields = dict[str, Any]


class QuestionError(ValueError):
    """A body that is not a question of its dialect, or asks for what cannot be passed on; its text says what."""


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
    with_usage: bool  # whether a stream shall end with the counts of tokens, where the dialect lets clients choose

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


class WireDialect(ABC):
    """One wire format: how a body is read, and a reply or an error written."""

    path: ClassVar[str]
    provider: ClassVar[str]  # whose own form of messages it is; see ``skillgit.plugin.backend.Native``
    keep_alive: ClassVar[bytes]  # what a stream may hold before it has anything to say

    @abstractmethod
    def read(self, body: Fields) -> AgentQuestion:
        """Return the question in ``body``; a QuestionError if there is none."""

    @abstractmethod
    def document(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        """Return the whole answer; ``name`` is an id of letters and digits that no other answer has."""

    @abstractmethod
    def events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[bytes]:
        """Yield the answer as the events of a stream."""

    @abstractmethod
    def failure(self, message: str) -> Fields:
        """Return the answer that refuses."""

    @abstractmethod
    def failed(self, message: str) -> bytes:
        """Return the event that refuses in a stream which has begun."""


def event(fields: Fields, name: str = "") -> bytes:
    """Return an event of a stream of server-sent events."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(fields, ensure_ascii=False, separators=(',', ':'))}\n\n".encode(errors="replace")


def mappings(value: object, what: str) -> list[Fields]:
    """Return ``value``, which has to be a list of objects; a QuestionError names ``what`` is not."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise QuestionError(f"{what} has to be a list of objects")
    return value


def text_at(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def number_at(fields: Fields, *names: str) -> int | None:
    values = (fields.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


def picture(url: object, detail: object = "") -> Image:
    """Return the picture in a ``data:`` address; a QuestionError for any other: nothing is fetched."""
    head, separator, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
    if not separator or not head.startswith("data:image/"):
        raise QuestionError("a picture has to be in the request, as data:image/...;base64,...")
    return Image(media_type=head.removeprefix("data:"), data=data, detail=detail if isinstance(detail, str) else "")


def spoken(role: str, parts: Sequence[Part]) -> list[Message]:
    """Return a message of ``role``, none if it would be empty."""
    contents = tuple(part for part in parts if not isinstance(part, Text) or part.text)
    return [Message(role=role, parts=contents)] if contents else []  # type: ignore[arg-type]


def uncached(usage: Usage) -> int:
    return max(usage.tokens_in - usage.cached - usage.cache_written, 0)
