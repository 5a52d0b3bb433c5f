"""Parts of a report: its limits, its item map, its settings, and the scores of seed and best version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.app.history.items import ItemOrder, ItemsRequest, ItemTable, items
from skillgit.app.history.matrix import MatrixCell, matrix
from skillgit.domain.statistics import wilson_interval
from skillgit.errors import NotFoundError

if TYPE_CHECKING:
    from skillgit.app.recorded.score_summary import Interval
    from skillgit.app.workspace.context import Context
    from skillgit.domain.text_diff import FileDiff, Hunk, Line
    from skillgit.index.rows import RunRow


ITEMS = 320  # items of the map, those that changed most often
COLUMNS = 110  # versions of the map: the first one, the best one and the newest ones
DIFFERENCES = 1_500_000  # characters of all differences of a report
_DIFFERENCE = 150_000
_LINE = 2_000
_AROUND = 60  # characters that a line of a page takes besides its text


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffExcerpt:
    files: tuple[FileDiff, ...] = ()
    left_out: int = 0


class DiffAllowance:
    """The room that is left for differences; whoever comes first is served first."""

    def __init__(self, characters: int = DIFFERENCES) -> None:
        self._left = characters

    def take(self, files: tuple[FileDiff, ...]) -> DiffExcerpt:
        """Return as much of ``files`` as has room, whole lines from the first one on."""
        room = min(self._left, _DIFFERENCE)
        diffs: list[FileDiff] = []
        for file in files:
            hunks: list[Hunk] = []
            for hunk in file.hunks:
                lines: list[Line] = []
                for line in map(_shortened, hunk.lines):
                    room -= len(line.text) + _AROUND
                    if room < 0:
                        break
                    lines.append(line)
                if lines:
                    hunks.append(replace(hunk, lines=tuple(lines)))
            if hunks or not file.hunks:
                diffs.append(replace(file, hunks=tuple(hunks)))
        left_out = sum(file.added + file.removed for file in files) - sum(file.added + file.removed for file in diffs)
        self._left -= sum(len(line.text) + _AROUND for file in diffs for hunk in file.hunks for line in hunk.lines)
        return DiffExcerpt(files=tuple(diffs), left_out=left_out)


def _shortened(line: Line) -> Line:
    if len(line.text) <= _LINE:
        return line
    spans = tuple((start, min(end, _LINE)) for start, end in line.spans if start < _LINE)
    return replace(line, text=f"{line.text[:_LINE]}…", spans=spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMap:
    table: ItemTable  # the items, those that were solved first on top, under the versions
    versions: int

    @property
    def items_left_out(self) -> int:
        return self.table.items - len(self.table.rows)

    @property
    def versions_left_out(self) -> int:
        return self.versions - len(self.table.columns)


def item_map(context: Context, run: str) -> ItemMap | None:
    """Return the items of ``run`` that flip most, under its first, best and newest versions; None without outcomes."""
    try:
        table = items(context, run, ItemsRequest(order=ItemOrder.FIRST))
    except NotFoundError:
        return None
    indexes = [index for index, column in enumerate(table.columns) if index == 0 or column.is_best]
    newest = [index for index in reversed(range(len(table.columns))) if index not in indexes]
    indexes = sorted([*indexes, *newest[: COLUMNS - len(indexes)]])
    often = sorted(range(len(table.rows)), key=lambda index: (-table.rows[index].flips, index))[:ITEMS]
    rows = tuple(
        replace(table.rows[index], cells=tuple(table.rows[index].cells[column] for column in indexes))
        for index in sorted(often)
    )
    columns = tuple(table.columns[index] for index in indexes)
    return ItemMap(table=replace(table, columns=columns, rows=rows), versions=len(table.columns))


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


def progress(context: Context, run: RunRow, target: str) -> tuple[SplitProgress, ...]:
    """Return how far ``run`` came on the selection split and on the test split, under its own ``target``."""
    splits = []
    for split in ("selection", "test"):
        by_version = {
            row.row.version: _standing(row.row.version, cell)
            for row in matrix(context, run.name, split).rows
            for cell in row.cells  # that of the run's own target on its own items, if there is one
            if row.row.version is not None and cell.model == target and not cell.differs
        }
        splits.append(SplitProgress(split=split, seed=by_version.get(0), best=by_version.get(run.best_version)))
    return tuple(splits)


def _standing(version: int, cell: MatrixCell) -> VersionStanding:
    return VersionStanding(
        version=version,
        n=cell.n,
        scored=cell.scored,
        score=cell.score,
        hard=cell.hard,
        interval=wilson_interval(cell.hard, cell.scored) if cell.scored else (0.0, 1.0),
        soft=cell.soft,
        noted=cell.source == "note",
    )
