"""Find the version that fixed or broke an item, from recorded outcomes or by measuring a few more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from shlex import quote
from typing import Literal

from skillgit.app.history.item import Attempt, attempts
from skillgit.app.history.requests import ItemsRequest
from skillgit.app.recorded.evaluation_notes import Note, as_outcomes_note, record
from skillgit.app.recorded.outcomes import Attempted, Own, absences, load, unknown_item
from skillgit.app.recorded.run_record import recorded_items
from skillgit.app.setup.basis import Lender, ResultBasis
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.recorded_setup import differences, measuring_setup
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.revision_range import split_range
from skillgit.app.workspace.workspace import Absence, Workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.proposal import EditRecord
from skillgit.domain.skill import Skill
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import queries, version_queries
from skillgit.index.item_queries import MeasuredRow
from skillgit.index.rows import LogRow
from skillgit.store import diff as store_diff
from skillgit.store.history_reader import read_commit, skill_at

Line = list[Attempted]
"""The versions that the last of them was made of, oldest first, with the outcome of one item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Two measured versions, with none that was measured between them, of which one solves the item."""

    older: str
    newer: str
    change: Literal["fixed", "broken"]  # whether the newer one `fixed` the item or was the one that has it `broken`


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    basis: ResultBasis | None = None  # what was measured with; absent where nothing was
    run: str
    item: str
    first: str
    last: str
    flip: Flip | None  # the newest flip between them; absent if the outcome never changed, or is the same at both ends
    older: Attempt  # the item under the older version of the flip, or under the oldest one without a flip
    newer: Attempt  # the item under the newer version of the flip, or under the newest one without a flip
    suspects: tuple[str, ...]  # the versions that may have done it: one, or several if some between were not measured
    row: LogRow | None  # the version that did it, as the log has it; absent if there are several suspects
    edits: tuple[EditRecord, ...]  # what it did to the skill, edit by edit
    diff: str  # how it changed the skill, as git prints it; empty if there are several suspects
    flips: tuple[Flip, ...]  # all flips between the ends that are known, oldest first
    gaps: tuple[str, ...] = ()  # suspects with an outcome unknown for want of evidence; without a flip, of all versions
    absence: Absence | None = None  # why it is not; absent without such versions
    told: tuple[str, ...] = ()  # those of the suspects whose commit message says that they did it
    measured: tuple[str, ...] = ()  # the versions that were rolled out for this, in this order
    cost: Cost | None = None  # what that cost; absent if nothing was asked


def bisect(workspace: Workspace, request: ItemsRequest, watcher: EvalWatcher | None = None) -> Bisected | Plan:
    """Return which version fixed or broke an item; for a dry run the plan of what would be measured for it."""
    run, ends = _ends(workspace, request.run)
    item, index = request.item or "", workspace.index
    line = _line(workspace, run, item, measure=request.measure)
    first, last = ends or (0, max((row.version or 0 for row, _ in line), default=0))
    versions = version_queries.lineage(index, run, first, last)
    if not versions:
        older, newer = version_label(first), version_label(last)
        raise UsageError(
            f"{newer} was not made of {older}: they are on two lines",
            hint=f"skillgit diff {run}/{older} {run}/{newer} --items",
        )
    line = [(row, cell) for row, cell in line if row.version in versions]
    rollouts: tuple[tuple[str, ...], Cost | None, ResultBasis | None] = (), None, None
    if request.measure and watcher is not None:
        measured_line = _search(workspace, request, line, watcher, newest=ends is None)
        if isinstance(measured_line, Plan):
            return measured_line
        rollouts = measured_line
        cells = dict(_line(workspace, run, item, measure=True))
        line = [(row, cells[row]) for row, _ in line]
    scored = _scored(line)
    _check_scored(workspace, request, line, scored, has_ends=ends is not None)
    flips = tuple(
        Flip(older=older.label, newer=newer.label, change="fixed" if after.solved else "broken")
        for (older, before), (newer, after) in pairwise(scored)
        if before.solved != after.solved
    )
    # without ends any flip is looked for, with ends their outcomes have to differ
    is_wanted = flips and (ends is None or scored[0][1].solved != scored[-1][1].solved)
    flip = flips[-1] if is_wanted else None
    names = [row.label for row, _ in line]
    around = [pair for pair in scored if flip and pair[0].label in {flip.older, flip.newer}]
    older_try, newer_try = attempts(workspace, around or (scored[0], scored[-1]), item)
    suspects = line[names.index(flip.older) + 1 : names.index(flip.newer) + 1] if flip else []
    absent = dict(_absent(workspace, suspects or line))
    lacking = attempts(workspace, [(row, None) for row in absent], item)
    culprit, event, diff = suspects[0][0] if len(suspects) == 1 else None, None, b""
    if culprit is not None:
        event = read_commit(workspace.repo, culprit.commit).event
        sources = version_queries.sources(index, [culprit.commit])
        diff = store_diff.change(workspace.repo, culprit.commit, event.skill, sources)
    return Bisected(
        run=run,
        item=item,
        first=names[0],
        last=names[-1],
        flip=flip,
        older=older_try,
        newer=newer_try,
        suspects=tuple(row.label for row, _ in suspects),
        row=queries.row_of_commit(index, culprit.commit) if culprit is not None else None,
        edits=() if event is None else event.edits,
        diff=diff.decode(errors="replace"),
        flips=flips,
        gaps=tuple(attempt.name for attempt in lacking),
        absence=next(iter(absent.values()), None),
        told=tuple(attempt.name for attempt in lacking if flip is not None and attempt.told == flip.change),
        measured=rollouts[0],
        cost=rollouts[1],
        basis=rollouts[2],
    )


def _ends(workspace: Workspace, words: str | None) -> tuple[str, tuple[int, int] | None]:
    """Return the run to look at and, where the user named two versions, their numbers in order.

    As in log, an end that is left out is that of the run.
    """
    ends = split_range(words) if words is not None else None
    if ends is None:
        return find_run(workspace, words), None
    run, slash, _ = (ends[0] or ends[1]).rpartition("/")
    names = ends[0] or f"{run}{slash}{version_label(0)}", ends[1] or f"{run}{slash}head"
    rows = [event_in(workspace, name) for name in names]
    numbers = sorted(row.version for row in rows if row.version is not None)
    if len(numbers) != len(rows):
        name = next(name for name, row in zip(names, rows, strict=True) if row.version is None)
        raise UsageError(f"{name} is not a version", hint="name two versions, like v3..v7")
    if rows[0].run != rows[1].run:
        raise UsageError("the two versions belong to different runs", hint="name two versions of one run")
    if numbers[0] == numbers[1]:
        raise UsageError("the two versions are the same", hint="name two versions, like v3..v7")
    return rows[0].run, (numbers[0], numbers[1])


def _line(workspace: Workspace, run: str, item: str, *, measure: bool) -> Line:
    outcomes = load(workspace, run, item=item)
    if item in outcomes.cells:
        return outcomes.attempts(item)
    if measure and item in (recorded_items(workspace, run, Split.SELECTION) or ()):
        return [(text, None) for text in outcomes.texts]
    raise unknown_item(workspace, run, item)


def _scored(line: Line) -> list[Own]:
    return [(row, cell) for row, cell in line if cell is not None and cell.solved is not None]


def _absent(workspace: Workspace, line: Line) -> Iterator[tuple[MeasuredRow, Absence]]:
    """Yield the versions whose outcome was recorded, and is not known here for want of evidence."""
    reasons = absences(workspace, line[0][0].run)
    for row, cell in line:
        if cell is None and row.event is not None and row.event in reasons:
            yield row, reasons[row.event]


def _check_scored(
    workspace: Workspace, request: ItemsRequest, line: Line, scored: Sequence[Own], *, has_ends: bool
) -> None:
    """Refuse a line of which nothing is known, or not what its two ends are."""
    known_rows = [row for row, _ in scored]
    blanks = [row for row in (line[0][0], line[-1][0]) if has_ends and row not in known_rows]
    if not blanks and scored:
        return
    item = request.item or ""
    for row, why in _absent(workspace, line):
        if not blanks or row in blanks:
            between = quote(request.run if has_ends and request.run else row.run)
            raise NotFoundError(
                f"whether {row.label} solves {item} is not known: {why.sentence(row.label)}",
                hint=f"skillgit items {between} --item {quote(item)} --measure rolls it out;"
                f" skillgit log {row.run} --item {quote(item)} shows what commit messages say",
            )
    subject = f"{blanks[0].label} was not" if blanks else "no version was"
    raise NotFoundError(
        f"{subject} measured on {item}", hint="--measure rolls the item out where an outcome is missing"
    )


def _search(
    workspace: Workspace, request: ItemsRequest, line: Line, watcher: EvalWatcher, *, newest: bool
) -> tuple[tuple[str, ...], Cost, ResultBasis] | Plan:
    """Roll out the item under the ends, then halve what is left; note each, and return those versions and the cost."""
    run = line[0][0].run
    setup = measuring_setup(workspace, Lender(run=run), request)
    if differing := differences(workspace, run, setup):
        raise UsageError("; ".join(differing), hint="measure as the run did, or compare with: skillgit eval")
    [item] = (item for item in setup.task.items[Split.SELECTION] if item.id == request.item)
    notes: dict[str, list[Note]] = {}
    fresh: list[str] = []

    def skill_of(row: MeasuredRow) -> Skill:
        return skill_at(workspace.repo, row.commit, workspace.index.skill_path(run))

    with Measurement(workspace, setup, request, watcher, command="items").open() as measurement:
        # at most the ends, then half of what is left again and again
        open_rows = [row for row, cell in line if cell is None or cell.solved is None]
        ends = sum(row in open_rows for row in (line[0][0], line[-1][0]))
        planner = measurement.planner()
        most = ends + (len(open_rows) - ends).bit_length()
        planner.may_roll_out("search", skill_of(line[-1][0]), [item], most)
        facts = {"item": item.id, "versions": f"{len(line)}, {len(open_rows)} of them without an outcome"}
        plan = planner.plan("items", facts, caps=request.caps)

        async def work() -> Cost:
            outcomes = {row.commit: cell.solved for row, cell in _scored(line)}
            while (row := _next(line, outcomes, newest=newest)) is not None:
                evaluation = await measurement.measure(row.label, skill_of(row), Split.SELECTION, [item])
                outcome = evaluation.outcomes[item.id]
                outcomes[row.commit] = outcome.passed if isinstance(outcome, Scored) else None
                fresh.append(row.label)
                if isinstance(outcome, Scored):
                    conditions = {"target": measurement.target, "environment": setup.task.digest, "setup": setup.digest}
                    note = as_outcomes_note(evaluation, **conditions, time=workspace.context.clock())
                    notes.setdefault(row.commit, []).append(note)
            return measurement.cost()

        cost = measurement.carry_out(plan, work(), note=lambda: record(workspace, notes, workspace.context.clock()))
    return cost if isinstance(cost, Plan) else (tuple(fresh), cost, measurement.basis)


def _next(line: Line, outcomes: dict[str, bool | None], *, newest: bool) -> MeasuredRow | None:
    """Return the version to ask next: an end, or the middle of those that the newest flip leaves open."""
    ends = [row for row in (line[0][0], line[-1][0]) if row.commit not in outcomes]
    if ends:
        return ends[0]
    verdicts = [(row, outcome) for row, _ in line if (outcome := outcomes.get(row.commit)) is not None]
    flips = [(older, newer) for (older, before), (newer, two) in pairwise(verdicts) if before != two]
    if not flips or (not newest and verdicts[0][1] == verdicts[-1][1]):
        return None
    rows = [row for row, _ in line]
    older, newer = flips[-1]
    between = rows[rows.index(older) + 1 : rows.index(newer)]
    open_rows = [row for row in between if row.commit not in outcomes]
    return open_rows[len(open_rows) // 2] if open_rows else None
