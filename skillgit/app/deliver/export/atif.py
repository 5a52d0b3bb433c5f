"""Recorded rollouts of an event in the Agent Trajectory Interchange Format, version 1.7 (RFC 1 of Harbor)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from skillgit import __version__
from skillgit.app.deliver.export.rollouts import recorded_rollouts, write_new_folder
from skillgit.app.recorded.evidence_json import parsed
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.trajectory import Turn
from skillgit.plugin.redaction import redact_json

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
    record = recorded_rollouts(workspace, revision)
    agent = {"name": "skillgit", "version": __version__, "model_name": record.model}
    files: dict[str, bytes] = {}
    for rollout in record.rollouts:
        if not rollout.turns:
            continue
        item, name = rollout.outcome.get("id"), f"{rollout.group}.json"
        facts = {**record.about, "rollouts": name, **{field: rollout.outcome.get(field) for field in _SCORED}}
        trajectory = {
            "schema_version": _VERSION,
            "session_id": record.event,
            "trajectory_id": f"{record.event} {rollout.group} {item}",
            "agent": agent,
            "steps": [{"step_id": number, **step} for number, step in enumerate(_steps(rollout.turns), 1)],
            "notes": _NOTES,
            "extra": {"skillgit": {"item": item, **facts}},
        }
        text = json.dumps(redact_json(trajectory), indent=2, ensure_ascii=False)
        files[rollout.path.replace("/trajectories/", "/")] = f"{text}\n".encode("utf-8", "replace")
    place = write_new_folder(workspace, target, files)
    return ExportedTrajectories(event=record.event, place=place, trajectories=len(files))


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
                {
                    "tool_call_id": f"call-{number}",
                    "function_name": call.name,
                    "arguments": arguments_of(call.arguments),
                }
                for number, call in enumerate(turn.tool_calls, 1)
            ]
    if step:
        yield step


def arguments_of(text: str) -> dict[str, object]:
    """Return the arguments of a call as an object, which formats want; what is none is its text."""
    value = parsed(text)
    with suppress(ValueError):  # a number that JSON cannot write
        if isinstance(value, dict) and json.dumps(value, allow_nan=False):
            return value
    return {"text": text}
