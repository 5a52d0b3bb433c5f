"""``skillgit report``: everything that a run came to, as one value; equal histories give equal values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.attribution.blame import blame
from skillgit.app.deliver.report import (
    DiffAllowance,
    DiffExcerpt,
    ItemMap,
    SplitProgress,
    item_map,
    progress,
)
from skillgit.app.deliver.report_events import Events, RuleStories, rule_stories, tell
from skillgit.app.history.cost import cost
from skillgit.app.history.diff import items as item_differences
from skillgit.app.history.diff.text import diff
from skillgit.app.history.log import LogRequest, log
from skillgit.app.history.settings import recorded_settings
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.event import RunFinished, RunStarted
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.index import item_queries, queries, version_queries
from skillgit.store.history_reader import read_commit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.app.attribution.blame import Blame
    from skillgit.app.history.cost import Spending
    from skillgit.app.history.diff.items import ItemDiff
    from skillgit.app.history.settings import RunSetting
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.index.rows import LogRow, RunRow

_CONTEXT = 3
"""Unchanged lines around a change; what the reader's git is set to must not change a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A run, told to someone who does not have its repository.

    Attributes:
        finish: The event that ended it; absent while it is not finished.
        progress: The seed and the best version on the selection and on the test split.
        scored: Version to how many selection items its score is a mean of.
        items: The seed and the best version item by item; absent where outcomes are not known here.
        difference: How the best version's text differs from the seed's.
        text: The lines of the best version's ``SKILL.md`` with their origins; absent where it has none.
        item_map: Which item is solved by which version; absent where outcomes are not known here.
        skipped: Steps that ended without a candidate.
        settings: The settings that it recorded; none where they are not here.
    """

    run: RunRow
    start: RunStarted
    finish: RunFinished | None
    rows: tuple[LogRow, ...]
    best: LogRow
    progress: tuple[SplitProgress, ...]
    scored: Mapping[int, int]
    items: ItemDiff | None
    difference: DiffExcerpt
    text: Blame | None
    rules: RuleStories
    item_map: ItemMap | None
    versions: Events
    rejected: Events
    slow: Events
    skipped: tuple[LogRow, ...]
    cost: Spending
    settings: tuple[RunSetting, ...]

    @property
    def absent(self) -> bool:
        """Whether a part of the evidence is not here, as in a clone."""
        return self.rules.absent or self.item_map is None or not self.settings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What a report begins with."""

    run: RunRow
    start: RunStarted
    finish: RunFinished | None
    best: LogRow
    scored: Mapping[int, int]
    settings: tuple[RunSetting, ...]


def report(context: Context, run: str | None) -> RunReport:
    """Return what ``run``, or the default run, came to.

    Raises:
        RevisionNotFoundError: There is no such run.
        HistoryError: Its history cannot be read.
    """
    with open_workspace(context) as workspace:
        frame = _frame(workspace, find_run(workspace, run))
    name = frame.run.name
    rows = log(context, LogRequest(words=(name,), reverse=True)).rows
    seed, best = f"{name}/v0", f"{name}/{version_label(frame.best.version)}"
    room = DiffAllowance()
    difference = room.take(diff(context, seed, best, lines=_CONTEXT, as_data=True).files)
    return RunReport(
        run=frame.run,
        start=frame.start,
        finish=frame.finish,
        rows=rows,
        best=frame.best,
        progress=progress(context, frame.run, frame.start.models.target),
        scored=frame.scored,
        items=_items(context, seed, best),
        difference=difference,
        text=_text(context, best),
        rules=rule_stories(context, seed, best),
        item_map=item_map(context, name),
        versions=tell(context, [row for row in rows if row.version is not None], room),
        rejected=tell(context, _of_kind(rows, EventKind.REJECTED), room),
        slow=tell(context, _of_kind(rows, EventKind.SLOW_PROPOSED), room),
        skipped=tuple(_of_kind(rows, EventKind.SKIPPED)),
        cost=cost(context, name),
        settings=frame.settings,
    )


def _frame(workspace: Workspace, name: str) -> _Frame:
    # who trains a run right now is no part of its history
    run = queries.run_row(workspace.index, name, {})
    best = queries.best_row(workspace.index, name)
    first = queries.row_of_version(workspace.index, name, 0)
    record = None if first is None else read_commit(workspace.repo, first.commit)
    if run is None or best is None or record is None or not isinstance(record.event, RunStarted):
        raise RevisionNotFoundError(f"run {name} has no beginning here", hint="skillgit fsck")
    return _Frame(
        run=run,
        start=record.event,
        finish=_finish(workspace, name),
        best=best,
        scored=_scored(workspace, name),
        settings=recorded_settings(workspace, record.evidence),
    )


def _scored(workspace: Workspace, name: str) -> dict[int, int]:
    rows = item_queries.versions(workspace.index, name)
    return {row.version: row.scored for row in rows if row.version is not None}


def _finish(workspace: Workspace, name: str) -> RunFinished | None:
    commits = version_queries.finished_commits(workspace.index, name)
    event = read_commit(workspace.repo, commits[0]).event if commits else None
    return event if isinstance(event, RunFinished) else None


def _items(context: Context, seed: str, best: str) -> ItemDiff | None:
    try:
        return item_differences.items(context, seed, best)
    except NotFoundError:
        return None


def _text(context: Context, best: str) -> Blame | None:
    try:
        return blame(context, best)
    except NotFoundError:
        return None


def _of_kind(rows: Sequence[LogRow], kind: str) -> list[LogRow]:
    return [row for row in rows if row.kind == kind]
