"""Update: apply the selected edits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.domain.edit import Application, EditReport, EditStatus, apply
from skillgit.domain.untrusted.text import clean
from skillgit.plugin.redaction import MASK, redact

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.domain.edit import Edit, Patch
    from skillgit.domain.skill import Skill
    from skillgit.engine.drafts import Draft


def update(
    skill: Skill,
    patch: Patch | Draft,
    budget: int | None,
    lint: Callable[[Edit], str] = lambda _: "",
    files: Callable[[Skill, Edit], str] = lambda *_: "",
) -> Application:
    """Apply at most ``budget`` edits of ``patch``; one that carries something shaped like a secret is refused.

    Args:
        skill: The skill to edit.
        patch: The edits.
        budget: How many of them at most; None is no limit.
        lint: Says of an edit why it is quarantined; the edits after it are applied all the same.
        files: Says of an edit why its file may not be edited, likewise.
    """
    reports: list[EditReport] = []
    for edit in patch.edits[:budget]:
        if _carries_secret(edit):
            safe_edit = replace(edit, anchor=clean(redact(edit.anchor)), content=clean(redact(edit.content)))
            reports.append(
                EditReport(edit=safe_edit, status=EditStatus.INVALID, detail="the edit carries something like a secret")
            )
            continue
        if refused_for := lint(edit) or files(skill, edit):
            reports.append(EditReport(edit=edit, status=EditStatus.INVALID, detail=refused_for))
            continue
        result = apply(skill, [edit])
        skill = result.skill
        reports.extend(result.reports)
    return Application(skill=skill, reports=tuple(reports))


def _carries_secret(edit: Edit) -> bool:
    """Say whether the edit carries a secret, or the mask that took its place when the reply was recorded."""
    return any(MASK in text or redact(text) != text for text in (edit.content, edit.anchor))
