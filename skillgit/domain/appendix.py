"""What becomes of the appendix, where reminders for the target stand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendixCounts:
    """What skill-aware reflection did to the appendix.

    Attributes:
        added: Reminders that are new.
        total: Reminders that stand in the candidate.
        consolidated: How many there were before they were put together; 0 if they were not.
    """

    added: int
    total: int
    consolidated: int = 0
