"""Evidence: the artefacts behind an event as files, redacted, in a stable form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from skillgit.domain.edit import EditReport, Patch
from skillgit.domain.evidence_names import FINDINGS, PATCH
from skillgit.domain.ids import text_digest
from skillgit.domain.outcomes import outcome_row
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.model_text import storable
from skillgit.engine.prompt_sections import edit_fields, proposed_fields
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from skillgit.engine.proposals import Draft
    from skillgit.engine.reply_schemas import FailurePattern

Evidence = dict[str, bytes]


def json_file(value: object) -> bytes:
    """Return ``value`` as JSON with sorted keys and secrets redacted, each row and each field on a line of its own."""
    return f"{redact(storable(_lines(value)))}\n".encode()


def _lines(value: object) -> str:
    # Line ends are between rows and fields only: indenting all of it takes five times as long.
    if isinstance(value, list):
        return _block("[", map(_compact, value), "]")
    if isinstance(value, dict):
        return _block("{", (f"{_compact(key)}: {_nested(value[key])}" for key in sorted(value)), "}")
    return _compact(value)


def _block(begin: str, lines: Iterable[str], end: str) -> str:
    inner = ",\n".join(lines)
    return f"{begin}\n{inner}\n{end}" if inner else f"{begin}{end}"


def _nested(value: object) -> str:
    return _lines(value) if isinstance(value, list) else _compact(value)


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def rollouts_files(name: str, rollouts: Sequence[Rollout]) -> Evidence:
    """Return ``<name>.json`` with a row per item, and a file per trajectory, so that git stores each one once."""
    rows: list[dict[str, object]] = []
    files: Evidence = {}
    for rollout in rollouts:
        row: dict[str, object] = {"id": rollout.item.id, "task_type": rollout.item.task_type}
        row |= outcome_row(rollout.outcome)
        if rollout.trajectory is not None:
            path = f"trajectories/{text_digest(rollout.item.id)}.json"
            turns = [turn.row for turn in rollout.trajectory.turns]
            files[f"{name}/{path}"] = json_file({"id": rollout.item.id, "turns": turns})
            words = {"answer": rollout.trajectory.answer, "feedback": rollout.trajectory.feedback}
            row |= {**words, "trajectory": f"{name}/{path}"}
        rows.append(row)
    return files | {f"{name}.json": json_file(rows)}


def patch_file(
    patch: Patch | Draft,
    reports: Iterable[EditReport],
    rewrite: str | None = None,
    appendix: Sequence[str] | None = None,
    *,
    lines: bool = False,
) -> Evidence:
    """Return ``patch.json``: the selected edits in the order of their application, with what happened to each.

    Of a rewrite it holds the suggestions that it was to carry out and the new editable text; its edits are the
    stretches of lines that changed. With new reminders it holds all that are in the appendix. With ``lines`` the edits
    only say which stretches of lines changed, and applying them gives another text.
    """
    edits = [
        edit_fields(report.edit)
        | {"status": report.status.value, "detail": report.detail}
        | ({"items": list(report.edit.items)} if report.edit.items else {})
        | ({"removed": report.edit.content.removed} if getattr(report.edit.content, "removed", 0) else {})
        for report in reports
    ]
    document: dict[str, object] = {"title": patch.title, "reasoning": patch.reasoning, "edits": edits}
    suggestions = [
        proposed_fields(proposal) | ({"items": list(proposal.items)} if proposal.items else {})
        for proposal in getattr(patch, "suggestions", ())
    ]
    if suggestions:
        document["suggestions"] = suggestions
    if rewrite is not None:
        document["rewrite"] = rewrite
        items = dict.fromkeys(item for text in getattr(patch, "rewrites", ()) for item in text.items)
        document |= {"items": [*items]} if items else {}
    if appendix is not None:
        document["appendix"] = list(appendix)
    if lines:
        document["lines"] = True
    return {PATCH: json_file(document)}


def findings_file(findings: Sequence[FailurePattern], unusable: int, calls: Sequence[str] = ()) -> Evidence:
    """Return ``findings.json``: what analysts saw, how many gave no usable reply, and which later calls did not."""
    rows = [{"pattern": finding.pattern, "count": finding.count, "items": list(finding.items)} for finding in findings]
    document: dict[str, object] = {"findings": rows, "unusable_replies": unusable}
    return {FINDINGS: json_file(document | ({"unusable_calls": list(calls)} if calls else {}))}


def merged(parts: Iterable[Mapping[str, bytes]]) -> Evidence:
    return {path: content for part in parts for path, content in part.items()}
