"""Which versions and candidates solved which items, and which items are noisy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from skillgit.app.recorded.evaluation_notes import noted_outcomes
from skillgit.app.recorded.evidence_json import entries, evidence_file, objects, parsed
from skillgit.app.recorded.run_record import start_section
from skillgit.app.workspace.workspace import Absence, Workspace, absence_of, measure
from skillgit.domain.address import version_label
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.evaluation import Gauge, Scored
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import NotFoundError
from skillgit.index import item_queries, queries
from skillgit.index.item_queries import MeasuredRow
from skillgit.index.own_conditions import OwnConditions
from skillgit.store.evidence import dropped_trees, read_evidence

_OID_LENGTH = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOutcome:
    hard: float | None  # the strict score; absent if the item failed to evaluate
    soft: float | None  # the score with partial credit; absent if the item failed to evaluate
    value: float | None  # the score under the run's metric; absent if the item failed to evaluate
    failed: str = ""  # why it failed to evaluate; empty if it has a score
    measured: bool = True  # whether this very text was; otherwise the outcome is that of the text it inherits from
    noted: bool = False  # whether it was measured after the run's own evaluation, so that a note tells it
    solved: bool | None = field(init=False)  # whether the item is solved; None if this text has no score on it

    def __post_init__(self) -> None:
        is_solved = None if self.hard is None or not self.measured else self.hard >= 1.0
        object.__setattr__(self, "solved", is_solved)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItems:
    run: str
    gauge: Gauge  # how it turns an outcome into one number
    columns: tuple[MeasuredRow, ...]  # the versions and, where asked for, candidates behind their base; oldest first
    cells: dict[str, list[ItemOutcome | None]]  # by item, in its order; one cell per column, None where not measured
    types: dict[str, str]  # item to its task type
    again: dict[str, list[tuple[int, ItemOutcome]]] = field(default_factory=dict)  # later outcomes, by column index
    absent: tuple[Absence | None, ...] = ()  # for each column why its outcomes are unknown here; None if known
    _results: dict[str, list[tuple[MeasuredRow, ItemOutcome]]] = field(default_factory=dict, repr=False)

    def of_versions(self, item: str) -> list[tuple[MeasuredRow, ItemOutcome]]:
        """Return the versions that have a score of their own on ``item``, oldest first."""
        if item not in self._results:
            self._results[item] = [
                (column, cell)
                for column, cell in zip(self.columns, self.cells[item], strict=True)
                if column.version is not None and cell is not None and cell.solved is not None
            ]
        return self._results[item]

    def gaps(self, item: str) -> list[MeasuredRow]:
        """Return the versions that may have been measured on ``item`` with an outcome that is not known here."""
        if not any(self.absent):
            return []
        return [
            column
            for column, cell, absence in zip(self.columns, self.cells[item], self.absent, strict=True)
            if column.version is not None and column.measured and cell is None and absence is not None
        ]


def load(workspace: Workspace, run: str, *, with_rejected: bool = False, item: str | None = None) -> RunItems:
    """Return the items of ``run``, or only ``item``, under its versions."""
    columns = item_queries.versions(workspace.index, run)
    if with_rejected:
        candidates = item_queries.candidates(workspace.index, run)
        columns = tuple(sorted((*columns, *candidates), key=_place))
    missing = absences(workspace, run)
    items = RunItems(
        run=run,
        gauge=queries.gauge(workspace.index, run),
        columns=columns,
        cells={},
        types={},
        absent=tuple(None if column.event is None else missing.get(column.event) for column in columns),
    )
    indexes: dict[int, list[int]] = {}
    for index, column in enumerate(columns):
        if column.event is not None:
            indexes.setdefault(column.event, []).append(index)
    # Most outcomes are one of two: they are made once, for a long history has hundreds of thousands.
    cell_pool: dict[tuple[object, ...], ItemOutcome] = {}
    for row in item_queries.outcomes(workspace.index, indexes, item):
        if row.item not in items.cells:
            items.cells[row.item] = [None] * len(columns)
            items.types[row.item] = row.task_type
        cells = items.cells[row.item]
        for index in indexes[row.event]:
            is_measured = columns[index].measured
            key = (row.hard, row.soft, row.failed, is_measured)
            if key not in cell_pool:
                cell_pool[key] = _cell(items.gauge, row.hard, row.soft, row.failed, is_measured=is_measured)
            cells[index] = cell_pool[key]
    _add_notes(workspace, items, item)
    by_name = {name: items.cells[name] for name in sorted(items.cells)}
    items.cells.clear()
    items.cells.update(by_name)
    return items


def flips(cells: Sequence[tuple[MeasuredRow, ItemOutcome]]) -> tuple[int, ...]:
    """Return the places at which an item is solved and was not before, or the other way round."""
    return tuple(index for index in range(1, len(cells)) if cells[index][1].solved != cells[index - 1][1].solved)


def absences(workspace: Workspace, run: str) -> dict[int, Absence]:
    """Return event to why its outcomes are not known here, for the events of ``run`` that measured items."""
    waiting = item_queries.not_loaded(workspace.index, run)
    drops = dropped_trees(workspace.repo, run) if waiting else frozenset()
    otherwise = absence_of(workspace.repo, run) if waiting else Absence.AWAY
    return {event: Absence.DROPPED if tree in drops else otherwise for event, tree in waiting.items()}


def first_solved(attempts: Sequence[tuple[MeasuredRow, ItemOutcome]], gaps: Sequence[MeasuredRow]) -> tuple[str, bool]:
    """Return the first version that is known to solve an item, empty if none is, and whether it is the first of all."""
    row = next((row for row, cell in attempts if cell.solved), None)
    earlier = [gap for gap in gaps if row is None or _place(gap) < _place(row)]
    return (row.label if row is not None else "", not earlier)


def flip_names(attempts: Sequence[tuple[MeasuredRow, ItemOutcome]], gaps: Sequence[MeasuredRow]) -> tuple[str, ...]:
    """Return the versions at which an item flips; ``v3..v7`` where it is one of those, which are not all known."""
    names = []
    for index in flips(attempts):
        older, newer = attempts[index - 1][0], attempts[index][0]
        is_open = any(_place(older) < _place(gap) < _place(newer) for gap in gaps)
        names.append(f"{older.label}..{newer.label}" if is_open else newer.label)
    return tuple(names)


def unknown_item(workspace: Workspace, run: str, item: str) -> NotFoundError:
    names = item_queries.item_names(workspace.index, run)
    if not names:
        return no_outcomes(workspace, run)
    hint = did_you_mean(item, names, otherwise=f"its selection items are {', '.join(names[:8])}, …", most=3)
    return NotFoundError(f"run {run} has no selection item '{item}'", hint=hint)


def no_outcomes(workspace: Workspace, run: str) -> NotFoundError:
    return NotFoundError(
        f"the outcomes of run {run} on single items are not known here",
        hint=absence_of(workspace.repo, run).remedy(measure(f"{run}/{version_label(0)}")),
    )


def _place(row: MeasuredRow) -> tuple[int, int]:
    """Return where a column stands: a version in its own place, a candidate behind the version that it rests on."""
    return (row.version, 0) if row.version is not None else (row.base or 0, 1)


def _add_notes(workspace: Workspace, items: RunItems, only: str | None) -> None:
    lines = item_queries.noted_commits(workspace.index, items.run)
    if not lines:
        return
    run = OwnConditions(workspace.index, items.run)
    indexes = {column.commit: index for index, column in enumerate(items.columns)}
    for commit, line in lines:
        outcomes = noted_outcomes(line) if commit in indexes else None
        if outcomes is not None and outcomes.split == "selection" and outcomes.counts_for(run):
            for item, outcome in outcomes.outcomes.items():
                if only in {None, item}:
                    _add(items, indexes[commit], item, outcome)


def _add(items: RunItems, index: int, item: str, outcome: Scored) -> None:
    """Add an outcome from a note: to the place that has none of this text, else to those that were measured again."""
    cells = items.cells.setdefault(item, [None] * len(items.columns))
    items.types.setdefault(item, "")
    cell = _cell(items.gauge, outcome.hard, outcome.soft, "", is_measured=True, is_note=True)
    there = cells[index]
    if there is None or there.solved is None:
        cells[index] = cell
    else:
        items.again.setdefault(item, []).append((index, cell))


def _cell(
    gauge: Gauge, hard: float | None, soft: float | None, failure: str, *, is_measured: bool, is_note: bool = False
) -> ItemOutcome:
    has_score = hard is not None and soft is not None
    value = Scored(hard, soft).value(gauge.metric, gauge.soft_weight) if has_score else None  # type: ignore[arg-type]
    return ItemOutcome(hard=hard, soft=soft, value=value, failed=failure, measured=is_measured, noted=is_note)


def evidence_trees(workspace: Workspace, rows: Sequence[MeasuredRow]) -> Iterator[tuple[MeasuredRow, str]]:
    """Yield each of ``rows`` with the evidence tree of the event that measured it; empty without evidence."""
    trees = item_queries.evidence_of(workspace.index, [row.event for row in rows if row.event is not None])
    for row in rows:
        yield row, trees.get(row.event, "") if row.event is not None else ""


MANY_FLIPS = 3
"""So many changes between solved and not solved are taken for noise."""
_REPEATS, _PLACEBO = "repeats.json", "placebo.json"
_SELECTION = "selection.json"


def doubts(workspace: Workspace, items: RunItems) -> dict[str, tuple[str, ...]]:
    """Return item to why it is noisy: differing repeats, a placebo's flip, a differing note, ``MANY_FLIPS`` flips."""
    reasons: dict[str, list[str]] = {}
    for item, phrase in (*_repeated(workspace, items), *_placebos(workspace, items), *_noted(items)):
        if item in items.cells and phrase not in reasons.setdefault(item, []):
            reasons[item].append(phrase)
    for item in items.cells:
        count = len(flips(items.of_versions(item)))
        if count >= MANY_FLIPS:
            reasons.setdefault(item, []).append(f"{count} flips")
    return {item: tuple(phrases) for item, phrases in reasons.items() if phrases}


