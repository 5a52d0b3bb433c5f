"""What a dialect is: how one provider's API reads a question and writes an answer.

Transport and faults know no dialect. A dialect is a module-level object that is listed in ``wire.routes.SERVED``;
nothing else registers it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from skillgit.plugin.backend import Message, Reply, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request as it came in; header names are lower case, ``document`` is the body read as JSON."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    document: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a model, whatever the dialect."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int = 16384
    stream: bool = False
    tools: tuple[Tool, ...] = ()
    thinking: bool | None = None
    """Whether the model shall think aloud; None leaves it to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer; ``frames`` are the pieces of a stream and stand in place of ``document``."""

    document: object = None
    frames: Sequence[str] = ()
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


class Endpoint(ABC):
    """What is answered at once, without a model: a list of models."""

    name: str
    routes: Sequence[tuple[str, re.Pattern[str]]]
    """Method and the whole path, without the query."""

    @abstractmethod
    def answer_at_once(self, request: HttpRequest) -> Answer:
        """Answer a request."""


class Dialect(Protocol):
    """One provider's API."""

    name: str
    routes: Sequence[tuple[str, re.Pattern[str]]]
    """Method and the whole path, without the query."""

    def question(self, request: HttpRequest) -> Question:
        """Read a question; refuse with ``WireError``."""
        ...

    def answer(self, question: Question, reply: Reply) -> Answer:
        """Write a reply, as a stream where the question asks for one."""
        ...

    def error(self, error: WireError) -> object:
        """Write an error's body."""
        ...

    def odd(self, kind: str, question: Question, reply: Reply) -> Answer:
        """Write an answer of status 200 that is not quite one.

        ``kind``: ``empty_choices`` (no answer inside), ``empty_text`` (an answer of no characters), ``wrong_shape``
        (JSON, but not of this API), ``refusal`` (the model refuses by policy), ``withheld`` (a filter keeps the answer
        back), ``used_up`` (its length was used up before a word was said), ``no_usage`` (tokens are not counted).
        """
        ...
