"""What a run has spent on events that are not recorded yet: the ledger keeps it, and going on does not buy it again.

The ledger stays on the machine that paid. Elsewhere, and in the past, nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.calls.ledger import Ledger
from skillgit.domain.event import Edited, Origin, SlowMerged
from skillgit.engine.scope import (
    event_scope,
    finish_scope,
    intervention_scope,
    measure_scope,
    meta_scope,
    slow_scope,
    start_scope,
    step_scope,
)
from skillgit.errors import HistoryError
from skillgit.index import spending

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillgit.app.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.event import Event
    from skillgit.index.rows import ProgressRow

LEDGER = "ledger.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """One event in the making.

    Attributes:
        run: The run.
        what: What the event is, as ``step 4``.
        cost: What the ledger holds for it; its seconds are those of the calls, added up.
    """

    run: str
    what: str
    cost: Cost


def unfinished(workspace: Workspace, runs: Iterable[str]) -> tuple[Unfinished, ...] | None:
    """Return what ``runs`` have spent on events in the making; None where there is no ledger, and in the past."""
    if workspace.past:
        return None
    try:
        path = workspace.repo.private_dir / LEDGER
        if not path.is_file():
            return None
        with Ledger.read(path) as ledger:
            return tuple(
                one for run in runs for one in in_the_making(ledger, run, spending.progress(workspace.index, run))
            )
    except (HistoryError, OSError):  # it cannot be read, a newer skillgit wrote it, or something stands in its way
        return None


def in_the_making(ledger: Ledger, run: str, progress: ProgressRow) -> tuple[Unfinished, ...]:
    """Return what the ledger holds for the events of ``run`` that are not recorded."""
    spent = ((what, ledger.spent(scope)) for scope, what in open_scopes(run, progress))
    return tuple(
        Unfinished(run=run, what=what, cost=replace(cost, seconds=round(cost.seconds, 1)))
        for what, cost in spent
        if cost.calls
    )


def lacking_calls(ledger: Ledger, events: Iterable[Event]) -> int:
    """Return how many of the calls that ``events`` paid for ``ledger`` does not hold.

    An event may use an answer that one before it paid for. Without the ledger it buys that answer itself.
    """
    paid: dict[str, int] = {}
    for event in events:
        if not isinstance(event, Edited | SlowMerged):
            scope = event_scope(event)
            paid[scope] = paid.get(scope, 0) + event.cost.calls
    return sum(max(0, calls - ledger.spent(scope).calls) for scope, calls in paid.items() if calls)


def open_scopes(run: str, progress: ProgressRow) -> Iterator[tuple[str, str]]:
    """Yield every event of ``run`` that may be in the making, by its scope, with what a person calls it.

    The step after the one in the making is among them, for rollouts run ahead.
    """
    if progress.step is None:
        yield start_scope(run), "baseline"
        return
    if not progress.finished:
        for step in (progress.step + 1, progress.step + 2):
            yield step_scope(run, step), f"step {step}"
        if progress.slow_epoch < progress.epoch:
            yield slow_scope(run, progress.epoch), f"slow update of epoch {progress.epoch}"
        if progress.meta_epoch < progress.epoch:
            yield meta_scope(run, progress.epoch), f"reflection on epoch {progress.epoch}"
        if progress.measured != progress.version:
            yield measure_scope(run, progress.version), f"measurement of v{progress.version}"
        yield finish_scope(run), "final evaluation"
    for origin in Origin:
        if origin is Origin.REVERT:
            yield intervention_scope(run, origin, progress.version + 1), "revert"
        elif origin.intervenes:
            yield intervention_scope(run, origin, progress.interventions + 1), origin.value
