"""``skillgit items``: which item is solved by which version of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from skillgit.app.history.requests import ItemOrder, ItemsRequest
from skillgit.app.recorded.outcomes import ItemLine, check_scores, load, no_outcomes
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Absence, Workspace
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import NotFoundError
from skillgit.index import queries


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
class ItemTable:
    run: str
    metric: str
    columns: tuple[ItemColumn, ...]  # the versions, and candidates behind the version that they rest on
    rows: tuple[ItemLine, ...]
    items: int

    def shifts(self, line: ItemLine) -> Iterator[Literal["fixed", "broken", ""]]:
        """Yield for each column whether its text is the first to solve ``line`` again, or the first to fail it.

        An outcome that is not known here may have been either, so that what follows it is neither.
        """
        past: bool | None = None
        for column, cell in zip(self.columns, line.cells, strict=True):
            is_solved = None if cell is None else cell.solved
            if is_solved is None:
                yield ""
                past = past if cell is not None or column.absence is None else None
            else:
                yield "" if past in {None, is_solved} else "fixed" if is_solved else "broken"
                past = is_solved


def items(workspace: Workspace, run: str | None, request: ItemsRequest) -> ItemTable:
    name = find_run(workspace, run)
    outcomes = load(workspace, name, with_rejected=request.rejected)
    if not outcomes.cells:
        raise no_outcomes(workspace, name)
    types = sorted({*outcomes.types.values()} - {""})
    if request.task_type is not None and request.task_type not in types:
        hint = did_you_mean(request.task_type, types, otherwise=f"task types are {', '.join(types)}")
        raise NotFoundError(f"run {name} has no items of the task type '{request.task_type}'", hint=hint)
    doubts = outcomes.doubts(workspace)
    marks = [
        row and row.commit for row in (read(workspace.index, name) for read in (queries.best_row, queries.head_row))
    ]

    def matches(line: ItemLine) -> bool:
        return (
            request.task_type in {None, line.task_type}
            and (not request.flaky or bool(line.doubts))
            and (not request.never_solved or not line.solved)
            and (not request.solved or any(cell.solved for _, cell in outcomes.own(line.item)[-1:]))
        )

    lines = [outcomes.line(item, doubts.get(item, ())) for item in outcomes.cells]
    by_text = zip(outcomes.texts, outcomes.absent, zip(*outcomes.cells.values(), strict=True), strict=True)
    return ItemTable(
        run=name,
        metric=str(outcomes.gauge.metric),
        columns=tuple(
            ItemColumn(
                name=text.label,
                commit=text.commit,
                version=text.version,
                score=text.score,
                measured=text.measured,
                bound=text.bound,
                n=text.n,
                scored=text.scored,
                solved=sum(cell is not None and cell.solved is True for cell in cells),
                is_best=text.commit == marks[0],
                is_head=text.commit == marks[1],
                absence=absence,
                lacking=cells.count(None),
            )
            for text, absence, cells in by_text
        ),
        rows=tuple(sorted(filter(matches, lines), key=lambda line: _rank(line, request.order))),
        items=len(lines),
    )


def _rank(line: ItemLine, order: ItemOrder) -> tuple[float, list[tuple[int, int, str]]]:
    """Return what an item is sorted by; ids with numbers in them count."""
    keys = {
        ItemOrder.ITEM: 0.0,
        ItemOrder.FIRST: int(line.first[1:]) if line.first else float("inf"),
        ItemOrder.FLIPS: -line.flips,
        ItemOrder.SHARE: -1.0 if line.share is None else line.share,
    }
    parts = re.findall(r"\d+|\D+", line.item)
    return keys[order], [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


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


def checks(workspace: Workspace, run: str | None) -> CheckTable:
    """Return how each single check, criterion or metric of the selection split fares under the versions of ``run``."""
    name = find_run(workspace, run)
    rows = [row for row in queries.log_rows(workspace.index, name) if row.version is not None]
    scores = {row.label: check_scores(workspace, row) for row in sorted(rows, key=lambda row: row.version or 0)}
    lines = []
    for check in sorted({check for version in scores.values() for check in version}):
        versions = [[*version.get(check, {}).values()] for version in scores.values()]
        newest = next((values for values in reversed(versions) if values), [])
        means = tuple(fmean(values) if values else None for values in versions)
        lines.append(CheckLine(check=check, items=len(newest), scores=means))
    if not lines:
        if not load(workspace, name).cells:
            raise no_outcomes(workspace, name)
        raise NotFoundError(f"the items of run {name} have one score each", hint=f"skillgit items {name}")
    return CheckTable(run=name, versions=tuple(scores), rows=tuple(lines))
