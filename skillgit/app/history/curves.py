"""How the scores of runs went, to be laid over each other: by step, by paid call or by dollar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.evaluation import Metric
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.statistics import wilson_interval
from skillgit.index import event_pages, queries
from skillgit.index.rows import LogRow, RunRow

POINTS = 240
"""Even steps, and stretches of versions, of which a curve has points: about one for each few pixels of a wide chart."""


class Axis(StrEnum):
    """What a curve runs along."""

    STEP = "step"
    CALL = "call"
    DOLLAR = "dollar"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One event: what the gate decided, where on the axis, and how the run did from then on."""

    row: LogRow
    x: float  # the step, or the calls or the dollars that the run had spent with it
    score: float  # the score of the version that the run is at, on the selection split under the run's metric
    interval: tuple[float, float] | None  # its 95 % Wilson interval; absent for means that are not of hard scores
    is_mark: bool  # whether it is a decision with a score of its own, or a bound of it


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCurve:
    """The score of a run over its course, oldest first: a stair, as each score lasts until the next point."""

    run: RunRow
    by: Axis
    points: tuple[CurvePoint, ...]
    left_out: int  # how many events of the run have no point

    @property
    def end(self) -> float:
        """Where the newest event is on the axis."""
        return self.points[-1].x if self.points else 0.0


_UNMARKED = frozenset({EventKind.SLOW_PROPOSED, EventKind.MEASURED, EventKind.RUN_FINISHED})


def is_mark(row: LogRow) -> bool:
    """Say whether a decision has a sign on a curve: a slow update that was merged has that of its merge."""
    return row.known is not None and (row.kind not in _UNMARKED or row.decision in {"reject", "indecisive"})


def curves(context: Context, names: Sequence[str], by: Axis = Axis.STEP, *, most: int = POINTS) -> tuple[RunCurve, ...]:
    """Return the curves of ``names``, each once; of long runs ``most`` even steps and each new best have points."""
    with open_workspace(context) as workspace:
        index, live = workspace.index, workspace.live()

        def curve(run: RunRow) -> RunCurve:
            rows = event_pages.curve_rows(index, run.name, most, with_spending=by is not Axis.STEP)
            is_hard = run.metric == Metric.HARD.value
            points = tuple(
                CurvePoint(
                    row=row.row,
                    x={Axis.STEP: row.row.step, Axis.CALL: row.calls, Axis.DOLLAR: row.usd}[by],
                    score=row.score,
                    interval=wilson_interval(row.score, row.items) if is_hard and row.items else None,
                    is_mark=is_mark(row.row),
                )
                for row in rows
            )
            return RunCurve(run=run, by=by, points=points, left_out=queries.events_of(index, run.name) - len(points))

        runs = dict.fromkeys(find_run(workspace, name) for name in names)
        return tuple(curve(row) for run in runs if (row := queries.run_row(index, run, live)) is not None)
