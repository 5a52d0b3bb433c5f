"""Who solved what: the versions and candidates of a run, and the outcome of every item under each of them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.absent_evidence import IF_CLONED, Absence
from skillgit.app.noted_outcomes import noted_outcomes
from skillgit.app.run_start import AsMeasured
from skillgit.domain.evaluation import Scored
from skillgit.errors import NotFoundError
from skillgit.index import item_queries, queries
from skillgit.store.dropping import dropped_trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.workspace import Workspace
    from skillgit.domain.evaluation import Gauge
    from skillgit.index.item_queries import MeasuredRow

_OID_LENGTH = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One item under one version or candidate.

    Attributes:
        hard: The strict score; absent if the item failed to evaluate.
        soft: The score with partial credit; absent if the item failed to evaluate.
        value: The score under the run's metric; absent if the item failed to evaluate.
        failed: Why it failed to evaluate; empty if it has a score.
        measured: Whether this very text was measured; otherwise the outcome is that of the text it inherits from.
        noted: Whether it was measured after the run's own evaluation, so that a note tells it.
        solved: Whether the item is solved; None if this text has no score on it.
    """

    hard: float | None
    soft: float | None
    value: float | None
    failed: str = ""
    measured: bool = True
    noted: bool = False
    solved: bool | None = field(init=False)

    def __post_init__(self) -> None:
        solved = None if self.hard is None or not self.measured else self.hard >= 1.0
        object.__setattr__(self, "solved", solved)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItems:
    """A run's items under its versions and candidates.

    Attributes:
        run: The run's name.
        gauge: How it turns an outcome into one number.
        columns: The versions and, where asked for, candidates behind their base; oldest first.
        cells: Item to one cell for each column, None where it was not measured; by the items' names.
        types: Item to its task type.
        again: Item to outcomes of the run's own target that were measured once more, each with its column's place.
        absent: For each column why what its event measured is not known here; None where it is.
    """

    run: str
    gauge: Gauge
    columns: tuple[MeasuredRow, ...]
    cells: dict[str, list[Cell | None]]
    types: dict[str, str]
    again: dict[str, list[tuple[int, Cell]]] = field(default_factory=dict)
    absent: tuple[Absence | None, ...] = ()
    _known: dict[str, list[tuple[MeasuredRow, Cell]]] = field(default_factory=dict, repr=False)

    def of_versions(self, item: str) -> list[tuple[MeasuredRow, Cell]]:
        """Return the versions that have a score of their own on ``item``, oldest first."""
        if item not in self._known:
            self._known[item] = [
                (column, cell)
                for column, cell in zip(self.columns, self.cells[item], strict=True)
                if column.version is not None and cell is not None and cell.solved is not None
            ]
        return self._known[item]

    def gaps(self, item: str) -> list[MeasuredRow]:
        """Return the versions that may have been measured on ``item`` with an outcome that is not known here."""
        return [
            column
            for column, cell, absence in zip(self.columns, self.cells[item], self.absent, strict=True)
            if column.version is not None and column.measured and cell is None and absence is not None
        ]


def load(workspace: Workspace, run: str, *, rejected: bool = False, item: str | None = None) -> RunItems:
    """Return the items of ``run`` under its versions.

    Args:
        workspace: The repository.
        run: The run.
        rejected: Whether to return candidates, too.
        item: The only item to return; all without it.
    """
    columns = item_queries.versions(workspace.index, run)
    if rejected:
        tried = item_queries.candidates(workspace.index, run)
        columns = tuple(sorted((*columns, *tried), key=_place))
    missing = absences(workspace, run)
    found = RunItems(
        run=run,
        gauge=queries.gauge(workspace.index, run),
        columns=columns,
        cells={},
        types={},
        absent=tuple(None if column.event is None else missing.get(column.event) for column in columns),
    )
    places: dict[int, list[int]] = {}
    for place, column in enumerate(columns):
        if column.event is not None:
            places.setdefault(column.event, []).append(place)
    # Most outcomes are one of two: they are made once, for a long history has hundreds of thousands.
    made: dict[tuple[object, ...], Cell] = {}
    for row in item_queries.outcomes(workspace.index, places, item):
        if row.item not in found.cells:
            found.cells[row.item] = [None] * len(columns)
            found.types[row.item] = row.task_type
        cells = found.cells[row.item]
        for place in places[row.event]:
            measured = columns[place].measured
            key = (row.hard, row.soft, row.failed, measured)
            if key not in made:
                made[key] = _cell(found.gauge, row.hard, row.soft, row.failed, measured=measured)
            cells[place] = made[key]
    _add_notes(workspace, found, item)
    ordered = {known: found.cells[known] for known in sorted(found.cells)}
    found.cells.clear()
    found.cells.update(ordered)
    return found


