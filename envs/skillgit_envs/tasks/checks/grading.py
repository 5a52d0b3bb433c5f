"""What several checks add up to: soft is their weighted mean, hard whether each reaches what it takes to pass."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit_envs.tasks.checks.catalogue import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit_envs.tasks.checks.check import Fields, Grade, Sheet


async def graded(checks: Sequence[Fields], sheet: Sheet) -> tuple[Scored, str]:
    """Carry out ``checks`` and return the score with what the optimizer may read.

    Raises:
        BackendError: The judge could not be asked.
        EnvironmentFaultError: A check could not do its part.
    """
    grades = [await KINDS[check["type"]].grade(check, sheet) for check in checks]
    passes = [grade.score >= check["pass"] for check, grade in zip(checks, grades, strict=True)]
    whole = fsum(check["weight"] for check in checks)
    soft = fsum(check["weight"] * grade.score for check, grade in zip(checks, grades, strict=True)) / whole
    messages = [_said(check, grade, ok=ok) for check, grade, ok in zip(checks, grades, passes, strict=True)]
    feedback = (
        messages[0]
        if len(messages) == 1
        else "\n".join(f"- {check['type']}: {text}" for check, text in zip(checks, messages, strict=True))
    )
    return Scored(hard=float(all(passes)), soft=min(1.0, soft), parts=_parts(checks, grades)), feedback


def _parts(checks: Sequence[Fields], grades: Sequence[Grade]) -> tuple[tuple[str, float], ...]:
    """Return the score of each of several checks by its type; of several of one type, the later ones are numbered."""
    if len(checks) == 1:
        return ()
    counts, parts = Counter[str](), []
    for check, grade in zip(checks, grades, strict=True):
        counts[check["type"]] += 1
        number = counts[check["type"]]
        parts.append((check["type"] if number == 1 else f"{check['type']} {number}", grade.score))
    return tuple(parts)


def _said(check: Fields, grade: Grade, *, ok: bool) -> str:
    return check["message"] if "message" in check and not ok else grade.said
