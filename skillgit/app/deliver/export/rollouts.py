"""What the target did in an event, as its evidence has it, for formats that other tools read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.recorded.run_record import started
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import BRING, Workspace
from skillgit.domain.trajectory import Turn
from skillgit.errors import ConflictError, NotFoundError
from skillgit.index import queries
from skillgit.plugin.seed_folder import write_files
from skillgit.store.evidence import evidence_names


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRollout:
    group: str  # why the item was rolled out: `selection`, `test` or `rollout`, for training
    path: str  # of the conversation in the evidence; empty where there is none
    outcome: Mapping[str, object]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRollouts:
    event: str  # as `<run>/v7`
    time: datetime
    model: str  # `backend/model` of the target; empty where it is not recorded
    about: Mapping[str, object]  # run, event, commit and skill
    rollouts: tuple[RecordedRollout, ...]


def recorded_rollouts(workspace: Workspace, revision: str) -> RecordedRollouts:
    row, repo = event_in(workspace, revision), workspace.repo
    evidence = queries.measured_evidence(workspace.index, row)
    start, event = started(workspace, row.run), str(row.address)
    rollouts = []
    for name in sorted((evidence_names(repo, evidence) if evidence else None) or ()):
        group = name.removesuffix(".json")
        for outcome in objects(evidence_file(repo, evidence, name)) if group != name else ():
            path = str(outcome.get("trajectory") or "")
            path = path if path.startswith(f"{group}/") else ""
            conversation = members(evidence_file(repo, evidence, path)) if path else {}
            turns = tuple(Turn.read(turn) for turn in objects(conversation.get("turns")))
            if turns or "failed" in outcome:
                rollouts.append(RecordedRollout(group=group, path=path, outcome=outcome, turns=turns))
    if not any(rollout.turns for rollout in rollouts):
        raise NotFoundError(f"no rollouts of {event} are recorded here", hint=BRING)
    return RecordedRollouts(
        event=event,
        time=row.time,
        model=start.models.target if start else "",
        about={"run": row.run, "event": event, "commit": row.commit, "skill": workspace.index.skill_path(row.run)},
        rollouts=tuple(rollouts),
    )


def write_new_folder(workspace: Workspace, target: str, files: Mapping[str, bytes]) -> str:
    """Write ``files`` to a new folder and return where it is."""
    folder = refuse_way_out(typed_path(workspace.context.directory, target))
    if folder.exists():
        raise ConflictError(f"{folder} exists", hint="name a new folder")
    put(folder, lambda beside: write_files(beside, files))
    return str(folder)
