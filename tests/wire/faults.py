"""Which questions fail, and how: decided by seed and question alone, so neither order nor concurrency changes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

REFUSALS = {
    "rate_limit": (429, "rate_limit", "Rate limit reached, please slow down"),
    "rate_limit_after": (429, "rate_limit", "Rate limit reached, please try again later"),
    "server_error": (500, "server_error", "The server had an error while processing your request"),
    "unavailable": (503, "server_error", "The engine is currently unavailable"),
    "overloaded": (529, "overloaded", "Overloaded"),
    "context_length": (400, "context_length", "This model's maximum context length is 8192 tokens, you asked for more"),
    "content_filter": (400, "content_filter", "The prompt triggered the content management policy"),
    "odd_item": (400, "invalid_request", "The last message cannot be processed"),
    "unauthorized": (401, "authentication", "Incorrect API key provided"),
    "forbidden": (403, "permission", "You have no access to this model"),
    "unknown_model": (404, "model_not_found", "The model does not exist"),
}
"""Faults that are an error of HTTP: status, code and message."""

ODD = ("empty_choices", "empty_text", "wrong_shape", "refusal", "withheld", "used_up", "no_usage")
"""Faults that each dialect writes in its own way; the status is 200."""

BROKEN = ("reset", "hang", "truncated", "malformed", "malformed_text", "slow_stream")
"""Faults of the transport, of the JSON in the body, and of the JSON in the model's text."""

PASSING = (
    *("rate_limit", "rate_limit_after", "server_error", "unavailable", "overloaded"),
    *("reset", "truncated", "malformed", "wrong_shape", "empty_choices"),
)
"""Faults that a repeated call does not meet again, and that end by themselves."""

KINDS = (*REFUSALS, *ODD, *BROKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often questions fail.

    Attributes:
        rate: Share of questions that fail.
        kinds: The kinds to choose from.
        seed: Of the choice.
        after: Questions that pass before any fails.
        row: How often the same question fails in a row at most.
        script: What befalls the first questions, one after the other: a kind, or nothing for an empty string.
        model: A word in the name of the models that fail; empty for all.
        retry_after: Seconds in the header of ``rate_limit_after``.
        pause: Seconds between two pieces of a ``slow_stream``.
        lasting: Whether the same question always meets the same fate, however often it is asked.
        shares: Words in the name of a model, each with the share of its questions that fail, in place of ``rate``.
    """

    rate: float = 0.0
    kinds: tuple[str, ...] = PASSING
    seed: int = 0
    after: int = 0
    row: int = 3
    script: tuple[str, ...] = ()
    model: str = ""
    retry_after: float = 0.0
    pause: float = 0.005
    lasting: bool = False
    shares: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        unknown = {*self.kinds, *self.script} - {*KINDS, ""}
        if unknown:
            raise ValueError(f"no such faults: {sorted(unknown)}")

    def choose(self, digest: str, model: str, *, number: int, seen: int) -> str:
        """Return the fault of a question, or an empty string.

        Args:
            digest: Of the question.
            model: That is asked.
            number: Questions asked before.
            seen: How often this very question was asked before.
        """
        if number < len(self.script):
            return self.script[number]
        if self.model not in model or number < self.after or not self.kinds:
            return ""
        rate = next((share for word, share in self.shares if word in model), self.rate)
        seen = 0 if self.lasting else seen
        if rate < 1 and not self.lasting and seen % (self.row + 1) == self.row:
            return ""
        draw = chance(self.seed, digest, seen)
        if draw >= rate:
            return ""
        return self.kinds[int(chance(self.seed, digest, seen, "kind") * len(self.kinds))]


def chance(*words: object) -> float:
    """Return a number from 0 to 1 that depends on ``words`` alone."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:7]) / 256**7


def spoilt(text: str) -> str:
    """Return a model's text as it looks when the model lost its thread in the middle of it."""
    half = text[: len(text) // 2]
    return f"{half}{{'unfinished: [1, 2,,\n"


def passing(kinds: Collection[str]) -> bool:
    """Say whether a repeated call can meet none of ``kinds`` again."""
    return set(kinds) <= set(PASSING)