def _repeated(workspace: Workspace, items: RunItems) -> Iterator[tuple[str, str]]:
    """Yield the items whose repeated rollouts differ; only a run with repeats has any."""
    if not _asked(workspace, items.run, "gate", "repeats"):
        return
    rows = (
        *item_queries.versions(workspace.index, items.run),
        *item_queries.candidates(workspace.index, items.run),
    )
    for row, tree in evidence_trees(workspace, [row for row in rows if row.measured]):
        files = read_evidence(workspace.repo, tree, (_REPEATS, _SELECTION)) or {}
        first = {str(entry.get("id")): entry for entry in objects(parsed(files.get(_SELECTION)))}
        for entry in objects(parsed(files.get(_REPEATS))):
            item = str(entry.get("id"))
            candidate = [first.get(item), *entries(entry.get("candidate"))]
            current = [*_base(items, row, item), *entries(entry.get("current"))]
            if _differ(candidate) or _differ(current):
                yield item, f"repeats differ at {row.label}"


def _base(items: RunItems, row: MeasuredRow, item: str) -> list[object]:
    """Return the outcome that was recorded for the version which ``row`` was compared with."""
    cells = zip(items.columns, items.cells.get(item, ()), strict=False)
    there = [cell for column, cell in cells if column.version == row.base is not None and cell is not None]
    return [{"hard": cell.hard, "soft": cell.soft} for cell in there if cell.solved is not None and not cell.noted]


