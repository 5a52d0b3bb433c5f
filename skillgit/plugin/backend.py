"""What a model backend is: something that answers one request.

A backend does nothing but talk to its model. It does not retry, limit its rate, count money or cache:
``skillgit.calls`` does that once for all of them.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from skillgit.domain.trajectory import Picture, ToolUse, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_TOKENS = 10**9
"""A number of tokens above it is none: no call takes so many."""

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
        is_optional: Whether the words around it will do for a model that takes no pictures.
    """

    media_type: str
    data: str
    detail: str = ""
    is_optional: bool = False

    @property
    def picture(self) -> Picture:
        """What trajectories keep of it."""
        content = base64.b64decode(self.data)
        digest = hashlib.sha256(content).hexdigest()[:16]
        return Picture(digest=digest, media_type=self.media_type, size=len(content))


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
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def turn(self) -> Turn:
        """Return the message as trajectories keep it."""
        return Turn(
            role=self.role,
            content=self.text,
            tool_calls=tuple(ToolUse(name=call.name, arguments=call.arguments) for call in self.tool_calls),
            pictures=tuple(part.picture for part in self.parts if isinstance(part, Image)),
        )


def system(text: str) -> Message:
    return Message(role="system", parts=(Text(text=text),))


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def assistant(text: str) -> Message:
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
        top_p: Share of the likeliest tokens that are sampled from; None leaves the provider's default.
        seed: Of the provider's sampling; None for none.
        stop: Texts at which a reply ends; they are no part of it.
        schema: The JSON schema that the reply has to fit, closed and complete as strict modes want it, its name as
            ``title``. The prompt asks for the same, so a backend need not hand it on.
    """

    model: str
    messages: tuple[Message, ...]
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""
    tools: tuple[Tool, ...] = ()
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the provider counts them.

    Attributes:
        tokens_in: Prompt tokens, cached ones included.
        tokens_out: Reply tokens, reasoning included.
        cached: Prompt tokens that came from the provider's cache.
        cache_written: Prompt tokens that were written to it.
        reasoning: Reply tokens spent on reasoning.
    """

    tokens_in: int
    tokens_out: int
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0

    @property
    def plausible(self) -> bool:
        """Whether all of it are numbers of tokens; a server, or a plug-in, may say anything."""
        counts = (self.tokens_in, self.tokens_out, self.cached, self.cache_written, self.reasoning)
        return all(token_count(count) is not None for count in counts)


def token_count(value: object) -> int | None:
    """Return ``value`` if it can be a number of tokens: whole, not negative and not absurd."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer to one request.

    Attributes:
        text: What it says.
        usage: What it took.
        finish_reason: Why it ends.
        tool_calls: The tools that it asks for.
        model: The name that the provider gives the model that answered; empty if it tells none. It is not recorded.
        counted: Whether the provider counted the tokens; otherwise they are estimated. It is not recorded.
    """

    text: str
    usage: Usage
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    model: str = field(default="", compare=False)
    counted: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens.

    Attributes:
        usd_in: Of the prompt.
        usd_out: Of the reply.
        usd_cached: Of the prompt, from the provider's cache; None if they cost what others cost.
        usd_cache_write: Of the prompt, written to it; None likewise.
    """

    usd_in: float
    usd_out: float
    usd_cached: float | None = None
    usd_cache_write: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInfo:
    """What ``skillgit backends`` says of a backend.

    Attributes:
        name: Its entry point.
        summary: One sentence.
        models: The models that it knows by name; empty if it takes any.
        needs_network: Whether a call leaves this machine.
        prices: Model name to price; a backend whose calls cost nothing says so with zeros.
        timeout_s: Seconds that one call may take where the configuration does not say; None leaves it to skillgit.
        paths: The settings that are paths, with their defaults; relative ones are made absolute as all paths of a
            configuration are.
    """

    name: str
    summary: str
    models: tuple[str, ...] = ()
    needs_network: bool = True
    prices: Mapping[str, Price] = field(default_factory=dict)
    timeout_s: float | None = None
    paths: Mapping[str, str] = field(default_factory=dict)


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
            RetryableBackendError: The call may succeed if it is repeated; where the provider bills for it all the same,
                the error carries the usage.
            UnanswerableError: The question will never be answered, which says nothing of other calls; see its
                subclasses, and what they say of usage.
            FatalBackendError: It will not, and other calls would meet the same.
            HandoffError: Someone outside has to answer first; the run stops, and nothing has failed.
        """
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a backend finds on the way to its model before it asks it anything; never a secret.

    Attributes:
        place: Where calls go: a server's name, or the path of a program.
        version: The program's version; empty if there is none, or it does not say.
        ready: Whether it has what it needs to call its model, as far as can be told without a call.
        detail: As whom it calls, such as the variable that holds the key; or what is missing and what to do.
    """

    place: str
    version: str = ""
    ready: bool
    detail: str


@runtime_checkable
class Probes(Protocol):
    """What a backend adds that can look before a call; without it, the first call has to tell."""

    async def probe(self) -> Probe:
        """Look for key, login or program; nothing is asked of the model and nothing is spent.

        Raises:
            BackendError: There is no way to the model, such as a program that is not installed.
        """
        ...


@runtime_checkable
class TellsContext(Protocol):
    """What a backend adds whose server says how long a prompt and its reply may be."""

    async def context(self, model: str) -> int | None:
        """Return the tokens that ``model`` takes, prompt and reply together; None if the server does not tell."""
        ...


@runtime_checkable
class PlaysRole(Protocol):
    """What a backend adds that looks for a role's own variables in the environment: ``TARGET_X`` goes before ``X``."""

    def play(self, role: str) -> tuple[str, ...]:
        """Take a role: ``target``, ``optimizer`` or ``judge``. It is called once, before the first call.

        Returns:
            The names of the role's own variables that are set. Roles that go by other variables have limits of
            their own.
        """
        ...


def flatten(messages: Sequence[Message]) -> str:
    """Return a conversation as plain text, for estimates and digests."""
    return "\n".join(f"{message.role}: {message.text}" for message in messages)
