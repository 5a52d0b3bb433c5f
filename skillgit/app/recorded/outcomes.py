"""What the texts of a run did on its selection items: one table of items by versions and candidates.

A cell is the outcome of one item under one text. What lists, stories and searches say of an item follows from its row:
which version solves it first, where it flips, which outcomes are unknown here, and why its outcome is noisy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Final

from skillgit.app.recorded.evaluation_notes import noted_outcomes
from skillgit.app.recorded.evidence_json import entries, evidence_file, objects, parsed
from skillgit.app.recorded.run_record import start_section
from skillgit.app.workspace.workspace import Absence, Workspace, absence_of, measure
from skillgit.domain.address import version_label
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.evaluation import Gauge, Scored
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.outcomes import SELECTION, read_outcomes
from skillgit.errors import NotFoundError
from skillgit.index import item_queries, queries
from skillgit.index.item_queries import MeasuredRow
from skillgit.index.own_conditions import OwnConditions
from skillgit.index.rows import LogRow
from skillgit.store.evidence import dropped_trees, read_evidence

MANY_FLIPS: Final = 3
"""So many changes between solved and not solved are taken for noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOutcome:
    hard: float | None  # the strict score; absent if the item failed to evaluate
    soft: float | None  # the score with partial credit; absent if the item failed to evaluate
    value: float | None  # the score under the run's metric; absent if the item failed to evaluate
    failed: str = ""  # why it failed to evaluate; empty if it has a score
    measured: bool = True  # whether this very text was; otherwise the outcome is that of the text it inherits from
    noted: bool = False  # whether it was measured after the run's own evaluation, so that a note has it
    solved: bool | None = field(init=False)  # whether the item is solved; None if this text has no score on it

    def __post_init__(self) -> None:
        is_solved = None if self.hard is None or not self.measured else self.hard >= 1.0
        object.__setattr__(self, "solved", is_solved)


