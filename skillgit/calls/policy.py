"""Owns how fast and how patiently models are called; nothing here changes what they answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How calls are made; None is no limit.

    Attributes:
        attempts: Attempts of a call in all; refusals do not count.
        patience_s: Seconds that a call spends in pauses before a further refusal is its end.
        breaker_limit: Calls of one provider's model that fail in a row before it counts as down.
        requests_per_minute: Attempts that may be sent to one provider's model in a minute.
        tokens_per_minute: Tokens, in and out and as estimated, that may be sent for in a minute.
        item_timeout_s: Seconds that one item may take; waiting for a turn does not count.
        hedge: Whether a call that takes unusually long is sent a second time.
    """

    attempts: int = 5
    patience_s: float = 600.0
    breaker_limit: int = 5
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    item_timeout_s: float | None = None
    hedge: bool = False
