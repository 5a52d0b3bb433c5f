"""Update: apply the selected edits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.calls.redaction import redact
from skillgit.domain.edit import Application, EditReport, EditStatus, apply

if TYPE_CHECKING:
    from skillgit.domain.edit import Edit, Patch
    from skillgit.domain.skill import Skill


def update(skill: Skill, patch: Patch, budget: int) -> Application:
    """Apply at most ``budget`` edits of ``patch``; one that carries something shaped like a secret is refused."""
    reports: list[EditReport] = []
    for edit in patch.edits[:budget]:
        if _carries_secret(edit):
            refused = replace(edit, anchor=redact(edit.anchor), content=redact(edit.content))
            reports.append(
                EditReport(edit=refused, status=EditStatus.INVALID, detail="the edit carries something like a secret")
            )
            continue
        applied = apply(skill, [edit])
        skill = applied.skill
        reports.extend(applied.reports)
    return Application(skill=skill, reports=tuple(reports))


def _carries_secret(edit: Edit) -> bool:
    return redact(edit.content) != edit.content or redact(edit.anchor) != edit.anchor
