"""Recorded rollouts of an event as logs of Inspect, which its viewer and its ``read_eval_log`` open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, stdev
from typing import Any, Final

from skillgit import __version__
from skillgit.app.deliver.export.atif import arguments_of
from skillgit.app.deliver.export.rollouts import (
    RecordedRollout,
    RecordedRollouts,
    recorded_rollouts,
    write_new_folder,
)
from skillgit.app.recorded.evidence_json import figure
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.ids import short_digest
from skillgit.domain.trajectory import Turn
from skillgit.plugin.redaction import redact_json

_VERSION: Final = 2  # of Inspect's format
_SCORES: Final = ("hard", "soft")
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLogs:
    event: str  # as `<run>/v7`
    place: str
    logs: int
    samples: int


def export_inspect(workspace: Workspace, revision: str, target: str) -> ExportedLogs:
    """Write what the target did in the event ``revision`` to a new folder: a log for each set of rollouts."""
    record = recorded_rollouts(workspace, revision)
    files = {}
    for group, rollouts in groupby(record.rollouts, lambda rollout: rollout.group):
        log = _log(record, group, tuple(rollouts))
        text = json.dumps(redact_json(log), indent=2, ensure_ascii=False)
        # Inspect lists no JSON whose name does not begin so.
        name = f"{record.time:%Y-%m-%dT%H-%M-%S+00-00}_{group}_{log['eval']['eval_id']}.json"
        files[name] = f"{text}\n".encode("utf-8", "replace")
    place = write_new_folder(workspace, target, files)
    return ExportedLogs(event=record.event, place=place, logs=len(files), samples=len(record.rollouts))


def _log(record: RecordedRollouts, group: str, rollouts: Sequence[RecordedRollout]) -> dict[str, Any]:
    ids, time = [str(rollout.outcome.get("id")) for rollout in rollouts], record.time.isoformat()
    samples = [_sample(record, rollout, ids[:number].count(ids[number]) + 1) for number, rollout in enumerate(rollouts)]
    successes = [rollout for rollout in rollouts if "failed" not in rollout.outcome]
    identity = short_digest([record.about["commit"], group])
    return {
        "version": _VERSION,
        "status": "success",
        "eval": {
            "eval_id": identity,
            "run_id": identity,
            "created": time,
            "task": f"{record.event}/{group}",
            "task_id": identity,
            "dataset": {"name": group, "samples": len(set(ids)), "sample_ids": list(dict.fromkeys(ids))},
            "model": record.model or "unknown",
            "config": {"epochs": max((sample["epoch"] for sample in samples), default=1)},
            "packages": {"skillgit": __version__},
            "metadata": {"skillgit": dict(record.about)},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},  # without one, the head alone cannot be read
        "results": {
            "total_samples": len(rollouts),
            "completed_samples": len(successes),
            "scores": [_summary(name, successes, len(rollouts)) for name in _SCORES],
        },
        "stats": {"started_at": time, "completed_at": time},
        "samples": samples,
    }


def _summary(name: str, successes: Sequence[RecordedRollout], total: int) -> dict[str, Any]:
    values = [value for rollout in successes if (value := figure(rollout.outcome.get(name))) is not None]
    metrics = {"mean": fmean(values)} if values else {}
    if len(values) > 1:
        metrics["stderr"] = stdev(values) / len(values) ** 0.5
    return {
        "name": name,
        "scorer": name,
        "scored_samples": len(values),
        "unscored_samples": total - len(values),
        "metrics": {metric: {"name": metric, "value": value} for metric, value in metrics.items()},
    }


def _sample(record: RecordedRollouts, rollout: RecordedRollout, epoch: int) -> dict[str, Any]:
    outcome, answer = rollout.outcome, str(rollout.outcome.get("answer") or "")
    messages, feedback = _messages(rollout.turns), str(outcome.get("feedback") or "")
    replies = [message for message in messages if message["role"] == "assistant"]
    choices = [{"message": replies[-1], "stop_reason": "stop"}] if replies else []
    sample = {
        "id": str(outcome.get("id")),
        "epoch": epoch,
        "input": next((message["content"] for message in messages if message["role"] == "user"), ""),
        "target": "",
        "messages": messages,
        "output": {"model": record.model, "choices": choices},
        "metadata": {"task_type": outcome.get("task_type")},
    }
    if "failed" in outcome:
        reason = str(outcome["failed"])
        return {**sample, "error": {"message": reason, "traceback": "", "traceback_ansi": ""}}
    scores = {name: figure(outcome.get(name)) for name in _SCORES}
    grounds = {"answer": answer, "explanation": feedback}
    marks = {name: {"value": value, **grounds} for name, value in scores.items() if value is not None}
    return {**sample, "scores": marks}


def _messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return a conversation; what a tool brought refers to the call before it that has no result yet, in order."""
    messages, waiting = list[dict[str, Any]](), list[Mapping[str, Any]]()
    for turn in turns:
        text = "\n".join([turn.content, *(picture.text for picture in turn.pictures)])
        message: dict[str, Any] = {"role": turn.role if turn.role in _ROLES else "user", "content": text}
        if turn.role == "tool" and waiting:
            call = waiting.pop(0)
            message |= {"tool_call_id": call["id"], "function": call["function"]}
        elif turn.role == "assistant" and turn.tool_calls:
            waiting = [
                {"id": f"call-{len(messages)}-{number}", "function": use.name, "arguments": arguments_of(use.arguments)}
                for number, use in enumerate(turn.tool_calls, 1)
            ]
            message["tool_calls"] = list(waiting)
        messages.append(message)
    return messages
