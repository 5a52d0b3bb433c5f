"""What a check of history finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong with a run.

    Attributes:
        commit: The commit that it lies in; empty if it lies in no commit.
        sentence: What is wrong, without a full stop.
        repairable: Whether it follows from the rest of the history, so that it can be mended without losing a fact.
        remark: Whether it breaks no rule of history, and is something to know before the run is used.
    """

    commit: str
    sentence: str
    repairable: bool = False
    remark: bool = False
