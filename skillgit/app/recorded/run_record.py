"""What a run recorded: its configuration, its items, its gate, and the outcomes of its versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from skillgit.app.recorded.evaluation_notes import noted_outcomes
from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.recorded.recomputed_gates import version_outcomes
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Outcome, Scored, Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.skill import DESCRIPTION
from skillgit.errors import SkillgitError
from skillgit.index import event_rows, item_queries, queries, version_queries
from skillgit.index.event_rows import CONFIG
from skillgit.index.own_conditions import OwnConditions
from skillgit.index.rows import ItemRow, LogRow
from skillgit.lazy import loaded_on_use
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_commit, read_run
from skillgit.store.repo import Repo

with loaded_on_use():  # most of what reads history does without
    from skillgit.engine import method_settings

_SPLITS, ENVIRONMENT = "splits.json", "environment.json"


def started(workspace: Workspace, run: str) -> Event | None:
    record = start_record(workspace, run)
    return record.event if record is not None and record.event.kind is EventKind.RUN_STARTED else None


def start_record(workspace: Workspace, run: str) -> Recorded | None:
    """Return the first record of ``run``; None where it is not here."""
    row = queries.row_of_version(workspace.index, run, 0)
    return read_commit(workspace.repo, row.commit) if row is not None else None


def recorded_items(workspace: Workspace, run: str, split: Split) -> dict[str, str] | None:
    """Return item to the digest of its content as ``run`` recorded them at its start; None where that is not here."""
    rows = start_document(workspace.repo, _evidence(workspace, run), _SPLITS).get(split.value)
    return {str(row.get("id")): str(row.get("digest")) for row in objects(rows)} if isinstance(rows, list) else None


def recorded_setup(workspace: Workspace, run: str) -> str:
    """Return the digest of the setup of ``run``; empty where it is not here, or the run did not record it."""
    return str(start_document(workspace.repo, _evidence(workspace, run), ENVIRONMENT).get("setup") or "")


def _evidence(workspace: Workspace, run: str) -> str:
    start = queries.row_of_version(workspace.index, run, 0)
    return item_queries.evidence_of_commit(workspace.index, start.commit) if start is not None else ""


def start_document(repo: Repo, evidence: str, name: str) -> dict[str, object]:
    """Return a file of a run's first event; empty where it is not here or cannot be read."""
    return members(evidence_file(repo, evidence, name))


def start_section(workspace: Workspace, run: str, section: str) -> dict[str, object]:
    """Return a section of the configuration that ``run`` recorded; empty where it is not known."""
    return members(start_document(workspace.repo, _evidence(workspace, run), CONFIG).get(section))


def edit_schedule(workspace: Workspace, run: str) -> Callable[[int], int] | None:
    """Return the edit budget of each step as the run's configuration has it; None where that is not known."""
    row, section = queries.run_row(workspace.index, run, {}), start_section(workspace, run, "optimizer")
    if row is None or not row.total_steps or not section:
        return None
    steps = row.total_steps
    try:
        settings = method_settings.OptimizerSettings.model_validate_json(json.dumps(section))
    except (TypeError, ValueError):  # pydantic's own errors are of the latter
        return None
    return lambda step: method_settings.edit_budget(settings, step, steps)


def least_coverage(repo: Repo, records: Sequence[Recorded]) -> float:
    """Return the share of scored items below which the run's gate is indecisive; the usual one if that is not known."""
    coverage = members(start_document(repo, records[0].evidence, CONFIG).get("evaluation")).get("min_coverage")
    return float(coverage) if isinstance(coverage, int | float) else GateRule().min_coverage


def trains_description(repo: Repo, start: Recorded) -> bool:
    """Say whether the run that ``start`` began may change the description in the frontmatter, as its files say."""
    files = members(start_document(repo, start.evidence, CONFIG).get("optimizer")).get("files")
    return isinstance(files, list) and DESCRIPTION in files


def recorded_outcomes(workspace: Workspace, row: LogRow, split: Split) -> Evaluation | None:
    """Return what the run's own target did, from events or else a note; None if that is not here, or was inherited."""
    outcomes: Mapping[str, Outcome] = event_outcomes(workspace, row, split)
    lines = () if outcomes else version_queries.note_lines(workspace.index, row.commit)
    run = OwnConditions(workspace.index, row.run) if lines else None
    for note in filter(None, map(noted_outcomes, lines)):
        if not outcomes and run is not None and note.split == split.value and note.counts_for(run):
            outcomes = note.outcomes
    return Evaluation(split=split, item_set="", outcomes=dict(outcomes), seed=0) if outcomes else None


def event_outcomes(workspace: Workspace, row: LogRow, split: Split) -> Mapping[str, Outcome]:
    """Return what events of the run say of the very text in ``row``; nothing where they speak of another text."""
    if split is Split.SELECTION and is_own(row):
        rows = item_rows(workspace, row)
        return {entry.item: _outcome(entry.hard, entry.soft, entry.failed, entry.tokens) for entry in rows}
    if split is not Split.TEST or row.version is None:
        return {}
    name = f"test-{version_label(row.version)}.json"
    for commit in version_queries.finished_commits(workspace.index, row.run):
        tree = item_queries.evidence_of_commit(workspace.index, commit)
        files = read_evidence(workspace.repo, tree, (name,)) or {}
        if name in files:
            outcomes = event_rows.outcomes({event_rows.SELECTION: files[name]})
            return {item: _outcome(hard, soft, why, tokens) for item, _, hard, soft, why, tokens in outcomes}
    return {}


def _outcome(hard: float | None, soft: float | None, failure: str, tokens: float | None) -> Outcome:
    return FailedToEvaluate(failure or "failed") if hard is None or soft is None else Scored(hard, soft, tokens=tokens)


def is_own(row: LogRow) -> bool:
    """Say whether the score of ``row`` is that of its very text: it was measured, or was taken over with the text."""
    return row.measured or row.kind in item_queries.SAME_TEXT


def item_rows(workspace: Workspace, row: LogRow) -> tuple[ItemRow, ...]:
    """Return the outcomes behind an event's score, by name; items that failed may have been measured again since."""
    rows = queries.item_rows(workspace.index, row)
    if row.version is None or not any(item_row.failed for item_row in rows):
        return rows
    try:
        again = version_outcomes(workspace.repo, read_run(workspace.repo, row.run)).of(row.version) or {}
    except SkillgitError:  # what cannot be read says nothing; fsck says why
        return rows
    return tuple(
        replace(item_row, hard=outcome.hard, soft=outcome.soft, failed="", tokens=outcome.tokens)
        if item_row.failed and isinstance(outcome := again.get(item_row.item), Scored)
        else item_row
        for item_row in rows
    )
