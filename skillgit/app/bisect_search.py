"""The rollouts of ``skillgit bisect --run``: one item, only where the search has to know, and noted."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from skillgit.app.bisect import known
from skillgit.app.evaluations import record
from skillgit.app.measuring import Sample, measuring, planned
from skillgit.app.noted_outcomes import as_outcomes_note
from skillgit.app.recipe import differences, find_config
from skillgit.app.setup import set_up
from skillgit.domain.evaluation import Scored, Split
from skillgit.errors import UsageError
from skillgit.store.reader import skill_at

if TYPE_CHECKING:
    from skillgit.app.bisect import BisectRequest, Line
    from skillgit.app.context import Context
    from skillgit.app.evaluations import Note
    from skillgit.app.measuring import EvalWatcher, Measuring
    from skillgit.app.plan import Plan
    from skillgit.app.planner import Planner
    from skillgit.app.setup import Setup
    from skillgit.app.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.trajectory import Item
    from skillgit.index.item_queries import MeasuredRow


def search(
    context: Context, workspace: Workspace, request: BisectRequest, line: Line, watcher: EvalWatcher
) -> tuple[tuple[str, ...], Cost] | Plan:
    """Roll out the item under ends without an outcome, then under versions between, halving what is left.

    Every outcome is noted on the commit of its version, whatever ends the work.

    Returns:
        The versions that were rolled out, and what that cost; for a dry run the plan.

    Raises:
        UsageError: It cannot be measured as the run was: other items, another environment or another target.
    """
    run = line[0][0].run
    config = find_config(context, workspace, [run], config=request.config, overrides=request.overrides)
    setup = set_up(config)
    check_as_run(workspace, run, setup)
    items = {item.id: item for item in setup.task.items[Split.SELECTION]}
    plan = planned(context, workspace, setup, partial(_plan, workspace, request, line, items[request.item]))
    if request.dry_run:
        return plan
    watcher.remark(plan.sentence)
    notes: dict[str, list[Note]] = {}
    asked: list[str] = []

    async def work(door: Measuring) -> Cost:
        solved = {row.commit: cell.solved for row, cell in known(line) if cell is not None}
        while (row := _next(line, solved, newest=request.ends is None)) is not None:
            solved[row.commit] = await _ask(workspace, door, row, items[request.item], notes)
            asked.append(row.label)
        return door.cost()

    try:
        cost = measuring(context, workspace, setup, caps=request.caps, watcher=watcher, work=work)
    finally:
        record(workspace, notes, context.clock())
    return tuple(asked), cost


def _plan(workspace: Workspace, request: BisectRequest, line: Line, item: Item, planner: Planner) -> Plan:
    """Return the most that the search may roll out: the ends, then half of what is left again and again."""
    planner.preflight()
    open_ = [row for row, cell in line if cell is None or cell.solved is None]
    ends = [row for row in (line[0][0], line[-1][0]) if row in open_]
    between = len(open_) - len(ends)
    skill = skill_at(workspace.repo, line[-1][0].commit, workspace.index.skill_path(line[-1][0].run))
    planner.may_roll_out("search", skill, [item], len(ends) + between.bit_length())
    facts = {"item": request.item, "versions": f"{len(line)}, {len(open_)} of them without an outcome"}
    return planner.plan("bisect", facts, caps=request.caps)


def check_as_run(workspace: Workspace, run: str, setup: Setup) -> None:
    """Refuse to measure what cannot be put beside the outcomes of ``run``.

    Raises:
        UsageError: Items, environment, models or their parameters are others.
    """
    if found := differences(workspace, run, setup):
        raise UsageError("; ".join(found), hint="measure as the run did, or compare with: skillgit eval")


async def _ask(
    workspace: Workspace, door: Measuring, row: MeasuredRow, item: Item, notes: dict[str, list[Note]]
) -> bool | None:
    """Return whether the version in ``row`` solves ``item``; None if that could not be found out."""
    skill = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
    found = await door.measure(Sample(name=row.label, skill=skill, items=[item], split=Split.SELECTION))
    outcome = found.outcomes[item.id]
    if not isinstance(outcome, Scored):
        return None
    session = door.session
    note = as_outcomes_note(
        found, target=door.target, environment=session.task.digest, setup=session.setup, time=session.clock()
    )
    notes.setdefault(row.commit, []).append(note)
    return outcome.passed


def _next(line: Line, solved: dict[str, bool | None], *, newest: bool) -> MeasuredRow | None:
    """Return the version to ask next: an end, or the middle of those that the newest flip leaves open."""
    ends = [row for row in (line[0][0], line[-1][0]) if row.commit not in solved]
    if ends:
        return ends[0]
    scored = [(row, told) for row, _ in line if (told := solved.get(row.commit)) is not None]
    flips = [(older, newer) for (older, one), (newer, two) in pairwise(scored) if one != two]
    if not flips or (not newest and scored[0][1] == scored[-1][1]):
        return None
    rows = [row for row, _ in line]
    older, newer = flips[-1]
    between = rows[rows.index(older) + 1 : rows.index(newer)]
    left = [row for row in between if row.commit not in solved]
    return left[len(left) // 2] if left else None
