"""What pages and screens read that no command prints: runs and events page by page, and how scores and costs went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillgit.app.workspace.revision import default_run, event_in, find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.errors import RevisionNotFoundError, UsageError
from skillgit.index import event_pages, queries
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.refresh import Index
from skillgit.index.rows import LogRow, RunRow
from skillgit.lazy import loaded_on_use
from skillgit.view.curve import Axis, Baseline, Range, RunCurve, run_curve
from skillgit.view.numbers import score
from skillgit.view.surface import UNICODE

with loaded_on_use():  # only pages ask for it, and the first picture of the screens does not wait for it
    from skillgit.app.history import log
    from skillgit.index import spending, version_queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    runs: tuple[RunRow, ...]  # those that can be read, the one with the newest event first
    run: str  # the default run; empty without runs
    failures: tuple[tuple[str, str], ...]  # run to why its history cannot be read
    fresh: bool  # whether the index on disk answered; otherwise a stand-in in memory did
    checkout: str  # the commit that the work tree holds; empty without one


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStretch:
    """Some events in a row, newest first."""

    offset: int  # the place of the first one, from 0
    rows: tuple[LogRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage(EventStretch):
    """The first stretch that is read of a list, with how long that is."""

    total: int  # how many there are that the narrowing lets through
    everything: int  # how many there are without it
    position: int | None = None  # the place of the event that was asked for; absent if it is not among them
    why_empty: str = ""  # what nearly passed, where the narrowing lets nothing through


def overview(workspace: Workspace) -> Overview:
    index = workspace.index
    rows = queries.run_rows(index, workspace.live())
    try:
        default = default_run(workspace) if rows else None
    except RevisionNotFoundError:
        # the configured run was deleted; the list shows what there is
        default = rows[0].name
    return Overview(
        runs=rows,
        run=default or "",
        failures=tuple((run, str(error)) for run, error in sorted(index.broken.items())),
        fresh=index.on_disk,
        checkout=workspace.repo.head()[1],
    )


def page(workspace: Workspace, narrowing: Selection, offset: int, limit: int, commit: str = "") -> EventPage:
    """Return at most ``limit`` events, without the ``offset`` newest ones."""
    index = workspace.index
    gathering = event_pages.gather(index, narrowing)
    index_of_commit = event_pages.place(index, gathering, commit) if commit else None
    if commit and index_of_commit is not None:
        offset = index_of_commit // limit * limit
    total, whole = event_pages.count(index, gathering), narrowing.without_filter()
    return EventPage(
        offset=offset,
        rows=event_pages.rows(index, gathering, offset, limit, total=total),
        total=total,
        everything=total if narrowing == whole else event_pages.count(index, whole),
        position=index_of_commit,
        why_empty="" if total else _near_misses(index, narrowing),
    )


def _near_misses(index: Index, narrowing: Selection) -> str:
    """Say what would be listed if one part of ``narrowing``, which lists nothing, were not there."""
    number, highest = event_pages.settled_early(index, narrowing)
    early = f"{number} stopped early, known as {UNICODE.at_most}{score(highest)}" if number else ""
    counts = ((word, event_pages.count(index, wider)) for word, wider in narrowing.wider())
    return "; ".join(filter(None, (early, *(f"{count:,} without {word}" for word, count in counts if count))))


def stretch(workspace: Workspace, narrowing: Selection, offset: int, limit: int, total: int) -> EventStretch:
    """Return ``limit`` events from ``offset`` on of a list that is known to have ``total``; nothing is counted."""
    rows = event_pages.rows(workspace.index, narrowing, offset, limit, total=total)
    return EventStretch(offset=offset, rows=rows)


def score_line(workspace: Workspace, run: str, most: int) -> tuple[tuple[Point, ...], int]:
    """Return the scores of all of ``run``, oldest first, and every which step they are of: at most ``most``."""
    return event_pages.sampled_points(workspace.index, run, most)


def find_row(workspace: Workspace, name: str) -> RunRow:
    """Return the run that ``name`` or its beginning is; a RevisionNotFoundError without one."""
    run = find_run(workspace, name)
    row = queries.run_row(workspace.index, run, workspace.live())
    if row is None:
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    return row


def courses(workspace: Workspace, runs: Sequence[str], most: int = 24) -> Mapping[str, tuple[float, ...]]:
    """Return run to the scores of its versions, oldest first, in ``most`` points each."""
    return version_queries.courses(workspace.index, runs, most) if runs else {}


def curves(
    workspace: Workspace,
    names: Sequence[str],
    by: Axis = Axis.STEP,
    *,
    most: int = event_pages.STEPS,
    within: Range | None = None,
) -> tuple[RunCurve, ...]:
    """Return the curves of ``names``, each once; of long runs ``most`` even steps and each new best have points.

    A part of the axis, ``within``, has as many: steps are even ones of it, amounts those that the whole has there.
    """
    index, live = workspace.index, workspace.live()
    between = within if within is not None and by is Axis.STEP else (0, 2**62)

    def curve(run: RunRow) -> RunCurve:
        rows = event_pages.curve_rows(index, run.name, most, with_spending=by is not Axis.STEP, between=between)
        return run_curve(run, rows, queries.events_of(index, run.name), by, within)

    runs = dict.fromkeys(find_run(workspace, name) for name in names)
    return tuple(curve(row) for run in runs if (row := queries.run_row(index, run, live)) is not None)


def baseline(workspace: Workspace, name: str) -> Baseline:
    """Return the version ``name``, or the best one of the run ``name``, with its score on the selection split."""
    row = queries.run_row(workspace.index, name, {})
    if row is not None:
        return Baseline(f"{name}/{version_label(row.best_version)}", row.best_score)
    event = event_in(workspace, name)
    if event.score is None:
        raise UsageError(f"{event.address} has no score of its own", hint="name a run, or a version that was measured")
    return Baseline(str(event.address), event.score)


def cost_by_stretch(workspace: Workspace, run: str, most: int) -> tuple[spending.SpentStretch, ...]:
    """Return what the steps of ``run`` cost, oldest first, many of them taken together to at most ``most``."""
    return spending.spent_stretches(workspace.index, find_run(workspace, run), most)


def beside(workspace: Workspace, rows: Sequence[LogRow]) -> log.Parents:
    """Return what :func:`~skillgit.app.history.log.parents_beside` does, for a page of events."""
    return log.parents_beside(workspace.repo, rows)
