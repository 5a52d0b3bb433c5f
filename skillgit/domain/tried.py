"""What was tried on a text before a run began with it, and rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.domain.event import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate that the gate of another run, or of somebody else's part of it, rejected.

    Attributes:
        run: That run.
        step: The step.
        base: The version that it was made of.
        commit: Its commit.
        title: What was tried.
        changes: The changed lines.
        score: Its score.
        bound: Whether that is only the highest that it could have been.
        current: The score that it had to beat.
    """

    run: str
    step: int
    base: int
    commit: str
    title: str
    changes: tuple[Change, ...]
    score: float
    bound: bool
    current: float