Attempted = tuple[MeasuredRow, ItemOutcome | None]
"""A version or candidate, and its outcome on an item; None if it was not measured on it, or that is not known."""
Own = tuple[MeasuredRow, ItemOutcome]
"""A version that has a score of its own on an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLine:
    """One item under the texts of a run."""

    item: str
    task_type: str
    first: str  # the first version that is known to have solved it; empty if none is
    flips: int  # how often it changed between solved and not solved from one known outcome to the next
    solved: int
    measured: int  # how many versions have a score of their own on it that is known here
    share: float | None  # the share of those that solve it; absent without any
    doubts: tuple[str, ...]  # what speaks for a noisy outcome; nothing if nothing does
    cells: tuple[ItemOutcome | None, ...]  # its outcome under each text; None where not measured, or not known
    is_first: bool = True  # whether all versions before `first` are known; without it, whether all versions are
    unknown: int = 0  # how many more versions may have a score of their own, in evidence that is not here


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcomes:
    run: str
    gauge: Gauge  # how it turns an outcome into one number
    texts: tuple[MeasuredRow, ...]  # the versions and, where asked for, candidates behind their base; oldest first
    absent: tuple[Absence | None, ...]  # for each text why its outcomes are unknown here; None if known
    cells: dict[str, list[ItemOutcome | None]] = field(default_factory=dict)  # by item, one cell for each text
    types: dict[str, str] = field(default_factory=dict)  # item to its task type
    again: dict[str, list[tuple[int, ItemOutcome]]] = field(
        default_factory=dict
    )  # later outcomes, by place of the text
    _own: dict[str, list[Own]] = field(default_factory=dict, repr=False)

    def attempts(self, item: str) -> list[Attempted]:
        return list(zip(self.texts, self.cells[item], strict=True))

    def own(self, item: str) -> list[Own]:
        """Return the versions that have a score of their own on ``item``, oldest first."""
        if item not in self._own:
            self._own[item] = [
                (text, cell)
                for text, cell in self.attempts(item)
                if text.version is not None and cell is not None and cell.solved is not None
            ]
        return self._own[item]

    def gaps(self, item: str) -> list[MeasuredRow]:
        """Return the versions that may have been measured on ``item`` with an outcome that is not known here."""
        return [
            text
            for (text, cell), absence in zip(self.attempts(item), self.absent, strict=True)
            if absence is not None and cell is None and text.version is not None and text.measured
        ]

    def flips(self, item: str) -> tuple[str, ...]:
        """Return the versions at which ``item`` flips; ``v3..v7`` where it is one of those, which are not all known."""
        gaps = [_place(gap) for gap in self.gaps(item)] if any(self.absent) else []
        return tuple(
            f"{older.label}..{newer.label}" if any(_place(older) < gap < _place(newer) for gap in gaps) else newer.label
            for older, newer in flips(self.own(item))
        )

    def line(self, item: str, doubts: tuple[str, ...] = ()) -> ItemLine:
        """Return what the versions make of ``item``."""
        own, gaps = self.own(item), self.gaps(item) if any(self.absent) else []
        first = next((text for text, cell in own if cell.solved), None)
        count = sum(cell.solved is True for _, cell in own)
        return ItemLine(
            item=item,
            task_type=self.types[item],
            first=first.label if first is not None else "",
            is_first=not any(first is None or _place(gap) < _place(first) for gap in gaps),
            flips=sum(1 for _ in flips(own)),
            solved=count,
            measured=len(own),
            unknown=len(gaps),
            share=count / len(own) if own else None,
            doubts=doubts,
            cells=tuple(self.cells[item]),
        )

    def doubts(self, workspace: Workspace) -> dict[str, tuple[str, ...]]:
        """Return item to why it is noisy: repeats differ, a placebo moved it, a note differs, ``MANY_FLIPS`` flips."""
        reasons: dict[str, list[str]] = {}
        for item, phrase in (*self._repeated(workspace), *self._moved_by_placebo(workspace), *self._measured_again()):
            if item in self.cells and phrase not in reasons.setdefault(item, []):
                reasons[item].append(phrase)
        for item in self.cells:
            count = sum(1 for _ in flips(self.own(item)))
            if count >= MANY_FLIPS:
                reasons.setdefault(item, []).append(f"{count} flips")
        return {item: tuple(phrases) for item, phrases in reasons.items() if phrases}

    def _repeated(self, workspace: Workspace) -> Iterator[tuple[str, str]]:
        """Yield the items whose repeated rollouts differ; only a run with repeats has any."""
        if not start_section(workspace, self.run, "gate").get("repeats"):
            return

        def differ(rows: Sequence[object]) -> bool:
            return (
                len({(row.get("hard"), row.get("soft")) for row in rows if isinstance(row, dict) and "hard" in row}) > 1
            )

        every = (*item_queries.versions(workspace.index, self.run), *item_queries.candidates(workspace.index, self.run))
        for row, tree in evidence_trees(workspace, [row for row in every if row.measured]):
            files = read_evidence(workspace.repo, tree, (_REPEATS, SELECTION)) or {}
            first = {str(entry.get("id")): entry for entry in objects(parsed(files.get(SELECTION)))}
            for entry in objects(parsed(files.get(_REPEATS))):
                item = str(entry.get("id"))
                # the outcome that was recorded for the version which ``row`` was compared with
                base = [
                    {"hard": cell.hard, "soft": cell.soft}
                    for text, cell in zip(self.texts, self.cells.get(item, ()), strict=False)
                    if text.version == row.base is not None and cell and cell.solved is not None and not cell.noted
                ]
                if differ([first.get(item), *entries(entry.get("candidate"))]) or differ(
                    [*base, *entries(entry.get("current"))]
                ):
                    yield item, f"repeats differ at {row.label}"

    def _moved_by_placebo(self, workspace: Workspace) -> Iterator[tuple[str, str]]:
        if not start_section(workspace, self.run, "train").get("placebo"):
            return
        for row in queries.log_rows(workspace.index, self.run, kinds=frozenset({EventKind.RUN_FINISHED})):
            tree = item_queries.evidence_of_commit(workspace.index, row.commit)
            for entry in objects(evidence_file(workspace.repo, tree, _PLACEBO)):
                for item in (*entries(entry.get("fixed")), *entries(entry.get("broken"))):
                    yield str(item), "a placebo moved it"

    def _measured_again(self) -> Iterator[tuple[str, str]]:
        for item, again in self.again.items():
            for index, cell in again:
                first = self.cells[item][index]
                if first is not None and (first.hard, first.soft) != (cell.hard, cell.soft):
                    yield item, f"measured again, {self.texts[index].label} differs"


_REPEATS, _PLACEBO = "repeats.json", "placebo.json"


def flips(own: Sequence[Own]) -> Iterator[tuple[MeasuredRow, MeasuredRow]]:
    """Yield each two neighbours of which one solves the item and the other does not."""
    return ((older, newer) for (older, before), (newer, after) in pairwise(own) if before.solved != after.solved)


def load(workspace: Workspace, run: str, *, with_rejected: bool = False, item: str | None = None) -> RunOutcomes:
    """Return the outcomes of ``run``, or only those of ``item``, under its versions."""
    texts = item_queries.versions(workspace.index, run)
    if with_rejected:
        texts = tuple(sorted((*texts, *item_queries.candidates(workspace.index, run)), key=_place))
    reasons = absences(workspace, run)
    outcomes = RunOutcomes(
        run=run,
        gauge=queries.gauge(workspace.index, run),
        texts=texts,
        absent=tuple(None if text.event is None else reasons.get(text.event) for text in texts),
    )
    columns: dict[int, list[int]] = {}
    for index, text in enumerate(texts):
        if text.event is not None:
            columns.setdefault(text.event, []).append(index)
    # Most outcomes are one of two: they are made once, for a long history has hundreds of thousands.
    pool: dict[tuple[object, ...], ItemOutcome] = {}
    for row in item_queries.outcomes(workspace.index, columns, item):
        cells = outcomes.cells.setdefault(row.item, [None] * len(texts))
        outcomes.types[row.item] = row.task_type
        for index in columns[row.event]:
            key = (row.hard, row.soft, row.failed, texts[index].measured)
            if key not in pool:
                value = None if row.hard is None or row.soft is None else outcomes.gauge.of(row.hard, row.soft)
                pool[key] = ItemOutcome(
                    hard=row.hard, soft=row.soft, value=value, failed=row.failed, measured=texts[index].measured
                )
            cells[index] = pool[key]
    _add_notes(workspace, outcomes, item)
    by_name = sorted(outcomes.cells.items())
    outcomes.cells.clear()
    outcomes.cells.update(by_name)
    return outcomes


def _add_notes(workspace: Workspace, outcomes: RunOutcomes, only: str | None) -> None:
    """Add what notes say: to the place that has no outcome of this text, else to those that were measured again."""
    lines = item_queries.noted_commits(workspace.index, outcomes.run)
    run = OwnConditions(workspace.index, outcomes.run) if lines else None
    columns = {text.commit: index for index, text in enumerate(outcomes.texts)}
    for commit, line in lines:
        note = noted_outcomes(line) if commit in columns else None
        if run is None or note is None or note.split != "selection" or not note.counts_for(run):
            continue
        for item, score in note.outcomes.items():
            if only not in {None, item}:
                continue
            value = outcomes.gauge.of(score.hard, score.soft)
            cell = ItemOutcome(hard=score.hard, soft=score.soft, value=value, noted=True)
            cells, index = outcomes.cells.setdefault(item, [None] * len(outcomes.texts)), columns[commit]
            outcomes.types.setdefault(item, "")
            first = cells[index]
            if first is None or first.solved is None:
                cells[index] = cell
            else:
                outcomes.again.setdefault(item, []).append((index, cell))


def _place(row: MeasuredRow) -> tuple[int, int]:
    """Return where a text belongs: a version in its own place, a candidate behind the version that it rests on."""
    return (row.version, 0) if row.version is not None else (row.base or 0, 1)


def absences(workspace: Workspace, run: str) -> dict[int, Absence]:
    """Return event to why its outcomes are not known here, for the events of ``run`` that measured items."""
    waiting = item_queries.not_loaded(workspace.index, run)
    drops = dropped_trees(workspace.repo, run) if waiting else frozenset()
    otherwise = absence_of(workspace.repo, run) if waiting else Absence.AWAY
    return {event: Absence.DROPPED if tree in drops else otherwise for event, tree in waiting.items()}


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


def evidence_trees(workspace: Workspace, rows: Sequence[MeasuredRow]) -> Iterator[tuple[MeasuredRow, str]]:
    """Yield each of ``rows`` with the evidence tree of the event that measured it; empty without evidence."""
    trees = item_queries.evidence_of(workspace.index, [row.event for row in rows if row.event is not None])
    return ((row, trees.get(row.event, "") if row.event is not None else "") for row in rows)


CheckScores = Mapping[str, Mapping[str, float]]
"""Check to the score of each item that has it."""
_PASSED: Final = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckChange:
    """One check under two versions, over the items that have it on both sides."""

    check: str
    n: int
    before: float | None  # its mean score; absent without an older version
    after: float
    fixes: int = 0  # items on which it passes now, and did not
    breaks: int = 0  # items on which it passed, and does not now


def check_scores(workspace: Workspace, row: LogRow) -> CheckScores:
    """Return the scores of checks on selection items; none without evidence, or where items have one score only."""
    files = read_evidence(workspace.repo, queries.measured_evidence(workspace.index, row), (SELECTION,)) or {}
    scores: dict[str, dict[str, float]] = {}
    for item, outcome in (read_outcomes(files.get(SELECTION)) or {}).items():
        for check, score in outcome.parts if isinstance(outcome, Scored) else ():
            scores.setdefault(check, {})[item] = score
    return scores


def changes_from_base(workspace: Workspace, row: LogRow) -> tuple[CheckChange, ...]:
    """Return how checks fare under ``row`` and its base; none if it was not measured, or items have one score only."""
    base = None if row.base is None else queries.row_of_version(workspace.index, row.run, row.base)
    before = None if base is None else check_scores(workspace, base)
    return check_changes(before, check_scores(workspace, row)) if row.measured else ()


def check_changes(before: CheckScores | None, after: CheckScores) -> tuple[CheckChange, ...]:
    """Return how each check fares after and, where there is an older version, before; by their names."""
    changes = []
    for check, new in sorted(after.items()):
        old = new if before is None else before.get(check, {})
        if not (items := sorted(old.keys() & new.keys())):
            continue
        changes.append(
            CheckChange(
                check=check,
                n=len(items),
                before=None if before is None else fmean(old[item] for item in items),
                after=fmean(new[item] for item in items),
                fixes=sum(old[item] < _PASSED <= new[item] for item in items),
                breaks=sum(new[item] < _PASSED <= old[item] for item in items),
            )
        )
    return tuple(changes)
