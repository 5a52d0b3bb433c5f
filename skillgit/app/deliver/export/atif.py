"""Recorded rollouts of an event in the Agent Trajectory Interchange Format, version 1.7 (RFC 1 of Harbor)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from skillgit import __version__
from skillgit.app.recorded.evidence_json import evidence_file, members, objects, parsed
from skillgit.app.recorded.run_record import started
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import BRING, Workspace
from skillgit.domain.trajectory import Turn
from skillgit.errors import ConflictError, NotFoundError
from skillgit.index import queries
from skillgit.plugin.redaction import redact_json
from skillgit.plugin.seed_folder import write_files
from skillgit.store.evidence import evidence_names

_VERSION: Final = "ATIF-v1.7"
_NOTES: Final = "The system prompt, which holds the skill, is not recorded; extra.skillgit names the skill's version."
_SCORED: Final = ("task_type", "hard", "soft", "answer", "feedback")
_SOURCES: Final = {"assistant": "agent", "user": "user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTrajectories:
    event: str  # as `<run>/v7`
    place: str
    trajectories: int


def export_atif(workspace: Workspace, revision: str, target: str) -> ExportedTrajectories:
    """Write what the target did in the event ``revision`` to a new folder, a file for each rollout."""
    row, repo = event_in(workspace, revision), workspace.repo
    evidence = queries.measured_evidence(workspace.index, row)
    start, event = started(workspace, row.run), str(row.address)
    agent = {"name": "skillgit", "version": __version__, "model_name": start.models.target if start else ""}
    about = {"run": row.run, "event": event, "commit": row.commit, "skill": workspace.index.skill_path(row.run)}
    files: dict[str, bytes] = {}
    for name in sorted((evidence_names(repo, evidence) if evidence else None) or ()):
        for rollout in objects(evidence_file(repo, evidence, name)) if name.endswith(".json") else ():
            path = str(rollout.get("trajectory") or "")
            conversation = members(evidence_file(repo, evidence, path))
            turns = [Turn.read(turn) for turn in objects(conversation.get("turns"))]
            if turns and path.startswith(f"{name.removesuffix('.json')}/"):
                facts = {**about, "rollouts": name, **{field: rollout.get(field) for field in _SCORED}}
                trajectory = {
                    "schema_version": _VERSION,
                    "session_id": event,
                    "trajectory_id": f"{event} {name.removesuffix('.json')} {rollout.get('id')}",
                    "agent": agent,
                    "steps": [{"step_id": number, **step} for number, step in enumerate(_steps(turns), 1)],
                    "notes": _NOTES,
                    "extra": {"skillgit": {"item": rollout.get("id"), **facts}},
                }
                text = json.dumps(redact_json(trajectory), indent=2, ensure_ascii=False)
                files[path.replace("/trajectories/", "/")] = f"{text}\n".encode("utf-8", "replace")
    if not files:
        raise NotFoundError(f"no rollouts of {event} are recorded here", hint=BRING)
    folder = refuse_way_out(typed_path(workspace.context.directory, target))
    if folder.exists():
        raise ConflictError(f"{folder} exists", hint="name a new folder")
    put(folder, lambda beside: write_files(beside, files))
    return ExportedTrajectories(event=event, place=str(folder), trajectories=len(files))


def _steps(turns: Sequence[Turn]) -> Iterator[dict[str, Any]]:
    """Yield a conversation step by step; what tools brought belongs to the step that called them, in order."""
    step: dict[str, Any] = {}
    for turn in turns:
        text = "\n".join([turn.content, *(picture.text for picture in turn.pictures)])
        if turn.role == "tool" and step:
            results = step.setdefault("observation", {"results": []})["results"]
            calls = step.get("tool_calls", [])
            own = {"source_call_id": calls[len(results)]["tool_call_id"]} if len(results) < len(calls) else {}
            results.append({**own, "content": text})
            continue
        if step:
            yield step
        step = {"source": _SOURCES.get(turn.role, "system"), "message": text}
        if turn.tool_calls and turn.role == "assistant":
            step["tool_calls"] = [
                {"tool_call_id": f"call-{number}", "function_name": call.name, "arguments": _arguments(call.arguments)}
                for number, call in enumerate(turn.tool_calls, 1)
            ]
    if step:
        yield step


def _arguments(text: str) -> dict[str, object]:
    """Return the arguments of a call as an object, which the format wants; what is none is its text."""
    value = parsed(text)
    with suppress(ValueError):  # a number that JSON cannot write
        if isinstance(value, dict) and json.dumps(value, allow_nan=False):
            return value
    return {"text": text}
