"""``skillgit cost``: where the tokens and the dollars of a run went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from skillgit.app.history.status import Unfinished, unfinished
from skillgit.app.workspace.revision import default_run, find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import COUNTS, Cost, CostPart, CostSum, Grouping
from skillgit.index import queries, spending
from skillgit.index.rows import SpentRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What one part of a run cost, or all of it; what does not identify the part is empty or absent."""

    run: str = ""
    role: str = ""  # the role that asked; empty for calls whose role the history does not say
    stage: str = ""
    model: str = ""  # as `backend/model`
    version: int | None = None  # what everything since the version before led to; absent after the last version
    step: int | None = None  # 0 for the start of a run
    epoch: int | None = None
    kind: str = ""
    origin: str = ""  # where its candidate comes from: a step, or the reflection on an epoch (`meta`)
    calls: int = 0
    tokens_in: int = 0  # tokens sent, cached ones included
    tokens_out: int = 0  # tokens received, reasoning included
    cached: int = 0  # tokens sent that came from the provider's cache
    cache_written: int = 0
    reasoning: int = 0
    unpriced: int = 0
    reused: int = 0  # answers that other commands had paid for; of events, versions and runs
    unidentified: int = 0  # those of them of which no server was recorded
    usd: float | None = None  # absent if it is not known
    seconds: float = 0.0  # of events, versions and runs the wall time; of roles, stages and models the time of calls
    share: float = 0.0  # of the whole, between 0 and 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """A model whose price was not known when it was asked."""

    model: str  # `backend/model`; empty if the history does not say
    calls: int  # calls of it that count as 0 dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    run: str  # the run; empty if there are several, or none
    by: str  # what rows are made by: `role stage`, one of the groupings, or `run`
    rows: tuple[CostRow, ...]
    total: CostRow  # all of them; its seconds are wall time
    share_of: str  # what shares are shares of: `usd`, or `tokens` where dollars are not known
    unpriced: tuple[Unpriced, ...] = ()
    unfinished: tuple[Unfinished, ...] | None = None  # events not recorded yet, in no row and no total; None if unknown


def cost(workspace: Workspace, run: str | None, *, by: Grouping | None = None, all_runs: bool = False) -> Spending:
    """Return what a run, or without a name the default run, cost by role and stage, or by something else."""
    name = run if all_runs else default_run(workspace) if run is None else find_run(workspace, run)
    names = queries.run_names(workspace.index) if all_runs else () if name is None else (name,)
    # the sums of a long run are made by the index, unless its events are listed one by one
    query = spending.spent_rows if by in {Grouping.STEP, Grouping.VERSION} else spending.spent_sums
    rows = [row for name in names for row in query(workspace.index, name)]
    making = unfinished(workspace, names)
    sums, whole, unpriced_calls = dict[CostRow, CostSum](), CostSum(), Counter[str]()
    for slot, part in _placed(rows, by, all_runs=all_runs):
        sums.setdefault(slot, CostSum()).add(part)
    for row in rows:
        whole.add(row.cost)
        for part_of_row in _parts(row.cost):
            unpriced_calls[row.models.get(part_of_row.role, "")] += part_of_row.cost.unpriced
    total = whole.total()
    in_dollars = total.usd > 0 and not total.unpriced

    def amount(cost: Cost) -> float:
        return cost.usd if in_dollars else cost.tokens_in + cost.tokens_out

    def filled(slot: CostRow, cost: Cost) -> CostRow:
        return replace(
            slot,
            **{name: getattr(cost, name) for name in COUNTS},
            usd=cost.known_usd,
            seconds=round(cost.seconds, 1),
            share=amount(cost) / amount(total) if amount(total) else 0.0,
        )

    return Spending(
        run="" if all_runs or not names else names[0],
        by="run" if all_runs else by or "role stage",
        rows=tuple(filled(slot, part.total()) for slot, part in sums.items()),
        total=filled(CostRow(), total),
        share_of="usd" if in_dollars else "tokens",
        unpriced=tuple(Unpriced(model=model, calls=calls) for model, calls in sorted(unpriced_calls.items()) if calls),
        unfinished=making,
    )


def _placed(rows: Sequence[SpentRow], by: Grouping | None, *, all_runs: bool) -> Iterator[tuple[CostRow, Cost]]:
    """Yield each cost with the row that it belongs to."""
    if all_runs:
        yield from ((CostRow(run=row.run), row.cost) for row in rows)
    elif by is Grouping.STEP:
        for row in rows:
            if row.cost.calls:
                slot = CostRow(version=row.version, step=row.step, epoch=row.epoch, kind=row.kind, origin=row.origin)
                yield slot, row.cost
    elif by is Grouping.VERSION:
        # an event belongs to the version that it led to: the first one that was made by it or after it
        waiting: list[Cost] = []
        for row in rows:
            waiting.append(row.cost)
            if row.version is not None:
                yield from ((CostRow(version=row.version), cost) for cost in waiting)
                waiting.clear()
        yield from ((CostRow(), cost) for cost in waiting if cost.calls)
    else:
        parts = [(row, part) for row in rows for part in _parts(row.cost)]
        for row, part in sorted(parts, key=lambda entry: (entry[1].role, entry[1].stage)):
            if by is Grouping.MODEL:
                yield CostRow(model=row.models.get(part.role, "")), part.cost
            else:
                role, stage = (
                    part.role if by is not Grouping.STAGE else "",
                    part.stage if by is not Grouping.ROLE else "",
                )
                yield CostRow(role=role, stage=stage), part.cost


def _parts(cost: Cost) -> tuple[CostPart, ...]:
    """Return the parts of a cost; one without a name where the history names none."""
    return cost.parts or ((CostPart(role="", stage="", cost=cost),) if cost.calls else ())
