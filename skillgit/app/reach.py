"""Whether the model of a role can be reached: what is found without a call, how much it takes, and one tiny call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.calls.contexts import find_context
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Probes, TellsContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.calls.route import Route
    from skillgit.plugin.backend import Probe

_NEAR = 0.8
_MOST_CHARACTERS_PER_TOKEN = 8
_ESTIMATED_CHARACTERS_PER_TOKEN = 4

Source = Literal["", "configuration", "server", "table"]
Fit = Literal["unknown", "fits", "near", "too long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """How much a model takes.

    Attributes:
        tokens: Tokens, prompt and reply together; None if that is not known.
        source: Who says so.
    """

    tokens: int | None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How the longest prompt of a role compares with what its model takes.

    Attributes:
        context: Tokens that the model takes, prompt and reply together; None if that is not known.
        source: Who says so.
        prompt: Tokens of the longest prompt, estimated at four characters each.
        reply: Tokens that a reply may have.
    """

    context: int | None
    source: Source
    prompt: int
    reply: int

    @property
    def fit(self) -> Fit:
        """Whether the prompt fits; ``too long`` if it does not even at eight characters a token, as no text has."""
        if self.context is None:
            return "unknown"
        if self.prompt * _ESTIMATED_CHARACTERS_PER_TOKEN > self.context * _MOST_CHARACTERS_PER_TOKEN:
            return "too long"
        return "near" if self.prompt > _NEAR * self.context or self.prompt + self.reply > self.context else "fits"


async def look(route: Route) -> Probe | None:
    """Return what a backend finds without a call; None if it cannot look.

    Raises:
        BackendError: The model cannot be called: no key, no login, no program.
    """
    if not isinstance(route.backend, Probes):
        return None
    probe = await route.backend.probe()
    if not probe.ready:
        raise FatalBackendError(f"{route.backend_name} is not ready to call its model", hint=probe.detail)
    return probe


async def context_of(route: Route, contexts: Mapping[str, int]) -> Context:
    """Return how much the model of ``route`` takes; its server is asked if it tells.

    Args:
        route: The way to the model.
        contexts: What the configuration says of models; it goes before everything else.
    """
    tokens, source = contexts.get(route.model), "configuration"
    if tokens is None and isinstance(route.backend, TellsContext):
        tokens, source = await route.backend.context(route.model), "server"
    if tokens is None:
        tokens, source = find_context(route.model), "table"
    said: Source = "" if tokens is None else source  # type: ignore[assignment]
    return Context(tokens=tokens, source=said)


def room(route: Route, prompt: int, context: Context) -> Room:
    """Return how a prompt of ``prompt`` tokens compares with what the model of ``route`` takes."""
    return Room(context=context.tokens, source=context.source, prompt=prompt, reply=route.max_output_tokens)