def _placebos(workspace: Workspace, items: RunItems) -> Iterator[tuple[str, str]]:
    if not _asked(workspace, items.run, "train", "placebo"):
        return
    for row in queries.log_rows(workspace.index, items.run, kinds=frozenset({EventKind.RUN_FINISHED})):
        tree = item_queries.evidence_of_commit(workspace.index, row.commit)
        for entry in objects(evidence_file(workspace.repo, tree, _PLACEBO)):
            for item in (*entries(entry.get("fixed")), *entries(entry.get("broken"))):
                yield str(item), "a placebo moved it"


def _noted(items: RunItems) -> Iterator[tuple[str, str]]:
    for item, again in items.again.items():
        for index, cell in again:
            there = items.cells[item][index]
            if there is not None and (there.hard, there.soft) != (cell.hard, cell.soft):
                yield item, f"measured again, {items.columns[index].label} differs"


def _asked(workspace: Workspace, run: str, section: str, key: str) -> bool:
    """Say whether the run's configuration asked for something; where it is not known, there is no evidence either."""
    return bool(start_section(workspace, run, section).get(key))


def _differ(rows: list[object]) -> bool:
    scores = {(row.get("hard"), row.get("soft")) for row in rows if isinstance(row, dict) and "hard" in row}
    return len(scores) > 1
