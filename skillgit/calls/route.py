"""Who answers a role, what makes two questions the same call, and one attempt at an answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, get_args

from skillgit.calls.pricing import half
from skillgit.domain.evaluation import Loading
from skillgit.domain.ids import digest
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    FatalBackendError,
    RetryableBackendError,
    SkillgitError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import (
    AsksModels,
    Backend,
    FinishReason,
    Message,
    ModelAccess,
    Price,
    Reply,
    Request,
    Tool,
    ToolCall,
    Usage,
    user,
)
from skillgit.plugin.call_records import parameters_json
from skillgit.plugin.redaction import redact
from skillgit.plugin.skill_marks import as_text, gives_skill

if TYPE_CHECKING:
    from opentelemetry.trace import Span

QUESTION = (user("Reply with OK."),)
STAGE = "canary"  # the stage that such questions are charged to, where doubt came up in the middle of a run
MOST_TOOL_CALLS = 256  # tool calls in one reply; models are offered a few dozen tools and use a handful at once
_LONGEST_NAME = 200  # characters of the name that a provider gives its model; it is only shown


def reply_key(answerer: str, question: str, draw: tuple[str | int, ...]) -> str:
    """Return the key of a call: who answers, the digest of the question, and the place in the run that asks."""
    return digest(["reply", answerer, question, *draw])


def answerer_fingerprint(backend: str, request: Request) -> str:
    """Return the digest of who answers: backend, model and parameters; the messages do not matter."""
    return digest({"backend": backend, **parameters_json(request)})


def checked(reply: object, backend: str) -> Reply:
    """Return ``reply`` without lone surrogates; a FatalBackendError if it is none, UnusableAnswerError if oversized."""
    if not isinstance(reply, Reply) or not _is_typed(reply):
        hint = "this is a fault of the backend, not of the provider"
        raise FatalBackendError(f"backend {backend} returned no reply", hint=hint)
    size = len(reply.text) + sum(len(call.id) + len(call.name) + len(call.arguments) for call in reply.tool_calls)
    fault = f"has {len(reply.tool_calls):,} tool calls" if len(reply.tool_calls) > MOST_TOOL_CALLS else ""
    if size > MOST_BYTES:
        fault = f"has {size:,} characters"
    if fault:
        raise UnusableAnswerError(
            f"{backend}: the model's answer {fault}", hint="if this lasts, look at the prompt", usage=reply.usage
        )
    calls = tuple(
        ToolCall(id=storable(call.id), name=storable(call.name), arguments=storable(call.arguments))
        for call in reply.tool_calls
    )
    return replace(reply, text=storable(reply.text), tool_calls=calls, model=storable(reply.model[:_LONGEST_NAME]))


def retry_after(seconds: object) -> float | None:
    """Return ``seconds`` if a provider can want someone to wait for them: a finite number that is not negative."""
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return None
    return float(min(seconds, 1e9))


def _is_typed(reply: Reply) -> bool:
    return (
        all(isinstance(text, str) for text in (reply.text, reply.model))
        and isinstance(reply.usage, Usage)
        and reply.finish_reason in get_args(FinishReason)
        and (reply.loading is None or isinstance(reply.loading, Loading))
        and isinstance(reply.tool_calls, tuple)
        and all(isinstance(call, ToolCall) for call in reply.tool_calls)
        and all(isinstance(text, str) for call in reply.tool_calls for text in (call.id, call.name, call.arguments))
    )


@dataclass(slots=True, kw_only=True)
class CallOrder:
    """A call that has to be made, and how far it is."""

    key: str  # what makes it the same call
    route: Route
    request: Request
    question: str  # the digest of the question; empty where no replay may take the answer for one
    role: str
    stage: str
    scope: str
    span: Span | None = None  # that its own lies in, if it is traced
    again: bool = False  # whether it had a turn before
    has_copy: bool = False
    copies: int = 0  # that the provider works on or has answered, without those that failed

    @property
    def is_canary(self) -> bool:
        """Whether the question is only whether the model answers at all."""
        return self.request.messages == QUESTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who answers a role, with the parameters of ``Request``."""

    backend: Backend
    backend_name: str
    model: str
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    price: Price | None = None  # None if it is not known
    concurrency: int = 16
    timeout_s: float = 600.0  # of one attempt
    variant: str = ""  # identifies the backend's own settings, as far as they may change its answers
    batch: bool = False  # whether calls go to the provider together, at half the price
    lane: str = ""  # whose limits its calls share; empty for those of all calls of this backend and model
    inner: Route | None = None  # who answers an agent's own questions, which are metered; None for all other backends
    server: ServedModel | None = None  # the server that the backend asks by itself; None if it asks none
    as_written: Callable[[str], str] = field(default=str, compare=False)

    @property
    def name(self) -> str:
        return f"{self.backend_name}/{self.model}"

    @property
    def limits_name(self) -> str:
        """Names the limits that its calls share with others."""
        return self.lane or self.name

    @property
    def served(self) -> ServedModel:
        """Who answers in the end: of an agent whose questions are metered, the server of the model behind it."""
        if self.inner is not None:
            return replace(self.inner.served, backend=self.backend_name)
        return self.server or ServedModel(backend=self.backend_name, model=self.model)

    @property
    def answerer(self) -> str:
        """The backend with what may change what it answers, for keys of the ledger: its settings, and its server."""
        identity = "" if self.server is None else self.server.digest
        own = f"{self.backend_name}#{self.variant}" if self.variant else self.backend_name
        own = f"{own}@{identity}" if identity else own
        return own if self.inner is None else f"{own}<{self.inner.answerer}"

    @property
    def by_name(self) -> Route:
        """The same way, identified as it was before the server was looked at: by backend, name and settings alone."""
        return replace(self, server=None, inner=None if self.inner is None else self.inner.by_name)

    @property
    def fingerprint(self) -> str:
        """The digest of who answers: backend, model and parameters."""
        return answerer_fingerprint(self.answerer, self.request(()))

    def request(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), schema: Mapping[str, object] | None = None
    ) -> Request:
        """Return the request that asks ``messages`` on this route, with skills as its backend reads them."""
        return Request(
            model=self.model,
            messages=tuple(messages) if self.backend.info.installs_skills else as_text(messages),
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            tools=tuple(tools),
            top_p=self.top_p,
            seed=self.seed,
            stop=self.stop,
            schema=schema,
        )

    @property
    def in_batch(self) -> Route:
        """This route at batch prices, if its role is batched."""
        return replace(self, price=half(self.price)) if self.batch else self

    async def attempt(self, request: Request, access: ModelAccess | None = None) -> Reply:
        """Ask the backend once; see ``guarded`` for the deadline and the errors."""
        async with self.guarded():
            if access is not None and isinstance(self.backend, AsksModels):
                reply = await self.backend.complete_through(request, access)
            else:
                reply = await self.backend.complete(request)
            reply = checked(reply, self.backend_name)
            if reply.loading is None and access is not None and gives_skill(request.messages):
                return replace(reply, loading=Loading.UNKNOWN)  # an agent that does not say
            return reply

    @asynccontextmanager
    async def guarded(self) -> AsyncIterator[None]:
        """Give the backend's work in the block a deadline; any error becomes a BackendError without credentials."""
        try:
            async with asyncio.timeout(self.timeout_s):
                yield
        except TimeoutError as error:
            hint = self.as_written("raise calls.timeout_s")
            raise BackendTimeoutError(f"no reply from {self.name} within {self.timeout_s:g} s", hint=hint) from error
        except BackendError as error:
            # Providers quote keys in their messages, and messages become evidence.
            error.message, error.hint = storable(redact(error.message)), self.as_written(error.hint)
            error.args = (error.message,)
            if isinstance(error, RetryableBackendError):
                error.retry_after = retry_after(error.retry_after)
            raise
        except SkillgitError:
            raise
        except Exception as error:  # a backend is a plug-in and may fail in any way; the run must survive the item
            message = f"backend {self.backend_name} broke down: {type(error).__name__}: {storable(redact(str(error)))}"
            raise FatalBackendError(message, hint="this is a fault of the backend, not of the provider") from error


def with_inner(routes: Iterable[Route]) -> list[Route]:
    """Return ``routes``, each followed by that of its agent's own questions."""
    return [each for route in routes for each in (route, route.inner) if each is not None]
