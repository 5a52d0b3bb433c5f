"""Questions to the index about what events cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.domain.cost import Cost, CostPart
from skillgit.index.rows import ProgressRow, SpentRow
from skillgit.index.schema import AMOUNTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.index.refresh import Index

_EVENTS = f"""
    SELECT e.id, e.run, e.kind, e.origin, e.step, e.epoch, e.version, e.target, e.optimizer, e.judge,
           {", ".join(f"e.{name}" for name in AMOUNTS)}
    FROM event e WHERE e.run = ? ORDER BY e.at, e.step, e.rank, e.number"""  # noqa: S608 - names are ours
_PARTS = f"""
    SELECT s.event, s.role, s.stage, {", ".join(f"s.{name}" for name in AMOUNTS)}
    FROM spent s JOIN event e ON e.id = s.event WHERE e.run = ? ORDER BY s.event, s.role, s.stage"""  # noqa: S608 - ours

_PROGRESS = """
    SELECT MAX(step), MAX(epoch), MAX(version), MAX(CASE kind WHEN 'slow-proposed' THEN epoch END),
           MAX(CASE origin WHEN 'meta' THEN epoch END), MAX(CASE kind WHEN 'measured' THEN version END), MAX(number),
           MAX(kind = 'run-finished')
    FROM event WHERE run = ?"""


def spent_rows(index: Index, run: str) -> tuple[SpentRow, ...]:
    """Return what the events of ``run`` cost, the oldest first."""
    parts: dict[int, list[CostPart]] = {}
    for event, role, stage, *amounts in index.select(_PARTS, (run,)):
        parts.setdefault(event, []).append(CostPart(role=role, stage=stage, cost=_cost(amounts)))
    return tuple(_spent_row(row, parts.get(row[0], ())) for row in index.select(_EVENTS, (run,)))


def progress(index: Index, run: str) -> ProgressRow:
    """Return how far ``run`` is."""
    found = index.select(_PROGRESS, (run,))[0]
    step, epoch, version, slow_epoch, meta_epoch, measured, interventions, finished = found
    return ProgressRow(
        step=step,
        epoch=epoch or 0,
        version=version or 0,
        slow_epoch=slow_epoch or 0,
        meta_epoch=meta_epoch or 0,
        measured=measured,
        interventions=interventions or 0,
        finished=bool(finished),
    )


def _spent_row(row: Sequence[Any], parts: Sequence[CostPart]) -> SpentRow:
    _, run, kind, origin, step, epoch, version, target, optimizer, judge, *amounts = row
    return SpentRow(
        run=run,
        kind=kind,
        origin=origin,
        step=step,
        epoch=epoch,
        version=version,
        models={"target": target, "optimizer": optimizer, "judge": judge.rpartition("@")[0] or judge},
        cost=_cost(amounts, tuple(parts)),
    )


def _cost(amounts: Sequence[Any], parts: tuple[CostPart, ...] = ()) -> Cost:
    return Cost(**dict(zip(AMOUNTS, amounts, strict=True)), parts=parts)
