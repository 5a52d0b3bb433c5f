"""What each version of a run scored under each target model, as far as it is known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from skillgit.app.recorded.evaluation_notes import noted_evaluations
from skillgit.app.recorded.run_record import started
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Split
from skillgit.index import queries, rule_queries, version_queries
from skillgit.index.own_conditions import OwnConditions
from skillgit.index.rows import LogRow

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
    source: Literal["run", "note"]  # `run` if an event of the run has it, `note` if it was measured later
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


def matrix(workspace: Workspace, run: str | None, split: str, versions: Collection[int] = ()) -> Matrix:
    """Return the newest score of each version and model on ``split``; a comparable one goes before a newer other.

    With ``versions`` nothing else is read than what is known of these.
    """
    index, name, kind = workspace.index, find_run(workspace, run), Split.parse(split)
    start, gauge, conditions = started(workspace, name), queries.gauge(index, name), OwnConditions(index, name)
    own = start.models.target if start is not None else ""
    scores = version_queries.final_scores(index, name, kind.value)
    if kind is Split.SELECTION:
        scores = (*version_queries.selection_scores(index, name, versions), *scores)
    cells: dict[str, dict[str, list[MatrixCell]]] = {}
    for row in scores:
        of_version = cells.setdefault(row.commit, {}) if not versions or row.version in versions else {}
        if row.hard is not None and row.soft is not None:
            model = row.target or own
            cell = MatrixCell(
                model=model,
                score=gauge.of(row.hard, row.soft),
                hard=row.hard,
                soft=row.soft,
                n=row.n,
                scored=row.scored,
                measured=not row.inherited,
                differs=(),
                source="run",
                time=row.time,
            )
            of_version.setdefault(model, []).append(cell)
    commits = [rule_queries.commit_of_version(index, name, version) for version in versions]
    for commit in commits or version_queries.noted_events(index, name):
        for note in noted_evaluations(version_queries.note_lines(index, commit or ""), conditions):
            if commit is None or note.split != kind.value or not note.scored:
                continue
            model, hard, soft = note.target or own, min(note.hard, 1.0), min(note.soft, 1.0)
            cell = MatrixCell(
                model=model,
                score=gauge.of(hard, soft),
                hard=hard,
                soft=soft,
                n=note.n,
                scored=note.scored,
                measured=True,
                differs=tuple(aspect for aspect in note.differs if aspect != "model"),  # each model has own cells
                source="note",
                time=note.time,
            )
            cells.setdefault(commit, {}).setdefault(model, []).append(cell)
    by_row = [(queries.row_of_commit(index, commit), by_model) for commit, by_model in cells.items() if by_model]
    rows = sorted(
        (MatrixRow(row=row, cells=tuple(map(_best, by_model.values()))) for row, by_model in by_row if row is not None),
        key=lambda entry: (entry.row.version is None, entry.row.version or 0, entry.row.step),
    )
    models = {cell.model for row in rows for cell in row.cells}
    return Matrix(
        run=name,
        split=kind.value,
        metric=str(gauge.metric),
        models=tuple(sorted(models, key=lambda model: (model != own, model))),
        rows=tuple(rows),
    )


def _best(cells: Sequence[MatrixCell]) -> MatrixCell:
    """Return the cell to show: comparable before not, measured before inherited, and the newest of these."""
    best = max(cells, key=lambda cell: (not cell.differs, cell.measured, cell.time.timestamp() if cell.time else 0.0))
    return replace(best, others=len(cells) - 1)
