"""The state of the repository and of its default run, and what an unfinished event has cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from skillgit.app.recorded.score_summary import detectable_gain
from skillgit.app.recorded.stagnation import Diagnosis, of_run
from skillgit.app.workspace.revision import default_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.ledger import Ledger
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.event import (
    Event,
    event_scope,
    finish_scope,
    intervention_scope,
    measure_scope,
    meta_scope,
    slow_scope,
    start_scope,
    step_scope,
)
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.placebo import Placebo
from skillgit.domain.proposal import Origin
from skillgit.domain.served_model import ServedModel
from skillgit.domain.statistics import LEVEL
from skillgit.errors import HistoryError
from skillgit.index import queries
from skillgit.index.rows import LogRow, ProgressRow, RunRow
from skillgit.store import refs
from skillgit.store.exchange.sending import Unpushed, unpushed
from skillgit.store.history_reader import read_commit
from skillgit.store.promotion import last_change
from skillgit.store.trunk import trunk


def spent_on_unfinished(workspace: Workspace) -> tuple[Unfinished, ...] | None:
    """Return what every run has spent on unrecorded events; None without a ledger, and in the past."""
    return unfinished(workspace, queries.run_names(workspace.index))


_LOOKED_BACK = 500
"""Commits of the trunk that are looked through for a promotion: few enough not to be waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillState:
    """Where a skill is, by the run with its newest event."""

    skill: str  # its folder
    runs: int
    run: str
    best_version: int
    best_score: float
    first_score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    repository: Path  # the work tree, or the repository itself if it has none
    run: RunRow | None  # the default run; absent if there is no run
    head: LogRow | None
    best: LogRow | None
    runs: int
    checked_out: str  # what the work tree holds: a branch, `<run>/v<N>` or a short commit id; empty without commits
    live: tuple[RunRow, ...]  # the runs that are being trained on this machine now
    broken: tuple[str, ...] = ()  # names of the runs whose history cannot be read; nothing else here speaks of them
    index_fresh: bool  # whether the index on disk is up to date; otherwise a stand-in in memory answered
    promoted: str = ""  # the version that was promoted to the trunk; empty without one, and in the past
    skills: tuple[SkillState, ...] = ()  # the skills that runs train
    trunk: str = ""  # the branch that promotions go to; empty in the past
    served: tuple[ServedModel, ...] = ()  # who answers the default run at which servers, as far as that is recorded
    placebo: Placebo | None = None  # what the run's gate made of candidates that change nothing; None without any
    diagnosis: Diagnosis | None = None  # why the default run gets nowhere; None if it does, or is finished
    unfinished: tuple[Unfinished, ...] | None = None  # spent on events not recorded yet; None if unknown
    unpushed: tuple[Unpushed, ...] = ()  # runs with work the usual remote lacks; empty without one, and in the past
    detectable: float | None = None  # see :func:`detectable_gain`, at an alpha of 0.05; None if unmeasured too


def status(workspace: Workspace) -> Status:
    index, repo, is_past = workspace.index, workspace.repo, workspace.past
    runs = queries.run_rows(index, workspace.live())
    if workspace.skill:
        runs = tuple(run for run in runs if run.skill == workspace.skill)
    name = default_run(workspace)
    run = next((run for run in runs if run.name == name), None)
    change = None if run is None or is_past else last_change(repo, run.skill, _LOOKED_BACK)

    def newest(kind: EventKind) -> Event | None:
        rows = queries.log_rows(index, name, kinds=frozenset({kind}), limit=1) if name else ()
        return read_commit(repo, rows[0].commit).event if rows else None

    end, start = newest(EventKind.RUN_FINISHED), newest(EventKind.RUN_STARTED)
    detectable = None
    if start is not None and start.summary is not None:
        gauge = start.gauge
        rule = GateRule(metric=gauge.metric, soft_weight=gauge.soft_weight, alpha=LEVEL)
        detectable = detectable_gain(start.summary, rule)
    branch, commit = repo.head()
    checked_out = queries.row_of_commit(index, commit) if commit and not branch else None
    by_skill: dict[str, list[RunRow]] = {}
    for row in runs:
        by_skill.setdefault(row.skill, []).append(row)
    return Status(
        repository=repo.workdir or repo.common_dir,
        run=run,
        head=queries.head_row(index, name) if name else None,
        best=queries.best_row(index, name) if name else None,
        runs=len(runs),
        skills=tuple(
            SkillState(
                skill=skill,
                runs=len(own),
                run=own[0].name,
                best_version=own[0].best_version,
                best_score=own[0].best_score,
                first_score=own[0].first_score,
            )
            for skill, own in sorted(by_skill.items())
        ),
        checked_out=branch or (str(checked_out.address) if checked_out is not None else commit[:12]),
        live=tuple(run for run in runs if run.running_pid is not None),
        broken=tuple(sorted(index.broken)),
        index_fresh=index.on_disk,
        promoted=change.version if change is not None else "",
        trunk="" if is_past else refs.short(trunk(repo)),
        served=() if start is None else start.served,
        placebo=None if end is None else end.placebo,
        diagnosis=of_run(workspace, name) if name else None,
        unfinished=unfinished(workspace, [name]) if name else None,
        unpushed=() if is_past else unpushed(repo),
        detectable=detectable,
    )


