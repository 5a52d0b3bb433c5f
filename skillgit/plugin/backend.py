"""What a model backend is: something that answers one request.

A backend does nothing but talk to its model. It does not retry, limit its rate, count money or cache:
``skillgit.calls`` does that once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MessageRole = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "refusal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A stretch of text in a message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a message.

    Attributes:
        media_type: For example ``image/png``.
        data: Base64 of the file's bytes.
        detail: How closely the model shall look; empty for the provider's default.
    """

    media_type: str
    data: str
    detail: str = ""


Part = Text | Image


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish to use a tool; ``arguments`` is the JSON text that it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        parts: What is said, in order.
        tool_calls: The tools that an assistant message asks for.
        tool_call_id: The call that a tool message answers.
    """

    role: MessageRole
    parts: tuple[Part, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


def system(text: str) -> Message:
    """Return a system message."""
    return Message(role="system", parts=(Text(text=text),))


def user(text: str) -> Message:
    """Return a user message."""
    return Message(role="user", parts=(Text(text=text),))


def assistant(text: str) -> Message:
    """Return an assistant message."""
    return Message(role="assistant", parts=(Text(text=text),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the model may call; ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model.

    Attributes:
        model: The model's name at its provider.
        messages: The conversation.
        max_output_tokens: Upper limit of the reply's length in tokens.
        temperature: Sampling temperature; None leaves the provider's default.
        reasoning_effort: ``""`` (provider's default) ``low medium high xhigh max``.
        tools: The tools on offer.
    """

    model: str
    messages: tuple[Message, ...]
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the provider counts them.

    Attributes:
        tokens_in: Prompt tokens, cached ones included.
        tokens_out: Reply tokens, reasoning included.
        cached: Prompt tokens that came from the provider's cache.
        reasoning: Reply tokens spent on reasoning.
    """

    tokens_in: int
    tokens_out: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer to one request."""

    text: str
    usage: Usage
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    usd_in: float
    usd_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInfo:
    """What ``skillgit backends`` says of a backend.

    Attributes:
        name: Its entry point.
        summary: One sentence.
        models: The models that it knows by name; empty if it takes any.
        needs_network: Whether a call leaves this machine.
        prices: Model name to price; a backend whose calls cost nothing says so with zeros.
    """

    name: str
    summary: str
    models: tuple[str, ...] = ()
    needs_network: bool = True
    prices: Mapping[str, Price] = field(default_factory=dict)


@runtime_checkable
class Backend(Protocol):
    """Something that answers requests.

    A backend is constructed with the mapping of its own settings (the ``model.<backend>_*`` keys without their prefix)
    and reads credentials from the environment at call time.
    """

    info: BackendInfo

    def __init__(self, settings: Mapping[str, object]) -> None: ...

    async def complete(self, request: Request) -> Reply:
        """Answer ``request``.

        Raises:
            RetryableBackendError: The call may succeed if it is repeated.
            FatalBackendError: It will not.
            HandoffError: Somebody outside has to answer first; the run stops, and nothing has failed.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


def flatten(messages: Sequence[Message]) -> str:
    """Return a conversation as plain text, for estimates and digests."""
    return "\n".join(f"{message.role}: {message.text}" for message in messages)
