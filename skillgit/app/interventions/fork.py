"""A run of its own that begins at a version of another, with what was rejected there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import default_run, version_in
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Gauge
from skillgit.domain.event import Rejected, RunStarted
from skillgit.domain.ids import check_run_name
from skillgit.domain.proposal import Tried
from skillgit.domain.run_state import RunState, fold
from skillgit.errors import ConflictError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.index.version_queries import score_evidence, start_evidence
from skillgit.store import history, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.event_writer import RunWriter
from skillgit.store.evidence import PLAN, read_evidence
from skillgit.store.history_reader import read_commit, read_run, runs
from skillgit.store.lock import RunLock
from skillgit.store.repo import Repo
from skillgit.store.seals import is_own, local_settings

_OUTCOMES = "selection"
"""How the files begin that hold what a version scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    run: str
    source: str  # the version that it began at, `<run>/v<N>`
    hard: float  # the hard score of that version on the selection split
    score: float  # its score there under the metric of the run's gate
    metric: str
    event: LogRow | None  # the event that started it; absent if nothing was written
    planned: bool  # whether the configuration of the source is here, so that the fork keeps it too
    default: bool = False  # whether it is the default run now


def fork(context: Context, revision: str, name: str | None = None, *, dry_run: bool = False) -> Fork:
    """Start a run at a version with its run's configuration, items and score; the name extends its own by default."""
    with open_workspace(context) as workspace:
        row = version_in(workspace, revision)
        fork_name = check_run_name(name) if name is not None else _free_name(workspace, row.run)
        with RunLock(workspace.repo, fork_name, context.clock):
            _check_free(workspace, fork_name)
            state = fold(record.event for record in read_run(workspace.repo, row.run))
            event = _event(row, state, fork_name, queries.gauge(workspace.index, row.run))
            evidence = _evidence(workspace, row)
            if attempts := tried_before(workspace.repo, row.commit, state.start.skill):
                from skillgit.engine.optimizer_memory import tried_file  # noqa: PLC0415 - loads what renders prompts

                evidence |= tried_file(attempts)
            result = Fork(
                run=fork_name,
                source=event.fork_of,
                hard=state.evaluation(row.version or 0).hard,
                score=event.gauge.score(state.evaluation(row.version or 0)),
                metric=event.gauge.metric.value,
                event=None,
                planned=PLAN[0] in evidence,
            )
            if dry_run:
                return result
            writer = RunWriter(workspace.repo, fork_name, context.clock, workspace.repo.identity())
            record = writer.append(
                event,
                None,
                evidence,
                start=row.commit,
                check=lambda event: fold([event]),
                local=_local(workspace, row.run),
            )
        workspace.index.refresh()
        new_row = queries.row_of_commit(workspace.index, record.commit)
        return replace(result, event=new_row, default=default_run(workspace) == fork_name)


def _event(row: LogRow, state: RunState, name: str, gauge: Gauge) -> RunStarted:
    start, source = state.start, str(row.address)
    evaluation = state.known_evaluation(row.version or 0)
    if evaluation is None:
        raise UsageError(
            f"nobody has measured {source} yet, so that a fork would have no score to begin with",
            hint=f"skillgit train --from {source} --run {name} measures it and begins there",
        )
    return RunStarted(
        run=name,
        skill=start.skill,
        title=f"fork {source}",
        why=f"The run begins with the text and the score of {source}, under the configuration of run {row.run}.",
        config=start.config,
        splits=start.splits,
        environment=start.environment,
        models=start.models,
        evaluation=replace(evaluation, version=None),
        gauge=gauge,
        fork_of=source,
        served=start.served,
    )


def _evidence(workspace: Workspace, row: LogRow) -> dict[str, bytes]:
    """Return the plan of the source and the outcomes behind the version's score, as far as they are here."""
    index, repo = workspace.index, workspace.repo
    plan, outcomes = start_evidence(index, row.run), score_evidence(index, row.run, row.version or 0)
    plan_files = (read_evidence(repo, plan, PLAN) or {}) if plan else {}
    outcome_files = (read_evidence(repo, outcomes) or {}) if outcomes else {}
    return plan_files | {path: content for path, content in outcome_files.items() if path.startswith(_OUTCOMES)}


def _local(workspace: Workspace, source: str) -> dict[str, object] | None:
    """Return this machine's settings for a fork of ``source``; None where that run's plan is a stranger's."""
    start = queries.row_of_version(workspace.index, source, 0)
    if start is None or not is_own(workspace.repo, start=start.commit):
        return None
    return local_settings(workspace.repo, start.commit)


def _free_name(workspace: Workspace, run: str) -> str:
    """Return the first of ``<run>-fork``, ``<run>-fork2`` … that no run has."""
    used_names = frozenset(runs(workspace.repo))
    names = (f"{run}-fork{number if number > 1 else ''}" for number in count(1))
    return check_run_name(next(name for name in names if name not in used_names))


def _check_free(workspace: Workspace, name: str) -> None:
    clashes = [tip for tip in workspace.repo.tips() if (ref := refs.parse(tip)) is not None and ref.run == name]
    if clashes:
        branch = refs.run_branch(name)
        raise ConflictError(
            f"run {name} exists already, as {refs.short(branch if branch in clashes else clashes[0])}",
            hint="skillgit fork REV NAME takes another name",
        )


MOST = 100
"""Candidates that a run takes in: more than its prompts ever tell."""


def tried_before(repo: Repo, commit: str, skill: str) -> tuple[Tried, ...]:
    """Return the 100 newest candidates, also remotes', refused on ``commit`` or a version before, oldest first."""
    near: dict[str, bool] = {}
    matching: list[tuple[Recorded, Rejected]] = []
    for oid in _candidates(repo):
        try:
            record = read_commit(repo, oid)
        except SkillgitError:
            continue  # someone else's broken candidate
        if not isinstance(record.event, Rejected) or record.event.skill != skill:
            continue
        base = record.parents[0]
        if near.setdefault(base, repo.reaches(commit, base)):
            matching.append((record, record.event))
    matching.sort(key=lambda pair: (pair[0].time, pair[0].commit))
    return tuple(_rejected_attempt(record, event) for record, event in matching[-MOST:])


def _candidates(repo: Repo) -> set[str]:
    """Return the rejected candidates that branches and attics lead to, those of other repositories included."""
    commits: set[str] = set()
    for name, tip in repo.tips().items():
        ref = refs.parse(name)
        if ref is not None and ref.kind is refs.RefKind.REJECTED:
            commits.add(tip)
        elif ref is not None and ref.kind is refs.RefKind.ATTIC:
            try:
                commits.update(entry.commit for entry in history.read_attic(repo, tip))
            except SkillgitError:
                continue  # fsck tells of a damaged attic; it is no reason not to train
    return commits


def _rejected_attempt(record: Recorded, event: Rejected) -> Tried:
    return Tried(
        run=event.run,
        step=event.step,
        base=event.base,
        commit=record.commit,
        title=event.title,
        changes=event.changes,
        score=event.verdict.score,
        bound=event.evaluation.stopped,
        current=event.verdict.current,
    )