def flips(cells: Sequence[tuple[MeasuredRow, Cell]]) -> tuple[int, ...]:
    """Return the places at which an item is solved and was not before, or the other way round."""
    return tuple(place for place in range(1, len(cells)) if cells[place][1].solved != cells[place - 1][1].solved)


def absences(workspace: Workspace, run: str) -> dict[int, Absence]:
    """Return event to why its outcomes are not known here, for the events of ``run`` that measured items."""
    waiting = item_queries.not_loaded(workspace.index, run)
    dropped = dropped_trees(workspace.repo, run) if waiting else frozenset()
    return {event: Absence.DROPPED if tree in dropped else Absence.AWAY for event, tree in waiting.items()}


def first_solved(measured: Sequence[tuple[MeasuredRow, Cell]], gaps: Sequence[MeasuredRow]) -> tuple[str, bool]:
    """Return the first version that is known to solve an item, empty if none is, and whether it is the first of all."""
    row = next((row for row, cell in measured if cell.solved), None)
    earlier = [gap for gap in gaps if row is None or _place(gap) < _place(row)]
    return (row.label if row is not None else "", not earlier)


def flip_names(measured: Sequence[tuple[MeasuredRow, Cell]], gaps: Sequence[MeasuredRow]) -> tuple[str, ...]:
    """Return the versions at which an item flips; ``v3..v7`` where it is one of those, which are not all known."""
    found = []
    for place in flips(measured):
        older, newer = measured[place - 1][0], measured[place][0]
        is_open = any(_place(older) < _place(gap) < _place(newer) for gap in gaps)
        found.append(f"{older.label}..{newer.label}" if is_open else newer.label)
    return tuple(found)


def unknown_item(workspace: Workspace, run: str, item: str) -> NotFoundError:
    """Return the error for an item that ``run`` has no outcomes of."""
    known = item_queries.item_names(workspace.index, run)
    if not known:
        return no_outcomes(run)
    near = difflib.get_close_matches(item, known, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"its selection items are {', '.join(known[:8])}, …"
    return NotFoundError(f"run {run} has no selection item '{item}'", hint=hint)


def no_outcomes(run: str) -> NotFoundError:
    """Return the error for a run whose outcomes of items are not here."""
    return NotFoundError(
        f"the outcomes of run {run} on single items are not known here",
        hint=IF_CLONED,
    )


def _place(row: MeasuredRow) -> tuple[int, int]:
    """Return where a column stands: a version in its own place, a candidate behind the version that it rests on."""
    return (row.version, 0) if row.version is not None else (row.base or 0, 1)


def _add_notes(workspace: Workspace, found: RunItems, only: str | None) -> None:
    lines = item_queries.noted_commits(workspace.index, found.run)
    if not lines:
        return
    run = AsMeasured(workspace, found.run)
    places = {column.commit: place for place, column in enumerate(found.columns)}
    for commit, line in lines:
        told = noted_outcomes(line) if commit in places else None
        if told is not None and told.split == "selection" and run.counts(told):
            for item, outcome in told.outcomes.items():
                if only in {None, item}:
                    _add(found, places[commit], item, outcome)


def _add(found: RunItems, place: int, item: str, outcome: Scored) -> None:
    """Add an outcome from a note: to the place that has none of this text, else to those that were measured again."""
    cells = found.cells.setdefault(item, [None] * len(found.columns))
    found.types.setdefault(item, "")
    cell = _cell(found.gauge, outcome.hard, outcome.soft, "", measured=True, noted=True)
    there = cells[place]
    if there is None or there.solved is None:
        cells[place] = cell
    else:
        found.again.setdefault(item, []).append((place, cell))


def _cell(
    gauge: Gauge, hard: float | None, soft: float | None, failed: str, *, measured: bool, noted: bool = False
) -> Cell:
    scored = hard is not None and soft is not None
    value = Scored(hard, soft).value(gauge.metric, gauge.soft_weight) if scored else None  # type: ignore[arg-type]
    return Cell(hard=hard, soft=soft, value=value, failed=failed, measured=measured, noted=noted)


def evidence_trees(workspace: Workspace, rows: Sequence[MeasuredRow]) -> Iterator[tuple[MeasuredRow, str]]:
    """Yield each of ``rows`` with the evidence tree of the event that measured it; empty without evidence."""
    known = item_queries.evidence_of(workspace.index, [row.event for row in rows if row.event is not None])
    for row in rows:
        yield row, known.get(row.event, "") if row.event is not None else ""
