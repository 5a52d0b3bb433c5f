"""``skillgit items``: which item is solved by which version of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from skillgit.app.recorded.item_history import ItemOutcome, RunItems, doubts, first_solved, flips, load, no_outcomes
from skillgit.app.recorded.score_summary import check_scores
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Absence, Workspace, open_workspace
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import NotFoundError
from skillgit.index import queries


class ItemOrder(StrEnum):
    ITEM = "item"
    FIRST = "first"
    FLIPS = "flips"
    SHARE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemColumn:
    """One version, or one candidate that became none."""

    name: str  # what it is called: `v7`, `r18`
    commit: str
    version: int | None  # the version; absent for a candidate
    score: float | None  # its score on the selection split under the run's metric
    measured: bool
    bound: float | None  # the highest possible score where the evaluation ended early; absent otherwise
    n: int
    scored: int
    solved: int
    is_best: bool
    is_head: bool
    absence: Absence | None = None  # why what its event measured is not known here; absent where it is
    lacking: int = 0  # for how many items it has no outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLine:
    item: str
    task_type: str
    first: str  # the first version that is known to have solved it; empty if none is
    flips: int  # how often it changed between solved and not solved from one known outcome to the next
    solved: int
    measured: int  # how many versions have a score of their own on it that is known here
    share: float | None  # the share of those that solve it; absent without any
    doubts: tuple[str, ...]  # what speaks for a noisy outcome; nothing if nothing does
    cells: tuple[
        ItemOutcome | None, ...
    ]  # its outcome under each column; None where it was not measured, or is not known
    is_first: bool = True  # whether all versions before `first` are known; without it, whether all versions are
    unknown: int = 0  # how many more versions may have a score of their own, in evidence that is not here


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTable:
    run: str
    metric: str
    columns: tuple[ItemColumn, ...]  # the versions, and candidates behind the version that they rest on
    rows: tuple[ItemLine, ...]
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsRequest:
    rejected: bool = False
    flaky: bool = False  # only items whose outcome is noisy
    never_solved: bool = False
    solved: bool = False
    task_type: str | None = None  # only items of this task type; all without it
    order: ItemOrder = ItemOrder.ITEM


def items(context: Context, run: str | None, request: ItemsRequest) -> ItemTable:
    with open_workspace(context) as workspace:
        name = find_run(workspace, run)
        run_items = load(workspace, name, with_rejected=request.rejected)
        if not run_items.cells:
            raise no_outcomes(workspace, name)
        _check_type(run_items, request.task_type)
        noisy = doubts(workspace, run_items)
        lines = [_line(run_items, item, noisy.get(item, ())) for item in run_items.cells]
        matching = [line for line in lines if _is_wanted(line, run_items, request)]
        return ItemTable(
            run=name,
            metric=str(run_items.gauge.metric),
            columns=_columns(workspace, run_items),
            rows=tuple(sorted(matching, key=lambda line: _key(line, request.order))),
            items=len(lines),
        )


def _columns(workspace: Workspace, run_items: RunItems) -> tuple[ItemColumn, ...]:
    best, head = queries.best_row(workspace.index, run_items.run), queries.head_row(workspace.index, run_items.run)
    marks = {"best": best.commit if best else "", "head": head.commit if head else ""}
    sums, blanks = [0] * len(run_items.columns), [0] * len(run_items.columns)
    for cells in run_items.cells.values():
        for index, cell in enumerate(cells):
            sums[index] += bool(cell and cell.solved)
            blanks[index] += cell is None
    return tuple(
        ItemColumn(
            name=row.label,
            commit=row.commit,
            version=row.version,
            score=row.score,
            measured=row.measured,
            bound=row.bound,
            n=row.n,
            scored=row.scored,
            solved=count,
            is_best=row.commit == marks["best"],
            is_head=row.commit == marks["head"],
            absence=absence,
            lacking=lacking,
        )
        for row, count, absence, lacking in zip(run_items.columns, sums, run_items.absent, blanks, strict=True)
    )


def _line(run_items: RunItems, item: str, noisy: tuple[str, ...]) -> ItemLine:
    attempts, gaps = run_items.of_versions(item), run_items.gaps(item)
    first, is_first = first_solved(attempts, gaps)
    count = sum(cell.solved is True for _, cell in attempts)
    return ItemLine(
        item=item,
        task_type=run_items.types[item],
        first=first,
        is_first=is_first,
        flips=len(flips(attempts)),
        solved=count,
        measured=len(attempts),
        unknown=len(gaps),
        share=count / len(attempts) if attempts else None,
        doubts=noisy,
        cells=tuple(run_items.cells[item]),
    )


def _is_wanted(line: ItemLine, run_items: RunItems, request: ItemsRequest) -> bool:
    if request.task_type is not None and line.task_type != request.task_type:
        return False
    newest = run_items.of_versions(line.item)[-1:]
    return (
        (not request.flaky or bool(line.doubts))
        and (not request.never_solved or not line.solved)
        and (not request.solved or any(cell.solved for _, cell in newest))
    )


def _key(line: ItemLine, order: ItemOrder) -> tuple[float, list[tuple[int, int, str]]]:
    """Return what an item is sorted by; ids with numbers in them count."""
    first = int(line.first[1:]) if line.first else float("inf")
    share = -1.0 if line.share is None else line.share
    keys: Mapping[ItemOrder, float] = {
        ItemOrder.ITEM: 0.0,
        ItemOrder.FIRST: first,
        ItemOrder.FLIPS: -line.flips,
        ItemOrder.SHARE: share,
    }
    parts = re.findall(r"\d+|\D+", line.item)
    return keys[order], [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _check_type(run_items: RunItems, task_type: str | None) -> None:
    types = sorted({kind for kind in run_items.types.values() if kind})
    if task_type is None or task_type in types:
        return
    hint = did_you_mean(task_type, types, otherwise=f"task types are {', '.join(types)}")
    raise NotFoundError(f"run {run_items.run} has no items of the task type '{task_type}'", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    check: str
    items: int  # how many items of the newest version have it
    scores: tuple[float | None, ...]  # its mean score under each version; None where that is not known here


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTable:
    run: str
    versions: tuple[str, ...]
    rows: tuple[CheckLine, ...]


def checks(context: Context, run: str | None) -> CheckTable:
    """Return how each single check, criterion or metric of the selection split fares under the versions of ``run``."""
    with open_workspace(context) as workspace:
        name = find_run(workspace, run)
        rows = [row for row in queries.log_rows(workspace.index, name) if row.version is not None]
        scores = {row.label: check_scores(workspace, row) for row in sorted(rows, key=lambda row: row.version or 0)}
        names = sorted({check for version in scores.values() for check in version})
        if not names:
            run_items = load(workspace, name, with_rejected=False)
            if not run_items.cells:
                raise no_outcomes(workspace, name)
            raise NotFoundError(f"the items of run {name} have one score each", hint=f"skillgit items {name}")
        lines = []
        for check in names:
            versions = [list(version.get(check, {}).values()) for version in scores.values()]
            newest = next((values for values in reversed(versions) if values), [])
            means = tuple(fmean(values) if values else None for values in versions)
            lines.append(CheckLine(check=check, items=len(newest), scores=means))
        return CheckTable(run=name, versions=tuple(scores), rows=tuple(lines))