LEDGER = "ledger.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    run: str
    what: str  # what the event is, as `step 4`
    cost: Cost  # what the ledger holds for it; its seconds are those of the calls, added up
    batch_calls: int = 0  # calls in batches under way, whose answers are not here yet
    failed_calls: int = 0  # calls of the cost that brought no answer, so that they are made again

    @property
    def fate(self) -> str:
        """Whether a resume makes the calls again, in words."""
        if not self.failed_calls:
            return "kept, a resume does not buy them again"
        if self.failed_calls >= self.cost.calls:
            return "none was answered, and a resume makes them again"
        return f"{self.failed_calls} not answered and made again on a resume, the others kept"


def unfinished(workspace: Workspace, runs: Iterable[str]) -> tuple[Unfinished, ...] | None:
    """Return what ``runs`` have spent on events in progress; None where there is no ledger, and in the past."""
    names = tuple(runs)

    def read() -> tuple[Unfinished, ...] | None:
        try:
            path = workspace.repo.private_dir / LEDGER
            if not path.is_file():
                return None
            with Ledger.read(path) as ledger:
                progress = ((run, queries.progress(workspace.index, run)) for run in names)
                return tuple(entry for run, state in progress for entry in in_the_making(ledger, run, state))
        except (HistoryError, OSError):  # it cannot be read, a newer skillgit wrote it, or something is in its way
            return None

    return None if workspace.past else workspace.once(("unfinished", names), read)


def in_the_making(ledger: Ledger, run: str, progress: ProgressRow) -> tuple[Unfinished, ...]:
    """Return what the ledger holds for the events of ``run`` that are not recorded."""
    batches = ledger.batches_of(run)
    entries = (
        Unfinished(
            run=run,
            what=event,
            cost=replace(cost := ledger.spent(scope), seconds=round(cost.seconds, 1)),
            failed_calls=sum(attempt.charge.cost.calls for attempt in ledger.failures_of(scope) if not attempt.final),
            batch_calls=sum(len(batch.keys) for batch in batches if batch.scope == scope),
        )
        for scope, event in open_scopes(run, progress)
    )
    return tuple(entry for entry in entries if entry.cost.calls or entry.batch_calls)


def lacking_calls(ledger: Ledger, events: Iterable[Event]) -> int:
    """Return how many calls that ``events`` paid for ``ledger`` lacks: who uses their answers has to buy them again."""
    paid: dict[str, int] = {}
    for event in events:
        scope = event_scope(event)
        paid[scope] = paid.get(scope, 0) + event.cost.calls
    return sum(max(0, calls - ledger.spent(scope).calls) for scope, calls in paid.items() if calls)


def open_scopes(run: str, progress: ProgressRow) -> Iterator[tuple[str, str]]:
    """Yield each event that may be in progress, by scope, with its name; rollouts run ahead, by up to one step."""
    if progress.step is None:
        yield start_scope(run), "baseline"
        return
    if not progress.finished:
        for step in (progress.step + 1, progress.step + 2):
            yield step_scope(run, step), f"step {step}"
        if progress.slow_epoch < progress.epoch:
            yield slow_scope(run, progress.epoch), f"slow update of epoch {progress.epoch}"
        if progress.meta_epoch < progress.epoch:
            yield meta_scope(run, progress.epoch), f"reflection on epoch {progress.epoch}"
        if progress.measured != progress.version:
            yield measure_scope(run, progress.version), f"measurement of {version_label(progress.version)}"
        yield finish_scope(run), "final evaluation"
    for origin in Origin:
        if origin is Origin.RESTORE:
            yield intervention_scope(run, origin, progress.version + 1), origin.value
        elif origin.intervenes:
            yield intervention_scope(run, origin, progress.interventions + 1), origin.value
