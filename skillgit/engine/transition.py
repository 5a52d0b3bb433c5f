"""What the engine hands over: an event with its skill and evidence, and what of it no model would answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from skillgit.engine import evidence_files
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.calls.client import Unanswered
    from skillgit.domain.event import Event
    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One step of a run's history.

    Attributes:
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


def unanswered(session: Session, *stages: str) -> str:
    """Return a sentence that says how many calls of ``stages`` will never be answered and why; empty if there are none.

    It speaks of the event in progress.
    """
    calls = [call for call in _calls(session) if call.stage in stages]
    if not calls:
        return ""
    subject = f"A call ({calls[0].stage})" if len(calls) == 1 else f"{len(calls)} calls ({', '.join(stages)})"
    return redact(f"{subject} will never be answered: {calls[0].reason}.")


def unanswered_file(session: Session) -> evidence_files.Evidence:
    """Return ``unanswered.json`` with a row for each such call of the event in progress; nothing without any."""
    rows = [{"stage": call.stage, "kind": call.kind.value, "reason": call.reason} for call in _calls(session)]
    return {"unanswered.json": evidence_files.json_file(rows)} if rows else {}


def _calls(session: Session) -> list[Unanswered]:
    return [call for call in session.calls.unanswered if call.role == "optimizer"]
