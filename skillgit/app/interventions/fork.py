"""A run of its own that begins at a version of another, with what was rejected there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import default_run, version_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.ids import check_run_name
from skillgit.domain.proposal import Tried
from skillgit.domain.run_state import fold
from skillgit.engine.evidence_files import tried_file
from skillgit.errors import ConflictError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.index.version_queries import score_evidence, start_evidence
from skillgit.store import history, refs
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
    with Workspace(context) as workspace:
        repo, index, row = workspace.repo, workspace.index, version_in(workspace, revision)
        source, version = str(row.address), row.version or 0
        fork_name = check_run_name(name) if name is not None else _free_name(repo, row.run)
        with RunLock(repo, fork_name, context.clock):
            clashes = [tip for tip in repo.tips() if (ref := refs.parse(tip)) is not None and ref.run == fork_name]
            if clashes:
                branch = refs.run_branch(fork_name)
                raise ConflictError(
                    f"run {fork_name} exists already, as {refs.short(branch if branch in clashes else clashes[0])}",
                    hint="skillgit fork REV NAME takes another name",
                )
            state = fold(record.event for record in read_run(repo, row.run))
            start, gauge, evaluation = state.start, queries.gauge(index, row.run), state.known_evaluation(version)
            if evaluation is None:
                raise UsageError(
                    f"{source} has no score yet, and a fork begins with one",
                    hint=f"skillgit train --from {source} --run {fork_name} measures it and begins there",
                )
            event = Event(
                kind=EventKind.RUN_STARTED,
                run=fork_name,
                skill=start.skill,
                title=f"fork {source}",
                why=f"The run begins with text and score of {source}, under the configuration of run {row.run}.",
                config=start.config,
                splits=start.splits,
                environment=start.environment,
                models=start.models,
                evaluation=replace(evaluation, version=None),
                gauge=gauge,
                fork_of=source,
                served=start.served,
            )
            # the plan of the source, and the outcomes behind the version's score, as far as they are here
            plan_tree, score_tree = start_evidence(index, row.run), score_evidence(index, row.run, version)
            evidence = (read_evidence(repo, plan_tree, PLAN) or {}) if plan_tree else {}
            outcomes = (read_evidence(repo, score_tree) or {}) if score_tree else {}
            evidence |= {path: content for path, content in outcomes.items() if path.startswith(_OUTCOMES)}
            result = Fork(
                run=fork_name,
                source=source,
                hard=state.evaluation(version).hard,
                score=gauge.score(state.evaluation(version)),
                metric=gauge.metric.value,
                event=None,
                planned=PLAN[0] in evidence,
            )
            if dry_run:
                return result
            if attempts := tried_before(repo, row.commit, start.skill):
                evidence |= tried_file(attempts)
            # settings of this machine are for a fork of what was begun on it, not for a stranger's plan
            seed = queries.row_of_version(index, row.run, 0)
            is_ours = seed is not None and is_own(repo, start=seed.commit)
            record = RunWriter(repo, fork_name, context.clock).append(
                event,
                None,
                evidence,
                start=row.commit,
                check=lambda event: fold([event]),
                local=local_settings(repo, seed.commit) if seed is not None and is_ours else None,
            )
        index.refresh()
        new_row = queries.row_of_commit(index, record.commit)
        return replace(result, event=new_row, default=default_run(workspace) == fork_name)


def _free_name(repo: Repo, run: str) -> str:
    """Return the first of ``<run>-fork``, ``<run>-fork2`` … that no run has."""
    used_names = frozenset(runs(repo))
    names = (f"{run}-fork{number if number > 1 else ''}" for number in count(1))
    return check_run_name(next(name for name in names if name not in used_names))


MOST = 100
"""Candidates that a run takes in: more than its prompts ever show."""


def tried_before(repo: Repo, commit: str, skill: str) -> tuple[Tried, ...]:
    """Return the 100 newest candidates, also remotes', refused on ``commit`` or a version before, oldest first."""
    commits: set[str] = set()
    for name, tip in repo.tips().items():
        ref = refs.parse(name)
        if ref is not None and ref.kind is refs.RefKind.REJECTED:
            commits.add(tip)
        elif ref is not None and ref.kind is refs.RefKind.ATTIC:
            with suppress(SkillgitError):  # fsck reports a damaged attic, and training goes on without it
                commits.update(history.read_attic(repo, tip).values())
    near: dict[str, bool] = {}
    matching: list[tuple[datetime, Tried]] = []
    for oid in commits:
        try:
            record = read_commit(repo, oid)
        except SkillgitError:
            continue  # someone else's broken candidate
        event, base = record.event, record.parents[0]
        if event.kind is not EventKind.REJECTED or event.skill != skill:
            continue
        if near.setdefault(base, repo.reaches(commit, base)):
            attempt = Tried(
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
            matching.append((record.time, attempt))
    matching.sort(key=lambda pair: (pair[0], pair[1].commit))
    return tuple(attempt for _, attempt in matching[-MOST:])
