"""What a model backend is: something that answers one request; requests and replies as values that JSON can hold.

A backend does nothing but talk to its model. It does not retry, limit its rate, count money or cache:
``skillgit.calls`` does that once for all of them. The ledger writes replies as JSON, and a backend that answers from a
record reads them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from skillgit.domain.evaluation import Loading
from skillgit.domain.trajectory import Picture, ToolUse, Turn
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import BackendError

if TYPE_CHECKING:
    from skillgit.plugin.backend_settings import Knob
    from skillgit.plugin.work_folder import WorkFolder


MOST_TOKENS = 10**9  # a number of tokens above it is none: no call takes so many

MessageRole = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "refusal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a message, as Base64."""

    media_type: str  # for example image/png
    data: str
    detail: str = ""  # how closely the model shall look; empty for the provider's default
    is_optional: bool = False  # whether the words around it will do for a model that takes no pictures

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


ANTHROPIC, OPENAI = "anthropic", "openai"
"""Providers whose APIs have forms of messages of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A model's message in the form of its own provider, which wants it back unchanged: thoughts are signed."""

    provider: str  # whose API has this form: ``ANTHROPIC`` or ``OPENAI``
    content: tuple[Mapping[str, object], ...]  # its blocks or items, in their order


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: MessageRole
    parts: tuple[Part, ...]
    tool_calls: tuple[ToolCall, ...] = ()  # that an assistant message asks for
    tool_call_id: str = ""  # the call that a tool message answers
    native: Native | None = None  # the same in its provider's form, where that holds more

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def turn(self) -> Turn:
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

    def fields(self) -> dict[str, object]:
        """Return the tool as most providers take it."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model; None and empty values leave a parameter to the provider.

    ``schema`` is the JSON schema that the reply has to fit, closed and complete as strict modes want it, its name as
    ``title``. The prompt asks for the same, so a backend need not hand it on. ``native`` asks for the reply in the
    provider's own form too where it thinks, for callers that continue the conversation. ``folder`` is what an agent is
    to work in; a backend that can do that is a ``WorksInFolder``.
    """

    model: str
    messages: tuple[Message, ...]
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""  # or low, medium, high, xhigh, max
    tools: tuple[Tool, ...] = ()
    top_p: float | None = None  # share of the likeliest tokens that are sampled from
    seed: int | None = None
    stop: tuple[str, ...] = ()  # texts at which a reply ends; they are not part of it
    schema: Mapping[str, object] | None = None
    tool_choice: str = ""  # `none`, `required` or the name of the tool to use; empty leaves it to the model
    native: bool = False
    folder: WorkFolder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyForm:
    """What a question wants of its reply, within what the route allows; the fields are those of :class:`Request`."""

    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    schema: Mapping[str, object] | None = None
    tool_choice: str = ""
    folder: WorkFolder | None = None

    def applied(self, request: Request) -> Request:
        return replace(
            request,
            max_output_tokens=min(self.max_output_tokens or request.max_output_tokens, request.max_output_tokens),
            stop=tuple(dict.fromkeys((*request.stop, *self.stop))),
            schema=request.schema if self.schema is None else self.schema,
            tool_choice=self.tool_choice,
            folder=self.folder,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the provider counts them."""

    tokens_in: int  # cached ones included
    tokens_out: int  # reasoning included
    cached: int = 0  # part of tokens_in that came from the provider's cache
    cache_written: int = 0  # part of tokens_in that was written to it
    reasoning: int = 0

    def __add__(self, addend: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) + getattr(addend, name) for name in Usage.__slots__})

    @property
    def plausible(self) -> bool:
        """Whether all of it are numbers of tokens; a server, or a plug-in, may say anything."""
        counts = (self.tokens_in, self.tokens_out, self.cached, self.cache_written, self.reasoning)
        return all(token_count(count) is not None for count in counts)


NO_TOKENS = Usage(tokens_in=0, tokens_out=0)


def token_count(value: object) -> int | None:
    """Return ``value`` if it can be a number of tokens: whole, not negative and not absurd."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer to one request; ``model`` and ``counted`` are not recorded."""

    text: str
    usage: Usage
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    native: Native | None = None  # the same in the provider's own form; absent unless asked for
    turns: tuple[Turn, ...] = ()  # what an agent did before it, where its questions were metered
    cut_within: int = 0  # how many of the replies that an agent got before it ended at the limit of their length
    loading: Loading | None = None  # whether an agent loaded the skill of the request; None where it was given none
    model: str = field(default="", compare=False)  # that answered, as the provider calls it
    counted: bool = field(default=True, compare=False)  # False if usage is estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens; None costs what other tokens of the prompt cost."""

    usd_in: float
    usd_out: float
    usd_cached: float | None = None  # of the prompt, from the provider's cache
    usd_cache_write: float | None = None  # of the prompt, written to it


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInfo:
    """What ``skillgit plugins`` says of a backend."""

    name: str  # its entry point
    summary: str  # one sentence
    provider: str = ""  # in traces, as the conventions for them spell it; empty where that is the name
    models: tuple[str, ...] = ()  # that it knows by name; empty if it takes any
    needs_network: bool = True  # whether a call leaves this machine
    prices: Mapping[str, Price] = field(default_factory=dict)  # by model; zeros if calls cost nothing
    timeout_s: float | None = None  # of one call, where the configuration does not say
    paths: Mapping[str, str] = field(default_factory=dict)  # settings that are paths, with their defaults
    installs_skills: bool = (
        False  # whether it is an agent, which loads the skills of a request by itself, or replays one
    )
    estimates_tokens: bool = False  # whether it counts no tokens and estimates those of every call
    settings: Mapping[str, Knob] | None = None  # by name; None if they are not listed


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
    """What a backend finds on the way to its model before it asks it anything; never a secret."""

    place: str  # a server's name, or the path of a program
    version: str = ""  # of the program
    ready: bool  # whether it has what it needs, as far as can be seen without a call
    detail: str  # as whom it calls, such as the variable that holds the key; or what is missing


@runtime_checkable
class Probes(Protocol):
    """What a backend adds that can look before a call; without it, the first call has to tell."""

    async def probe(self) -> Probe:
        """Look for key, login or program, at no cost; a BackendError if there is no way to the model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """Where an agent asks its model during one call, and what lets it in; both are gone when the call ends."""

    url: str  # of the loopback, without ``/v1`` and without a slash at the end
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBehind:
    """The backend that answers an agent's own questions, and the settings of it that follow from the agent's."""

    backend: str
    settings: Mapping[str, object] = field(default_factory=dict)


@runtime_checkable
class AsksModels(Protocol):
    """What a backend adds whose program asks a model by itself: through an address of ours, each question is metered.

    Metered, a call costs what its questions cost, and none passes a cap; the usage of the reply is not looked at.
    """

    def model_behind(self) -> ModelBehind | None:
        """Say whom the program's questions go to; None lets it ask by itself, and report what that took."""
        ...

    async def complete_through(self, request: Request, access: ModelAccess) -> Reply:
        """Answer ``request`` like ``complete``, asking at ``access`` only."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """How far a batch is; ``fault`` says why its provider refused it as a whole."""

    is_over: bool
    answers: int
    fault: str = ""


@runtime_checkable
class Batches(Protocol):
    """What a backend adds whose provider answers many requests together, within a day and at half the price."""

    async def send_batch(self, mark: str, requests: Mapping[str, Request]) -> str:
        """Send ``requests``, by keys of 64 hexadecimal digits, under ``mark``; return the provider's id of the batch.

        It raises what ``complete`` raises, and does not ask twice.
        """
        ...

    async def find_batches(self, mark: str, count: int, since: float) -> Sequence[str]:
        """Return the ids of batches that may be the one with ``mark`` of ``count`` requests, sent after ``since``.

        Where the provider keeps no marks, the keys in their results have to decide.
        """
        ...

    async def batch_state(self, batch: str) -> BatchState:
        """Return how far a batch is; its results can be read once it is over."""
        ...

    async def batch_results(self, batch: str, requests: Mapping[str, Request]) -> Mapping[str, Reply | BackendError]:
        """Return the results of ``requests`` by their keys, as far as the batch has them.

        An error with usage was billed; one without is of a request that was not answered.
        """
        ...


@runtime_checkable
class TellsContext(Protocol):
    """What a backend adds whose server says how long a prompt and its reply may be."""

    async def context(self, model: str) -> int | None:
        """Return the tokens that ``model`` takes, prompt and reply together; None if the server does not tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """The server that a backend asks."""

    url: str  # of the API; a user, a query and a fragment in it are never recorded
    variable: str = ""  # the environment variable that named it; empty for a setting and for a default
    is_pinned: bool = False  # whether it is a provider's own, whose names mean the same models everywhere
    names_deployments: bool = False  # whether a name there is its owner's, and may stand for any model


@runtime_checkable
class AsksServer(Protocol):
    """What a backend adds that asks a server: two servers may call different models by the same name.

    Without it, backend and model identify who answers.
    """

    def server(self) -> ModelServer | None:
        """Return where calls go, without a request and without a key; None where the backend cannot tell."""
        ...

    async def served_facts(self, model: str) -> Mapping[str, object] | None:
        """Return what the server says about ``model`` that changes with its weights, such as digest and size.

        None if the server does not answer now; empty if it says nothing. It is never asked of a pinned provider.
        """
        ...


@runtime_checkable
class ListsModels(Protocol):
    """What a backend adds whose server lists the models that it has."""

    async def models(self) -> Sequence[str]:
        """Return their names; a BackendError if the server does not answer."""
        ...


@runtime_checkable
class PlaysRole(Protocol):
    """What a backend adds that looks for a role's own variables in the environment: ``TARGET_X`` goes before ``X``."""

    def play(self, role: str) -> tuple[str, ...]:
        """Take a role, once, before the first call; return the variables that it uses: others have other limits."""
        ...


def flatten(messages: Sequence[Message]) -> str:
    """Return a conversation as plain text, for estimates and digests."""
    return "\n".join(f"{message.role}: {message.text}" for message in messages)


CHARACTERS_PER_TOKEN = 4  # about; for estimates where tokens are not counted


def estimated_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimated_usage(messages: Sequence[Message], text: str) -> Usage:
    """Return about what a call took that was answered with ``text``, where its tokens are not counted."""
    return Usage(tokens_in=estimated_tokens(flatten(messages)), tokens_out=estimated_tokens(text))


def encodable(request: Request) -> Request:
    """Return ``request`` as it can be sent: lone surrogates, such as a cut emoji leaves in an item, are replaced."""
    messages = []
    for message in request.messages:
        parts = tuple(Text(text=storable(part.text)) if isinstance(part, Text) else part for part in message.parts)
        calls = tuple(replace(call, arguments=storable(call.arguments)) for call in message.tool_calls)
        messages.append(replace(message, parts=parts, tool_calls=calls))
    return replace(request, messages=tuple(messages))
