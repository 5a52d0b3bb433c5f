"""``skillgit matrix``: what each version of a run scored under each target model, as far as it is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from skillgit.app.recorded.evaluation_notes import KnownEvaluation, noted_evaluations
from skillgit.app.recorded.run_record import started
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Gauge, Scored, Split
from skillgit.domain.event import RunStarted
from skillgit.index import queries, rule_queries, version_queries
from skillgit.index.own_conditions import OwnConditions
from skillgit.index.rows import LogRow
from skillgit.index.version_queries import ScoreRow

Difference = Literal["server", "environment", "judge", "items", "configuration"]
"""What keeps a number from being compared with those of the run: what was another one there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    model: str  # as `backend/model`
    score: float
    hard: float
    soft: float
    n: int
    scored: int
    measured: bool  # whether this very text was measured; otherwise the number is that of the text it inherits from
    differs: tuple[Difference, ...]  # what keeps the number from being compared with those of the run
    source: Literal["run", "note"]  # `run` if an event of the run tells it, `note` if it was measured later
    time: datetime | None  # when it was measured; absent if that is not known
    others: int = 0  # how many further evaluations of the same version under the same model there are


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    row: LogRow
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    run: str
    split: str
    metric: str
    models: tuple[str, ...]
    rows: tuple[MatrixRow, ...]  # versions that have a score, oldest first, then candidates that were measured later


def matrix(context: Context, run: str | None, split: str, versions: Collection[int] = ()) -> Matrix:
    """Return the newest score of each version and model on ``split``; a comparable one goes before a newer other.

    With ``versions`` nothing else is read than what is known of these.
    """
    with open_workspace(context) as workspace:
        name, split_kind = find_run(workspace, run), Split.parse(split)
        start = started(workspace, name)
        gauge = queries.gauge(workspace.index, name)
        version_list = version_queries.final_scores(workspace.index, name, split_kind.value)
        conditions = OwnConditions(workspace.index, name)
        if split_kind is Split.SELECTION:
            version_list = (*version_queries.selection_scores(workspace.index, name, versions), *version_list)
        version_list = tuple(row for row in version_list if not versions or row.version in versions)
        cells: dict[str, dict[str, list[MatrixCell]]] = {row.commit: {} for row in version_list}
        for row in version_list:
            cell = _of_event(row, gauge, start)
            if cell is not None:
                cells[row.commit].setdefault(cell.model, []).append(cell)
        for commit in _noted(workspace, name, versions):
            for note in noted_evaluations(version_queries.note_lines(workspace.index, commit), conditions):
                if note.split == split_kind.value and note.scored:
                    late = _of_note(note, gauge, start)
                    cells.setdefault(commit, {}).setdefault(late.model, []).append(late)
        rows = tuple(_rows(workspace, cells))
        own = start.models.target if start is not None else ""
        models = {cell.model for row in rows for cell in row.cells}
        model_names = (*([own] if own in models else []), *sorted(models - {own}))
        return Matrix(run=name, split=split_kind.value, metric=str(gauge.metric), models=model_names, rows=rows)


def _noted(workspace: Workspace, run: str, versions: Collection[int]) -> tuple[str, ...]:
    if not versions:
        return version_queries.noted_events(workspace.index, run)
    commits = {rule_queries.commit_of_version(workspace.index, run, version) for version in versions}
    return tuple(commit for commit in commits if commit is not None)


def _of_event(row: ScoreRow, gauge: Gauge, start: RunStarted | None) -> MatrixCell | None:
    if row.hard is None or row.soft is None:
        return None
    return MatrixCell(
        model=row.target or (start.models.target if start is not None else ""),
        score=Scored(row.hard, row.soft).value(gauge.metric, gauge.soft_weight),
        hard=row.hard,
        soft=row.soft,
        n=row.n,
        scored=row.scored,
        measured=not row.inherited,
        differs=(),
        source="run",
        time=row.time,
    )


def _of_note(evaluation: KnownEvaluation, gauge: Gauge, start: RunStarted | None) -> MatrixCell:
    hard, soft = min(evaluation.hard, 1.0), min(evaluation.soft, 1.0)
    return MatrixCell(
        model=evaluation.target or (start.models.target if start is not None else ""),
        score=Scored(hard, soft).value(gauge.metric, gauge.soft_weight),
        hard=hard,
        soft=soft,
        n=evaluation.n,
        scored=evaluation.scored,
        measured=True,
        differs=tuple(aspect for aspect in evaluation.differs if aspect != "model"),  # each model has its own cells
        source="note",
        time=evaluation.time,
    )


def _rows(workspace: Workspace, cells_of: dict[str, dict[str, list[MatrixCell]]]) -> Iterator[MatrixRow]:
    rows = {commit: queries.row_of_commit(workspace.index, commit) for commit, cells in cells_of.items() if cells}
    version_rows = [row for row in rows.values() if row is not None]
    for row in sorted(version_rows, key=lambda row: (row.version is None, row.version or 0, row.step)):
        yield MatrixRow(row=row, cells=tuple(_newest(cells) for cells in cells_of[row.commit].values()))


def _newest(cells: Iterable[MatrixCell]) -> MatrixCell:
    """Return the cell to show: comparable before not, measured before inherited, and the newest of these."""
    every = list(cells)
    best = max(
        every,
        key=lambda cell: (not cell.differs, cell.measured, cell.time.timestamp() if cell.time is not None else 0.0),
    )
    return replace(best, others=len(every) - 1)
