"""``skillgit log``: the events of a run, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from skillgit.app.history.requests import LogRequest
from skillgit.app.workspace.request import MisuseError
from skillgit.app.workspace.revision_range import Span, span_of
from skillgit.app.workspace.workspace import BRING, Absence, Workspace
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import NotFoundError
from skillgit.index import log_filter, queries
from skillgit.index.log_filter import Selection
from skillgit.index.rows import LogRow
from skillgit.lazy import loaded_on_use
from skillgit.store.repo import Repo

with loaded_on_use():  # most logs read no evidence, no change and no time
    from skillgit.app.recorded import outcomes, run_record
    from skillgit.app.workspace import skills_here
    from skillgit.domain import evaluation
    from skillgit.index import version_queries
    from skillgit.store import diff as store_diff
    from skillgit.store import git_binary

Flip = Literal["fixed", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Events, newest first unless asked otherwise."""

    run: str  # the run that they belong to; empty if they are of all runs or there is no run
    rows: tuple[LogRow, ...]
    flips: Mapping[str, Mapping[str, Flip]] = field(default_factory=dict)  # by commit and item asked for
    untold: tuple[str, ...] = ()  # versions that may have fixed or broken one of them, unknown here, newest first
    absence: Absence | None = None  # why not; absent if nothing is unknown
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # for a graph: other events it rests on


def log(workspace: Workspace, request: LogRequest | None = None) -> Log:
    """Return the events that are ``request``; nothing where there is no run."""
    request = request or LogRequest()
    span = part_of_history(workspace, request.words, all_runs=request.all_runs)
    if span is not None and not span.run:
        return Log(run="", rows=())
    for item in request.items:
        _check_item(workspace, item)
    index, repo, now = workspace.index, workspace.repo, workspace.context.clock()
    choice = replace(
        span.selection(index) if span else Selection(skill=workspace.skill),
        with_rejected=request.with_rejected,
        kinds=frozenset(request.events),
        words=request.grep,
        since=git_binary.moment(repo, request.since, now) if request.since else None,
        until=git_binary.moment(repo, request.until, now) if request.until else None,
        items=request.items,
    )
    rows = queries.selected_rows(index, choice, request.limit)
    parents = parents_beside(repo, rows) if request.graph else {}
    rows = in_order(rows, parents) if request.graph else rows
    rose = log_filter.flips(index, [row.commit for row in rows], request.items) if request.items else {}
    # of these versions neither outcomes nor messages say what they did to the item
    commits = log_filter.untold(index, choice) if request.items else ()
    untold = [row for commit in commits if (row := queries.row_of_commit(index, commit)) is not None]
    absences = {kind for run in {row.run for row in untold} for kind in outcomes.absences(workspace, run).values()}
    return Log(
        run=choice.run,
        rows=rows[::-1] if request.reverse else rows,
        flips={
            commit: {item: "fixed" if is_fix else "broken" for item, is_fix in changes.items()}
            for commit, changes in rose.items()
        },
        untold=tuple(str(row.address) for row in untold),
        absence=next((kind for kind in Absence if kind in absences), None),
        parents=parents,
    )


def part_of_history(workspace: Workspace, words: Sequence[str], *, all_runs: bool) -> Span | None:
    """Return the part of a run that ``words`` mean; None for all runs."""
    if all_runs and words:
        raise MisuseError("--all cannot be combined with a run or range", hint="leave out the run or the range")
    return None if all_runs else span_of(workspace, words)


def changes(workspace: Workspace, rows: Sequence[LogRow], *, patch: bool, stat: bool) -> Iterator[tuple[LogRow, bytes]]:
    """Yield each event with what it changed in the skill, as git prints it; empty for events that changed nothing."""
    options = (*(("--stat",) if stat else ()), *(("-p",) if patch else ()))
    paths = {run: workspace.index.skill_path(run) for run in {row.run for row in rows}}
    # runs that take turns mostly train one skill
    for path, stretch in groupby(rows, lambda row: paths[row.run]):
        part = list(stretch)
        commits = [row.commit for row in part]
        sources = version_queries.sources(workspace.index, commits)
        texts = store_diff.patches(workspace.repo, commits, path, options, sources)
        yield from zip(part, texts, strict=True)


def _check_item(workspace: Workspace, item: str) -> None:
    if log_filter.knows_item(workspace.index, item):
        return
    runs = queries.run_names(workspace.index)
    plans = {run: run_record.recorded_items(workspace, run, evaluation.Split.SELECTION) for run in runs}
    if any(item in (plan or ()) for plan in plans.values()):
        return
    names = sorted({*log_filter.item_names(workspace.index), *(name for plan in plans.values() for name in plan or ())})
    for run, plan in plans.items():
        if not plan and (absences := set(outcomes.absences(workspace, run).values()) - {Absence.DROPPED}):
            raise NotFoundError(
                f"no commit message names '{item}', and the items of run {run} are not known here",
                hint=f"bring them: {BRING}" if Absence.AWAY in absences else f"skillgit items {run} lists those known",
            )
    if not names:
        raise NotFoundError("no item was measured yet", hint=skills_here.train_hint(workspace.repo, workspace.skill))
    raise NotFoundError(
        f"no event measured an item '{item}'",
        hint=did_you_mean(item, names, otherwise=f"items are {', '.join(names[:8])}, …", most=3),
    )


_STARTED, _EDITED, _ACCEPTED, _MERGE = EventKind.RUN_STARTED, EventKind.EDITED, EventKind.ACCEPTED, "merge"

Parents = dict[str, tuple[str, ...]]
"""Commit to what it rests on besides the event before it in its run, as far as that is an event."""


def parents_beside(repo: Repo, rows: Sequence[LogRow]) -> Parents:
    """Return what ``rows`` rest on, if among them, besides what is before them.

    That is a fork's origin, a merge's source, and the older versions that an accepted candidate was made of.
    """
    commits = {row.commit for row in rows}
    parents_of: Parents = {}
    for row in rows:
        # nothing else has a parent besides the event before it, and a look at every commit takes longer than the log
        if row.kind in {_STARTED, _EDITED} or row.origin == _MERGE or (row.kind == _ACCEPTED and row.lines):
            parents = [str(parent) for parent in repo.commit(row.commit).parent_ids]
            beside = parents if row.kind == _STARTED else parents[1:]
            parents_of[row.commit] = tuple(parent for parent in beside if parent in commits)
    return {commit: parents for commit, parents in parents_of.items() if parents}


def in_order(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]]) -> tuple[LogRow, ...]:
    """Return ``rows``, which are newest first, so that a run's events are together and below all that rests on them."""
    index_of = {row.commit: index for index, row in enumerate(rows)}
    older: dict[str, int] = {}
    below: list[list[int]] = [[] for _ in rows]
    for index in reversed(range(len(rows))):
        row = rows[index]
        rests_on = [older[row.run]] if row.run in older else []
        below[index] = list(dict.fromkeys([*rests_on, *(index_of[parent] for parent in parents.get(row.commit, ()))]))
        older[row.run] = index
    waits = [0] * len(rows)
    for index in (index for lower in below for index in lower):
        waits[index] += 1
    free = [index for index in reversed(range(len(rows))) if not waits[index]]
    order: dict[int, None] = {}
    while free:
        index = free.pop()
        order[index] = None
        for lower in below[index]:
            waits[lower] -= 1
            if not waits[lower]:
                free.append(lower)
    # after a clock went wrong, times and commits may contradict each other; what goes round in circles is shown, too
    order.update(dict.fromkeys(range(len(rows))))
    return tuple(rows[index] for index in order)
