"""Questions to the index about what events cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.event_kinds import EventKind
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

_PACES = """
    SELECT role, model, SUM(seconds), SUM(calls) FROM (
        SELECT s.role, s.calls, s.seconds, CASE s.role
            WHEN 'target' THEN e.target WHEN 'optimizer' THEN e.optimizer ELSE e.judge END AS model
        FROM spent s JOIN event e ON e.id = s.event
        WHERE s.calls > 0 AND s.stage NOT IN ('preflight', 'canary') ORDER BY s.event DESC LIMIT ?
    ) GROUP BY role, model"""
_NEWEST = 2000
"""Parts of costs that say how long calls take; older ones tell of other days."""
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
    row = index.select(_PROGRESS, (run,))[0]
    step, epoch, version, slow_epoch, meta_epoch, last_measured, interventions, is_finished = row
    return ProgressRow(
        step=step,
        epoch=epoch or 0,
        version=version or 0,
        slow_epoch=slow_epoch or 0,
        meta_epoch=meta_epoch or 0,
        measured=last_measured,
        interventions=interventions or 0,
        finished=bool(is_finished),
    )


def _spent_row(row: Sequence[Any], parts: Sequence[CostPart]) -> SpentRow:
    _, run, kind, origin, step, epoch, version, target, optimizer, judge, *amounts = row
    return SpentRow(
        run=run,
        kind=EventKind(kind),
        origin=origin,
        step=step,
        epoch=epoch,
        version=version,
        models={"target": target, "optimizer": optimizer, "judge": _without_fingerprint(judge)},
        cost=_cost(amounts, tuple(parts)),
    )


def _cost(amounts: Sequence[Any], parts: tuple[CostPart, ...] = ()) -> Cost:
    return Cost(**dict(zip(AMOUNTS, amounts, strict=True)), parts=parts)


def paces(index: Index) -> dict[tuple[str, str], float]:
    """Return role and model, as ``backend/model``, to the mean seconds of a call in the newest events of all runs."""
    totals: dict[tuple[str, str], tuple[float, int]] = {}
    for role, model, seconds, calls in index.select(_PACES, (_NEWEST,)):
        name = _without_fingerprint(model)
        before = totals.get((role, name), (0.0, 0))
        totals[role, name] = (before[0] + seconds, before[1] + calls)
    return {key: seconds / calls for key, (seconds, calls) in totals.items() if calls}


def _without_fingerprint(judge: str) -> str:
    """Return the model of a judge, which events name as ``backend/model@fingerprint``."""
    return judge.rpartition("@")[0] or judge
