"""``skillgit replay``: a run made again from its commits and its evidence alone, and held against what is recorded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.recorded.recomputed_gates import Recomputed, recompute_gates
from skillgit.app.recorded.run_record import edit_schedule, least_coverage
from skillgit.app.upkeep import run_checks
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.event import Accepted, Rejected, event_address
from skillgit.index import index_check
from skillgit.store import history_reader
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.workspace.context import Context
    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

INDEX = "the index says something else than one that is built from these commits; skillgit reindex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    commit: str
    kind: str
    label: str  # what it is called, as `v7` or `r17`
    title: str
    gate: bool
    patch: bool  # whether its patch was applied to its base again
    differing: tuple[str, ...]
    lacking: tuple[str, ...]  # what could not be made again, and for want of what


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    run: str
    events: tuple[Replayed, ...]
    differing: tuple[str, ...]
    index: bool  # whether the index says what one that is built anew says
    history: str  # digest of all commits in their order; equal for two copies of the run exactly if these are equal

    @property
    def same(self) -> bool:
        """Whether everything came out as it is recorded."""
        return self.index and not self.differing and not any(event.differing for event in self.events)


def replay(context: Context, run: str | None) -> Replay:
    """Make a run again, offline, and compare.

    Everything is folded again, every edit budget and tree is computed again, and with the evidence that is here every
    mean, every gate decision and every patch.
    """
    with open_workspace(context) as workspace:
        repo, name = workspace.repo, find_run(workspace, run)
        records = history_reader.read_run(repo, name)
        problems = run_checks.check_run(repo, name, budget=edit_schedule(workspace, name))
        gates = {gate.commit: gate for gate in recompute_gates(repo, records, least_coverage(repo, records))}
        commits = {record.commit for record in records}
        sentences: dict[str, list[str]] = {}
        for problem in problems:
            sentences.setdefault(problem.commit if problem.commit in commits else "", []).append(problem.sentence)
        return Replay(
            run=name,
            events=tuple(
                _replayed(
                    repo, recorded_event, gates.get(recorded_event.commit), sentences.get(recorded_event.commit, [])
                )
                for recorded_event in records
            ),
            differing=tuple(sentences.get("", ())),
            index=name not in index_check.differing_runs(workspace.index),
            history=history_digest(records),
        )


def history_digest(records: Sequence[Recorded]) -> str:
    """Return the SHA-256 of the ids of all commits of a run, a line each, in the order of its events."""
    return hashlib.sha256("".join(f"{record.commit}\n" for record in records).encode()).hexdigest()


def _replayed(repo: Repo, record: Recorded, gate: Recomputed | None, sentences: Sequence[str]) -> Replayed:
    event = record.event
    proposes = isinstance(event, Accepted | Rejected)
    has_patch = proposes and bool(read_evidence(repo, record.evidence, ("patch.json",)))
    lacking = [f"gate, without {gate.lacking}"] if gate is not None and gate.lacking else []
    if proposes and not has_patch:
        lacking.append("patch, without patch.json")
    differing = dict.fromkeys([*sentences, *(gate.differing if gate is not None else ())])
    return Replayed(
        commit=record.commit,
        kind=event.kind,
        label=event_address(event).label,
        title=event.title,
        gate=gate is not None and not gate.lacking,
        patch=has_patch,
        differing=tuple(differing),
        lacking=tuple(lacking),
    )
