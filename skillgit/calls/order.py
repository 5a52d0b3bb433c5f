"""Owns what is known of a call on its way: who answers it, who asks, and which event in the making pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.calls.canary import QUESTION

if TYPE_CHECKING:
    from skillgit.calls.route import Route
    from skillgit.plugin.backend import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A call that has to be made.

    Attributes:
        key: What makes it the same call (``skillgit.calls.fingerprints``).
        route: Who answers it.
        request: What is asked.
        asked: The digest of the question; empty where no replay may take the answer for one.
        role: Who asks.
        stage: What for.
        scope: The event in the making that pays.
    """

    key: str
    route: Route
    request: Request
    asked: str
    role: str
    stage: str
    scope: str

    @property
    def is_canary(self) -> bool:
        """Whether the question is only whether the model answers at all."""
        return self.request.messages == QUESTION
