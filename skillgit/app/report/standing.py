"""What the seed and the best version of a run score on the selection and the test split, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.matrix import matrix
from skillgit.domain.statistics import wilson_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.context import Context
    from skillgit.app.matrix import MatrixCell
    from skillgit.app.scores import Interval
    from skillgit.index.rows import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One version on one split.

    Attributes:
        version: The version.
        n: Number of items.
        scored: How many of them have a score.
        score: The score under the run's metric.
        hard: Mean hard score of the scored items.
        interval: The 95 % Wilson interval of the mean hard score.
        soft: Mean soft score of the scored items.
        noted: Whether it was measured after the run, by ``skillgit eval`` or another command that leaves notes.
    """

    version: int
    n: int
    scored: int
    score: float
    hard: float
    interval: Interval
    soft: float
    noted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The seed and the best version on one split.

    Attributes:
        split: The split.
        seed: The seed; absent where it has no score.
        best: The best version; absent where it has no score.
    """

    split: str
    seed: Standing | None
    best: Standing | None

    @property
    def gain(self) -> float | None:
        """How much the best version scores above the seed; absent where one of them has no score."""
        return None if self.seed is None or self.best is None else self.best.score - self.seed.score


def progress(context: Context, run: RunRow, target: str) -> tuple[Progress, ...]:
    """Return how far ``run`` came on the selection split and on the test split, under its own ``target``."""
    return tuple(_progress(context, run, target, split) for split in ("selection", "test"))


def _progress(context: Context, run: RunRow, own: str, split: str) -> Progress:
    found = matrix(context, run.name, split)
    known = {
        row.row.version: _standing(row.row.version, cell)
        for row in found.rows
        for cell in _comparable(row.cells, own)
        if row.row.version is not None
    }
    return Progress(split=split, seed=known.get(0), best=known.get(run.best_version))


def _comparable(cells: tuple[MatrixCell, ...], own: str) -> Iterator[MatrixCell]:
    """Yield the cell that the run's own target has on its own items, if there is one."""
    yield from (cell for cell in cells if cell.model == own and not cell.differs)


def _standing(version: int, cell: MatrixCell) -> Standing:
    return Standing(
        version=version,
        n=cell.n,
        scored=cell.scored,
        score=cell.score,
        hard=cell.hard,
        interval=wilson_interval(cell.hard, cell.scored) if cell.scored else (0.0, 1.0),
        soft=cell.soft,
        noted=cell.source == "note",
    )
