"""The kinds of events, for those who read them from the index and need no event."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """A kind of event, by the name that it has in trailers and in the index."""

    RUN_STARTED = "run-started"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    SLOW_PROPOSED = "slow-proposed"
    SLOW_MERGED = "slow-merged"
    REVERTED = "reverted"
    EDITED = "edited"
    MEASURED = "measured"
    RUN_FINISHED = "run-finished"
