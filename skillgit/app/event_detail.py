"""All that a screen shows of one event: the event itself, its difference as data, its edits, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.show import Shown, show
from skillgit.app.step_evidence import AppliedEdit, Attempt, Finding, StepEvidence
from skillgit.app.workspace import open_workspace
from skillgit.domain.text_diff import FileDiff, detailed
from skillgit.domain.unified import read

if TYPE_CHECKING:
    from skillgit.app.context import Context

_ATTEMPTS = 12
"""Trajectories of a step that are told at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetail:
    """One event in full.

    Attributes:
        shown: The event, as ``skillgit show`` tells it.
        files: What it changed in the skill, as data.
        edits: The edits that took effect; empty where the evidence is not here.
        findings: What analysts saw in its step; likewise.
        attempts: What the target made of the items that they point at; likewise.
        present: Whether the evidence is here.
    """

    shown: Shown
    files: tuple[FileDiff, ...]
    edits: tuple[AppliedEdit, ...] = ()
    findings: tuple[Finding, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    present: bool = False


def event_detail(context: Context, commit: str) -> EventDetail:
    """Return the event that ``commit`` holds, in full.

    Raises:
        RevisionNotFoundError: It holds none.
    """
    shown = show(context, commit)
    files = tuple(detailed(read(shown.diff)))
    if not shown.evidence_tree:
        return EventDetail(shown=shown, files=files)
    with open_workspace(context) as workspace:
        evidence = StepEvidence(workspace.repo, shown.evidence_tree)
        findings, edits = evidence.findings(), evidence.edits()
        named = [*(finding.items for finding in findings), *(edit.items for edit in edits)]
        items = list(dict.fromkeys(item for items in named for item in items))[:_ATTEMPTS]
        attempts = evidence.attempts(items) if items else evidence.compared()[:_ATTEMPTS]
        return EventDetail(
            shown=shown,
            files=files,
            edits=edits,
            findings=findings,
            attempts=attempts,
            present=evidence.present,
        )
