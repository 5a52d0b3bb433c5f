"""A run in short: what the report begins with, and what can be read while someone waits for a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skillgit.app.history.diff import items as item_differences
from skillgit.app.history.diff.items import ItemDiff
from skillgit.app.history.matrix import matrix
from skillgit.app.recorded.score_summary import Interval
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Workspace, or_none
from skillgit.domain.address import version_label
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.statistics import too_few_items, wilson_interval
from skillgit.errors import RevisionNotFoundError
from skillgit.index import event_pages, queries, version_queries
from skillgit.index.event_pages import CurveRow
from skillgit.index.rows import LogRow, RunRow
from skillgit.store.history_reader import read_commit

_GATED: Final = frozenset({EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_PROPOSED})
_LOOKED_AT: Final = 40  # events that are looked at for a gate; interventions may have gates of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionStanding:
    version: int
    n: int
    scored: int
    score: float
    hard: float
    interval: Interval  # the 95 % Wilson interval of the mean hard score
    soft: float
    noted: bool  # whether it was measured after the run, by ``skillgit eval`` or another command that leaves notes


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitProgress:
    split: str
    seed: VersionStanding | None  # absent where it has no score
    best: VersionStanding | None  # absent where it has no score

    @property
    def gain(self) -> float | None:
        """How much the best version scores above the seed; absent where one of them has no score."""
        return None if self.seed is None or self.best is None else self.best.score - self.seed.score

    @property
    def too_few(self) -> str:
        """That no gain on so few items is more than chance; empty where one is, and without a gain."""
        if self.seed is None or self.best is None or self.seed.version == self.best.version:
            return ""
        return too_few_items(min(self.seed.scored, self.best.scored))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    run: RunRow
    start: Event
    finish: Event | None  # the event that ended it; absent while it is not finished
    rows: tuple[LogRow, ...]  # its events, oldest first; of many the newest ones, where no more were asked for
    best: LogRow
    progress: tuple[SplitProgress, ...]  # the seed and the best version on the selection and on the test split
    course: tuple[CurveRow, ...]  # how it went from its beginning to its end; of many events some
    events: int  # how many it has
    items: ItemDiff | None  # the seed and the best version item by item; absent where outcomes are not known here
    skip_count: int  # steps that ended without a candidate
    verdict: Verdict | None  # what a gate of its steps decided; absent if no candidate came as far as one

    @property
    def absent(self) -> bool:
        """Whether a part of the evidence is not here, as in a clone."""
        return self.items is None


def summary(
    workspace: Workspace, run: str | None, *, most: int | None = None, live: Mapping[str, int] | None = None
) -> RunSummary:
    """Return a run in short, with the ``most`` newest of its events; ``live`` are the runs that are trained now."""
    name = find_run(workspace, run)
    row = queries.run_row(workspace.index, name, workspace.live() if live is None else live)
    best = queries.best_row(workspace.index, name)
    first = queries.row_of_version(workspace.index, name, 0)
    start = None if first is None else read_commit(workspace.repo, first.commit).event
    if row is None or best is None or start is None:
        raise RevisionNotFoundError(f"run {name} has no beginning here", hint="skillgit fsck")
    rows = queries.log_rows(workspace.index, name, limit=most)
    last = version_queries.finished_commits(workspace.index, name)[:1]
    finish = next((read_commit(workspace.repo, commit).event for commit in last), None)
    gate_rows = queries.log_rows(workspace.index, name, kinds=_GATED, limit=_LOOKED_AT)
    own = (read_commit(workspace.repo, entry.commit).event for entry in gate_rows if entry.origin in {"step", "meta"})
    verdict = next(filter(None, (event.verdict for event in own)), None)
    skip_count = queries.events_of(workspace.index, name, EventKind.SKIPPED)
    return RunSummary(
        run=row,
        start=start,
        finish=finish,
        rows=rows[::-1],
        best=best,
        progress=progress(workspace, row, start.models.target),
        course=event_pages.curve_rows(workspace.index, name, event_pages.STEPS),
        events=queries.events_of(workspace.index, name),
        items=or_none(lambda: item_differences.items(workspace, f"{name}/v0", f"{name}/{version_label(best.version)}")),
        skip_count=skip_count,
        verdict=verdict,
    )


def progress(workspace: Workspace, run: RunRow, target: str) -> tuple[SplitProgress, ...]:
    """Return how far ``run`` came on the selection split and on the test split, under its own ``target``."""
    splits = []
    for split in ("selection", "test"):
        by_version = {
            row.row.version: VersionStanding(
                version=row.row.version,
                n=cell.n,
                scored=cell.scored,
                score=cell.score,
                hard=cell.hard,
                interval=wilson_interval(cell.hard, cell.scored) if cell.scored else (0.0, 1.0),
                soft=cell.soft,
                noted=cell.source == "note",
            )
            for row in matrix(workspace, run.name, split, {0, run.best_version}).rows
            for cell in row.cells  # that of the run's own target on its own items, if there is one
            if row.row.version is not None and cell.model == target and not cell.differs
        }
        splits.append(SplitProgress(split=split, seed=by_version.get(0), best=by_version.get(run.best_version)))
    return tuple(splits)
