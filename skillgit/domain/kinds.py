"""The names of the kinds of events, for those who read them from the index and need no event."""

from __future__ import annotations

EVENT_KINDS = (
    "run-started",
    "accepted",
    "rejected",
    "skipped",
    "slow-proposed",
    "slow-merged",
    "reverted",
    "edited",
    "measured",
    "run-finished",
)
"""Every kind, by the name that it has in trailers and in the index."""
