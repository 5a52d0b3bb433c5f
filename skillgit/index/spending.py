"""Questions to the index about spending: what events, steps and runs have cost, and how long calls take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.event_kinds import EventKind
from skillgit.index.refresh import Index
from skillgit.index.rows import SpentRow
from skillgit.index.schema import AMOUNTS

_EVENTS = f"""
    SELECT e.id, e.run, e.kind, e.origin, e.step, e.epoch, e.version, e.target, e.optimizer, e.judge,
           {", ".join(f"e.{name}" for name in AMOUNTS)}
    FROM event e WHERE e.run = ? ORDER BY e.at, e.step, e.rank, e.number"""  # noqa: S608 - names are ours
_PARTS = f"""
    SELECT s.event, s.role, s.stage, {", ".join(f"s.{name}" for name in AMOUNTS)}
    FROM spent s JOIN event e ON e.id = s.event WHERE e.run = ? ORDER BY s.event, s.role, s.stage"""  # noqa: S608 - ours

_SUMS = f"""
    SELECT target, optimizer, judge, level, role, stage, {", ".join(AMOUNTS)}
    FROM tally WHERE run = ? ORDER BY 1, 2, 3, 4, 5, 6"""  # noqa: S608 - names are ours
_PACES = """
    SELECT role, model, SUM(seconds), SUM(calls) FROM (
        SELECT s.role, s.calls, s.seconds, CASE s.role
            WHEN 'target' THEN e.target WHEN 'optimizer' THEN e.optimizer ELSE e.judge END AS model
        FROM spent s JOIN event e ON e.id = s.event
        WHERE s.calls > 0 AND s.stage NOT IN ('preflight', 'canary') ORDER BY s.event DESC LIMIT ?
    ) GROUP BY role, model"""
_NEWEST = 2000
"""Parts of costs that say how long calls take; older ones would reflect other conditions."""


def spent_rows(index: Index, run: str) -> tuple[SpentRow, ...]:
    """Return what the events of ``run`` cost, the oldest first."""
    parts: dict[int, list[CostPart]] = {}
    for event, role, stage, *amounts in index.select(_PARTS, (run,)):
        parts.setdefault(event, []).append(CostPart(role=role, stage=stage, cost=_cost(amounts)))
    return tuple(_spent_row(row, parts.get(row[0], ())) for row in index.select(_EVENTS, (run,)))


def spent_sums(index: Index, run: str) -> tuple[SpentRow, ...]:
    """Return what ``run`` cost in few rows, as if all events of the same models were one."""
    wholes: list[tuple[Any, ...]] = []
    parts: dict[tuple[Any, ...], list[CostPart]] = {}
    for target, optimizer, judge, level, role, stage, *amounts in index.select(_SUMS, (run,)):
        if level < 2:  # noqa: PLR2004 - see the table
            wholes.append((target, optimizer, judge, level, amounts))
        else:
            part = CostPart(role=role, stage=stage, cost=_cost(amounts))
            parts.setdefault((target, optimizer, judge, 1), []).append(part)
    event = (0, run, EventKind.RUN_STARTED, "step", 0, 0, None)
    return tuple(
        _spent_row((*event, *models, *amounts), parts.get((*models, level), ())) for *models, level, amounts in wholes
    )


_STRETCHES = """
    SELECT MIN(step), MAX(step), SUM(calls), SUM(tokens_in + tokens_out), SUM(usd), SUM(unpriced)
    FROM event WHERE run = :run
    GROUP BY step / (SELECT MAX(1, (MAX(step) + :most) / :most) FROM event WHERE run = :run) ORDER BY 1"""


class SpentStretch(NamedTuple):
    """What some steps in a row cost, with all that belongs to them."""

    first: int
    last: int
    calls: int
    tokens: int
    usd: float
    unpriced: int  # calls whose price is not known


def spent_stretches(index: Index, run: str, most: int) -> tuple[SpentStretch, ...]:
    """Return what the steps of ``run`` cost, oldest first; more than ``most`` are taken together, evenly."""
    return tuple(SpentStretch(*row) for row in index.select(_STRETCHES, {"run": run, "most": most}))


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
