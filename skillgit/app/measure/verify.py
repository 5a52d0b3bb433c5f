"""``skillgit verify``: measure a version again on a sample of items and say whether its recorded score holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.measure.verification import Claim, ClaimVerdict, claim_of, judge
from skillgit.app.recorded.evaluation_notes import known_evaluations, reads_of_test, record
from skillgit.app.recorded.run_record import recorded_items, start_record, started
from skillgit.app.setup.comparable_conditions import environment_change
from skillgit.app.setup.model_session import MeasuringTerms, evaluation_note, measured_or_planned, planned
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.run_setup import measuring_setup, other_models
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.evaluation import Split
from skillgit.domain.event import RunStarted
from skillgit.errors import NotFoundError
from skillgit.store.history_reader import skill_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.setup.model_session import EvalWatcher, Measuring
    from skillgit.app.setup.planner import Planner
    from skillgit.app.setup.run_setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.evaluation import Evaluation
    from skillgit.domain.trajectory import Item
    from skillgit.index.rows import LogRow

DRAWS = -1_000_000
"""The draws of the seed 0; those of other seeds lie below. No run, placebo or retest has any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest(MeasuringTerms):
    revision: str
    sample: int  # how many items to draw; all, if there are no more
    seed: int = 0
    split: str = Split.SELECTION.value
    note: bool = True  # whether to leave a note on the commit


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlan:
    name: str
    target: str
    split: str
    items: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    name: str
    row: LogRow
    plan: VerifyPlan
    claim: Claim
    verdict: ClaimVerdict
    items: tuple[str, ...]
    noted: bool
    test_reads: int  # how many evaluations on the test split are known of it, this one included if it left a note
    cost: Cost | None  # what it cost; absent if nothing was measured


def verify(context: Context, request: VerifyRequest, watcher: EvalWatcher) -> Verified | Plan:
    """Measure a sample again, with fresh draws, and compare it with what was recorded.

    Nothing is measured where it could not be compared: other items, another environment or another target model.
    """
    with open_workspace(context) as workspace:
        row, split = event_in(workspace, request.revision), Split.parse(request.split)
        claim_and_record = claim_of(workspace, row, split)
        if claim_and_record is None:
            bound = row.bound is not None and split is Split.SELECTION
            lack = "only an upper bound of the score" if bound else "no score"
            raise NotFoundError(
                f"{lack} of {request.revision} on the {split.value} split is recorded",
                hint=f"skillgit eval {quote(request.revision)} --split {split.value}",
            )
        claim, record = claim_and_record
        setup = measuring_setup(context, workspace, [row.run], request)
        items = draw(setup.task.items[split], request.sample, request.seed)
        work = _Verifying(workspace, setup, request, row, items)
        differs = _differs(workspace, row, setup, split)
        if differs and request.dry_run:
            return planned(context, workspace, setup, partial(work.no_cost, differs))
        if differs:
            return work.result(claim, ClaimVerdict(word="not comparable", differs=differs), cost=None)
        result = measured_or_planned(context, workspace, setup, request, watcher, plan=work.cost, work=work.measure)
        if isinstance(result, Plan):
            return result
        evaluation, cost = result
        verdict = judge(claim, record, evaluation, setup.rule)
        work.note(context, evaluation)
        return work.result(claim, verdict, cost=cost)


def draw(items: Sequence[Item], count: int, seed: int) -> tuple[Item, ...]:
    """Return ``count`` of ``items`` in their order; which ones depends on their ids and the seed alone."""
    order = sorted(items, key=lambda item: (hashlib.sha256(f"verify {seed}:{item.id}".encode()).digest(), item.id))
    ids = {item.id for item in order[:count]}
    return tuple(item for item in items if item.id in ids)


class _Verifying:
    def __init__(
        self, workspace: Workspace, setup: Setup, request: VerifyRequest, row: LogRow, items: tuple[Item, ...]
    ) -> None:
        self._workspace = workspace
        self._setup = setup
        self._row = row
        self._drawn = items
        self._request = request
        self._split = Split.parse(request.split)
        self._draw = DRAWS - request.seed
        self._skill = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
        self._noted = False
        self.plan = VerifyPlan(
            name=row.label,
            target=setup.routes["target"].name,
            split=self._split.value,
            items=len(items),
            of=len(setup.task.items[self._split]),
        )

    def cost(self, planner: Planner) -> Plan:
        """Return what it asks: the version on every item that was drawn."""
        planner.preflight()
        planner.roll_out(self._split.value, [(self._skill, self._drawn, self._draw)])
        return planner.plan("verify", self._facts(), caps=self._request.caps)

    def no_cost(self, differs: Sequence[str], planner: Planner) -> Plan:
        """Return the plan where nothing is measured, since it would not compare."""
        return planner.plan("verify", self._facts(), caps=self._request.caps, notes=differs)

    def _facts(self) -> dict[str, str]:
        plan = self.plan
        return {
            "measure": plan.name,
            "target": plan.target,
            "items": f"{plan.items} of {plan.of} {plan.split}",
        }

    async def measure(self, door: Measuring) -> tuple[Evaluation, Cost]:
        name, split = self.plan.name, self._split
        return await door.measure_items(name, self._skill, self._drawn, split, self._draw), door.cost()

    def note(self, context: Context, evaluation: Evaluation) -> None:
        if not self._request.note or not evaluation.scored:
            return
        line = evaluation_note(self._setup, self._drawn, evaluation, context.clock(), sample=self._draw)
        line |= {"sampled_of": self.plan.of}
        self._noted = bool(record(self._workspace, {self._row.commit: [line]}, context.clock()))

    def result(self, claim: Claim, verdict: ClaimVerdict, *, cost: Cost | None) -> Verified:
        evaluations = known_evaluations(self._workspace, self._row.commit, self._row)
        return Verified(
            name=self.plan.name,
            row=self._row,
            plan=self.plan,
            claim=claim,
            verdict=verdict,
            items=tuple(item.id for item in self._drawn),
            noted=self._noted,
            test_reads=reads_of_test(evaluations),
            cost=cost,
        )


def _differs(workspace: Workspace, row: LogRow, setup: Setup, split: Split) -> tuple[str, ...]:
    """Return what keeps a sample from being compared with what was recorded, one sentence each."""
    record = start_record(workspace, row.run)
    if record is None or not isinstance(record.event, RunStarted):
        return (f"the start of run {row.run} is not here",)
    differing = [change] if (change := environment_change(workspace.repo, record, setup)) else []
    return (*differing, *other_models(workspace, row, setup), *_other_items(workspace, row, setup, split))


def _other_items(workspace: Workspace, row: LogRow, setup: Setup, split: Split) -> tuple[str, ...]:
    run_items = recorded_items(workspace, row.run, split)
    if run_items is None:
        start = started(workspace, row.run)
        same = start is not None and start.splits == setup.splits_digest
        return () if same else (f"the items are not those of run {row.run}",)
    here = {item.id: item.digest for item in setup.task.items[split]}
    parts = (
        (len(run_items.keys() - here.keys()), "missing"),
        (len(here.keys() - run_items.keys()), "new"),
        (sum(run_items[item] != digest for item, digest in here.items() if item in run_items), "changed"),
    )
    counts = [f"{count} {noun}" for count, noun in parts if count]
    return (f"the {split.value} items are not those of run {row.run}: {', '.join(counts)}",) if counts else ()
