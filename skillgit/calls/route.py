"""Owns where a role's calls go, and one attempt of a call: its deadline and the kind of its failure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.calls.answers import asked_pause, checked
from skillgit.calls.fingerprints import answerer_fingerprint
from skillgit.domain.untrusted.text import storable
from skillgit.errors import BackendError, BackendTimeoutError, FatalBackendError, RetryableBackendError, SkillgitError
from skillgit.plugin.backend import Request
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.plugin.backend import Backend, Message, Price, Reply, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who answers a role.

    Attributes:
        backend: The backend.
        backend_name: The name that it was configured by.
        model: The model's name at its provider.
        max_output_tokens: Upper limit of a reply's length in tokens.
        temperature: Sampling temperature; None leaves the provider's default.
        reasoning_effort: Empty leaves the provider's default.
        price: Dollars for a million tokens; None if that is not known.
        concurrency: Calls in flight at once.
        timeout_s: Deadline of one attempt in seconds.
        variant: Identifies the backend's own settings, as far as they may change its answers.
        lane: Whose limits its calls share; empty for those of all calls of this backend and model.
        as_written: Returns a hint with the keys that set, for this route, what it names by the keys of the backend.
    """

    backend: Backend
    backend_name: str
    model: str
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""
    price: Price | None = None
    concurrency: int = 16
    timeout_s: float = 600.0
    variant: str = ""
    lane: str = ""
    as_written: Callable[[str], str] = field(default=str, compare=False)

    @property
    def name(self) -> str:
        """Backend and model in one word."""
        return f"{self.backend_name}/{self.model}"

    @property
    def answerer(self) -> str:
        """The backend with those of its settings that may change what it answers, for keys of the ledger."""
        return f"{self.backend_name}#{self.variant}" if self.variant else self.backend_name

    @property
    def fingerprint(self) -> str:
        """The digest of who answers: backend, model and parameters."""
        return answerer_fingerprint(self.answerer, self.request(()))

    def request(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Request:
        """Return the request that asks ``messages`` on this route."""
        return Request(
            model=self.model,
            messages=tuple(messages),
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            tools=tuple(tools),
        )

    async def attempt(self, request: Request) -> Reply:
        """Ask the backend once.

        Raises:
            RetryableBackendError: It may work if it is tried again; no answer in time is one of these cases, and an
                answer beyond all measure another.
            FatalBackendError: It will not, or the backend broke down.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                return checked(await self.backend.complete(request), self.backend_name)
        except TimeoutError as error:
            raise BackendTimeoutError(
                f"no reply from {self.name} within {self.timeout_s:g} s", hint=self.as_written("raise calls.timeout_s")
            ) from error
        except BackendError as error:
            # Providers quote keys in their messages, and messages become evidence.
            error.message, error.hint = storable(redact(error.message)), self.as_written(error.hint)
            error.args = (error.message,)
            if isinstance(error, RetryableBackendError):
                error.retry_after = asked_pause(error.retry_after)
            raise
        except SkillgitError:
            raise
        except Exception as error:  # a backend is a plug-in and may fail in any way; the run must survive the item
            raise FatalBackendError(
                f"backend {self.backend_name} broke down: {type(error).__name__}: {storable(redact(str(error)))}",
                hint="this is a fault of the backend, not of the provider",
            ) from error
