"""Evidence: the artefacts behind an event as files, redacted, in a stable form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.calls.redaction import redact
from skillgit.domain.evaluation import FailedToEvaluate
from skillgit.domain.ids import text_digest
from skillgit.engine.rendering import edit_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillgit.domain.edit import EditReport, Patch
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.replies import Finding

Evidence = dict[str, bytes]


def json_file(value: object) -> bytes:
    """Return ``value`` as indented JSON with sorted keys, secrets redacted."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{redact(text)}\n".encode()


def rollouts_files(name: str, rollouts: Sequence[Rollout]) -> Evidence:
    """Return ``<name>.json`` with one row per item, and a file per trajectory beside it.

    Trajectories have files of their own, so that git stores one that did not change only once.
    """
    rows: list[dict[str, object]] = []
    found: Evidence = {}
    for rollout in rollouts:
        row: dict[str, object] = {"id": rollout.item.id, "task_type": rollout.item.task_type}
        if isinstance(rollout.outcome, FailedToEvaluate):
            rows.append(row | {"failed": rollout.outcome.reason})
            continue
        row |= {"hard": rollout.outcome.hard, "soft": rollout.outcome.soft}
        if rollout.trajectory is not None:
            path = f"trajectories/{text_digest(rollout.item.id)}.json"
            turns = [{"role": turn.role, "content": turn.content} for turn in rollout.trajectory.turns]
            found[f"{name}/{path}"] = json_file({"id": rollout.item.id, "turns": turns})
            row |= {
                "answer": rollout.trajectory.answer,
                "feedback": rollout.trajectory.feedback,
                "trajectory": f"{name}/{path}",
            }
        rows.append(row)
    return found | {f"{name}.json": json_file(rows)}


def patch_file(patch: Patch, reports: Iterable[EditReport]) -> Evidence:
    """Return ``patch.json``: the selected edits in the order of their application, with what became of each."""
    edits = [edit_fields(report.edit) | {"status": report.status.value, "detail": report.detail} for report in reports]
    return {"patch.json": json_file({"title": patch.title, "reasoning": patch.reasoning, "edits": edits})}


def findings_file(findings: Sequence[Finding], unusable: int) -> Evidence:
    """Return ``findings.json``: what analysts saw, and how many of them gave no usable reply."""
    listed = [{"pattern": found.pattern, "count": found.count, "items": list(found.items)} for found in findings]
    return {"findings.json": json_file({"findings": listed, "unusable_replies": unusable})}


def merged(parts: Iterable[Mapping[str, bytes]]) -> Evidence:
    """Return all files of ``parts``."""
    return {path: content for part in parts for path, content in part.items()}
