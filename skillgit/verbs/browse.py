"""What pages and screens read that no command prints: runs and events page by page, and how scores and costs went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillgit.app.workspace.revision import default_run, find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Metric
from skillgit.domain.statistics import wilson_interval
from skillgit.errors import RevisionNotFoundError
from skillgit.index import event_pages, queries
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.refresh import Index
from skillgit.index.rows import LogRow, RunRow
from skillgit.lazy import loaded_on_use
from skillgit.view.curve import Axis, CurvePoint, RunCurve, is_mark
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


CURVE_POINTS = 240
"""Even steps, and stretches of versions, of which a curve has points: about one for each few pixels of a wide chart."""


def curves(
    workspace: Workspace, names: Sequence[str], by: Axis = Axis.STEP, *, most: int = CURVE_POINTS
) -> tuple[RunCurve, ...]:
    """Return the curves of ``names``, each once; of long runs ``most`` even steps and each new best have points."""
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


def cost_by_stretch(workspace: Workspace, run: str, most: int) -> tuple[spending.SpentStretch, ...]:
    """Return what the steps of ``run`` cost, oldest first, many of them taken together to at most ``most``."""
    return spending.spent_stretches(workspace.index, find_run(workspace, run), most)


def beside(workspace: Workspace, rows: Sequence[LogRow]) -> log.Parents:
    """Return what :func:`~skillgit.app.history.log.parents_beside` does, for a page of events."""
    return log.parents_beside(workspace.repo, rows)
