"""``skillgit log``: the events of a run, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.revision import default_run, find_run
from skillgit.app.workspace import open_workspace
from skillgit.domain.event import EVENT_NAMES
from skillgit.errors import UsageError
from skillgit.index import queries

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Events, newest first.

    Attributes:
        run: The run that they belong to; empty if they are of all runs or there is no run.
        rows: The events.
    """

    run: str
    rows: tuple[LogRow, ...]


def log(
    context: Context,
    run: str | None,
    *,
    rejected: bool = True,
    limit: int | None = None,
    events: frozenset[str] = frozenset(),
    grep: str = "",
    all_runs: bool = False,
) -> Log:
    """Return the events of a run, newest first; nothing where there is no run.

    Args:
        context: Where to look.
        run: The run; None for the default run.
        rejected: Whether to list rejected candidates.
        limit: How many events at most.
        events: Kinds of events to list; none for all.
        grep: List only events whose title, reasons or text hold words that begin with each of these.
        all_runs: List the events of all runs, by time.

    Raises:
        UsageError: There is no such kind of event.
        RevisionNotFoundError: There is no such run.
    """
    unknown = sorted(events - frozenset(EVENT_NAMES.values()))
    if unknown:
        raise UsageError(f"there is no event '{unknown[0]}'", hint=f"events are {', '.join(EVENT_NAMES.values())}")
    with open_workspace(context) as workspace:
        chosen = None
        if not all_runs:
            chosen = default_run(workspace) if run is None else find_run(workspace, run)
            if chosen is None:
                return Log(run="", rows=())
        rows = queries.log_rows(workspace.index, chosen, rejected=rejected, kinds=events, words=grep, limit=limit)
        return Log(run=chosen or "", rows=rows)
