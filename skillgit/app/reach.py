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


async def room(route: Route, prompt: int, contexts: Mapping[str, int]) -> Room:
    """Return how a prompt of ``prompt`` tokens compares with what the model of ``route`` takes.

    Args:
        route: The way to the model; its server is asked if it tells.
        prompt: Tokens of the longest prompt.
        contexts: What the configuration says of models; it goes before everything else.
    """
    context, source = contexts.get(route.model), "configuration"
    if context is None and isinstance(route.backend, TellsContext):
        context, source = await route.backend.context(route.model), "server"
    if context is None:
        context, source = find_context(route.model), "table"
    said: Source = "" if context is None else source  # type: ignore[assignment]
    return Room(context=context, source=said, prompt=prompt, reply=route.max_output_tokens)
