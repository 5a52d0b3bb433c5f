"""What the engine hands over: one event with the skill that it makes and the evidence behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.event import Event
    from skillgit.domain.skill import Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One step of a run's history.

    Attributes:
        event: The fact.
        skill: The skill that the event's commit holds; absent where the tree stays as it was (skipped, run-finished) or
            is made from the event itself (slow-proposed).
        evidence: Path to content of the artefacts behind it: ``patch.json``, ``selection.json``, ``rollout.json``, …
    """

    event: Event
    skill: Skill | None = None
    evidence: Mapping[str, bytes] = field(default_factory=dict)


class SkillHistory(Protocol):
    """Where the engine reads the skill of an earlier version."""

    def skill(self, version: int) -> Skill:
        """Return the skill of ``version`` of the run in training."""
        ...
