"""``skillgit eval --fresh --sample``: measure a version again on a few items and say whether its score holds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Literal

from skillgit.app.measure.requests import EvalRequest
from skillgit.app.recorded.evaluation_notes import known_evaluations, noted_outcomes, reads_of_test
from skillgit.app.recorded.run_record import event_outcomes, is_own, recorded_items, start_record, started
from skillgit.app.setup.basis import Lender, ResultBasis
from skillgit.app.setup.comparable_conditions import environment_change
from skillgit.app.setup.measurement import Arm, ArmTrial, Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.recorded_setup import measuring_setup, other_models
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Gauge, Metric, Split, mean, solved_count
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.outcomes import exact, whole
from skillgit.domain.statistics import (
    binomial_test,
    bootstrap_interval,
    paired_interval,
    sign_flip_test,
    too_few_items,
    wilson_interval,
)
from skillgit.domain.trajectory import Item
from skillgit.errors import NotFoundError
from skillgit.index import queries, version_queries
from skillgit.index.own_conditions import OwnConditions
from skillgit.index.rows import LogRow
from skillgit.store.history_reader import read_commit, skill_at

DRAWS = -1_000_000
"""The draws of the seed 0; those of other seeds are below. No run, placebo or retest has any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlan:
    name: str
    target: str
    split: str
    items: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    basis: ResultBasis
    name: str
    metric: str  # of the scores
    row: LogRow
    plan: VerifyPlan
    claim: Claim
    verdict: ClaimVerdict
    items: tuple[str, ...]
    noted: bool
    test_reads: int  # how many evaluations on the test split are known of it, this one included if it left a note
    cost: Cost | None  # what it cost; absent if nothing was measured


def verify(
    workspace: Workspace, request: EvalRequest, watcher: EvalWatcher, *, command: str = "eval"
) -> Verified | Plan:
    """Measure a sample on fresh draws and compare it with what was recorded, unless the conditions differ."""
    [revision] = request.revisions
    row, split = event_in(workspace, revision), Split.parse(request.split)
    claim_and_record = claim_of(workspace, row, split)
    if claim_and_record is None:
        bound = row.bound is not None and split is Split.SELECTION
        lack = "only an upper bound of the score" if bound else "no score"
        raise NotFoundError(
            f"{lack} of {revision} on the {split.value} split is recorded",
            hint=f"skillgit eval {quote(revision)} --split {split.value}",
        )
    claim, record = claim_and_record
    setup = measuring_setup(workspace, Lender(run=row.run), request)
    every = setup.task.items[split]
    items = draw(every, request.sample or len(every), request.seed)
    skill = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
    trial = ArmTrial(
        arm=Arm(name=row.label, skill=skill, commit=row.commit, row=row),
        split=split,
        items=items,
        draw=DRAWS - request.seed,
    )
    differs = _differs(workspace, row, setup, split)
    trials = () if differs else (trial,)
    measurement = Measurement(workspace, setup, request, watcher, command=command, trials=trials)
    facts = {"measure": row.label, "items": f"{len(items)} of {len(every)} {split.value}"}

    def note() -> None:
        if request.note:
            measurement.note({"sampled_of": len(every)})

    cost: Cost | Plan | None = None
    with measurement.open(dry_run=request.dry_run or bool(differs)):
        plan = measurement.plan(facts, differs)
        if request.dry_run:
            return plan
        if not differs:
            cost = measurement.carry_out(plan, measurement.make_trials(), note=note)
    verdict = ClaimVerdict(word="not comparable", differs=differs)
    if not differs:
        verdict = judge(claim, record, measurement.evaluations[row.commit, split], setup.rule)
    return Verified(
        basis=measurement.basis,
        name=row.label,
        metric=setup.rule.metric.value,
        row=row,
        plan=VerifyPlan(name=row.label, target=measurement.target, split=split.value, items=len(items), of=len(every)),
        claim=claim,
        verdict=verdict,
        items=tuple(item.id for item in items),
        noted=bool(measurement.noted),
        test_reads=reads_of_test(known_evaluations(workspace, row.commit, row)),
        cost=cost if isinstance(cost, Cost) else None,
    )


def draw(items: Sequence[Item], count: int, seed: int) -> tuple[Item, ...]:
    """Return ``count`` of ``items`` in their order; which ones depends on their ids and the seed alone."""
    order = sorted(items, key=lambda item: (hashlib.sha256(f"verify {seed}:{item.id}".encode()).digest(), item.id))
    ids = {item.id for item in order[:count]}
    return tuple(item for item in items if item.id in ids)


def _differs(workspace: Workspace, row: LogRow, setup: Setup, split: Split) -> tuple[str, ...]:
    """Return what keeps a sample from being compared with what was recorded, one sentence each."""
    record = start_record(workspace, row.run)
    if record is None or record.event.kind is not EventKind.RUN_STARTED:
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


ALPHA = 0.05
"""A difference less likely than this by chance is called one."""
_ROUNDING = 1e-9

Word = Literal["consistent", "lower", "higher", "not comparable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A recorded score, and its evidence."""

    score: float
    n: int  # how many items it is the mean of
    target: str
    paired: bool  # whether the outcomes are here and add up to the score
    remark: str = ""  # what is to be known of them: what is wrong, or that a note has them; empty if nothing is


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """Whether a claim holds."""

    word: Word  # `consistent`, `lower` or `higher` than claimed, or `not comparable`
    n: int = 0
    measured: float | None = None
    recorded: float | None = None  # the mean score recorded for the same items; absent where that is not known
    solved_items: int | None = None  # how many of the items scored 1; absent where one scored neither 0 nor 1
    recorded_items: int | None = None  # the same as it was recorded
    delta: float | None = None  # the mean difference, item by item; without recorded outcomes, from the claimed score
    interval: tuple[float, float] | None = None  # paired, 95 %; without recorded outcomes that of `measured`
    too_few: str = ""  # that no outcome on so few pairs is more than chance; empty where one is, and without pairs
    p: float | None = None  # two-sided: sign-flip test of pairs, else exact binomial test, for strict scores only
    higher: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    failed: int = 0  # how many items could not be evaluated now
    differs: tuple[str, ...] = ()  # what keeps the numbers from being compared, one sentence each


def claim_of(workspace: Workspace, row: LogRow, split: Split) -> tuple[Claim, Evaluation | None] | None:
    """Return what history says that the version or candidate in ``row`` scored on ``split``; None if it says nothing.

    The outcomes that add up to it come with it, if they are here.

    What was inherited or is only an upper bound is not a claim about this text; then the first note about all
    items is one.
    """
    gauge, start = queries.gauge(workspace.index, row.run), started(workspace, row.run)
    claimed_score = _score(workspace, row, split, gauge)
    if claimed_score is None:
        return _noted(workspace, row, split, gauge)
    score, n = claimed_score
    # not notes, which measured the claim again, perhaps a sample of it
    outcomes_by_item = event_outcomes(workspace, row, split)
    outcomes = Evaluation(split=split, item_set="", outcomes=outcomes_by_item, seed=0) if outcomes_by_item else None
    total = gauge.score(outcomes.summary()) if outcomes is not None else None
    adds_up = total is not None and abs(total - score) <= _ROUNDING
    # Repeats make the gate's score a mean over more rollouts than the table of items holds.
    wrong = f"the recorded outcomes add up to {total:.4f}, not to the claimed {score:.4f}" if total is not None else ""
    claim = Claim(
        score=score,
        n=n,
        target=start.models.target if start is not None else "",
        paired=adds_up,
        remark="" if adds_up else wrong,
    )
    return claim, outcomes if adds_up else None


def _noted(workspace: Workspace, row: LogRow, split: Split, gauge: Gauge) -> tuple[Claim, Evaluation | None] | None:
    run = OwnConditions(workspace.index, row.run)
    for note in filter(None, map(noted_outcomes, version_queries.note_lines(workspace.index, row.commit))):
        if (
            note.split == split.value
            and note.outcomes
            and note.counts_for(run)
            and run.is_whole(note.split, note.item_set)
        ):
            evaluation = Evaluation(split=split, item_set=note.item_set, outcomes=dict(note.outcomes), seed=0)
            score = gauge.score(evaluation.summary())
            remark = "measured after the run; a note tells it"
            claim = Claim(score=score, n=len(note.outcomes), target=note.target, paired=True, remark=remark)
            return claim, evaluation
    return None


def _score(workspace: Workspace, row: LogRow, split: Split, gauge: Gauge) -> tuple[float, int] | None:
    """Return the recorded score of exactly this text and the number of its items; None if there is none."""
    if split is Split.SELECTION:
        if not is_own(row) or row.bound is not None:
            return None
        if row.version is None:
            summary = getattr(read_commit(workspace.repo, row.commit).event, "evaluation", None)
            return (gauge.score(summary), summary.n) if isinstance(summary, EvaluationSummary) else None
        every = version_queries.selection_scores(workspace.index, row.run, (row.version,))
        own = [(each.hard, each.soft, each.n) for each in every if each.hard is not None and each.soft is not None][:1]
    else:
        final = () if row.version is None else version_queries.final_rows(workspace.index, row.run, row.version)
        own = [(each.hard, each.soft, each.n) for each in final if each.split == split.value][-1:]
    return next(((gauge.of(hard, soft), n) for hard, soft, n in own), None)


def judge(claim: Claim, original: Evaluation | None, evaluation: Evaluation, rule: GateRule) -> ClaimVerdict:
    """Compare a new measurement with a claim: pair by pair where the recorded outcomes are here, else by its mean."""
    failures = len(evaluation.outcomes) - len(evaluation.scored)
    values = {item: outcome.value(rule.metric, rule.soft_weight) for item, outcome in evaluation.scored.items()}
    earlier = {} if original is None else original.scored
    before = {item: earlier[item].value(rule.metric, rule.soft_weight) for item in values if item in earlier}
    if not values:
        return ClaimVerdict(word="not comparable", failed=failures, differs=("no item could be evaluated",))
    return _paired(values, before, failures) if before else _alone(claim, values, failures, rule.metric)


def _paired(values: dict[str, float], originals: dict[str, float], failures: int) -> ClaimVerdict:
    gains = {item: values[item] - score for item, score in originals.items()}
    differences = list(gains.values())
    delta = mean(differences)
    exactly = whole([exact(values[item]) - exact(score) for item, score in originals.items()])
    p = min(1.0, 2 * min(sign_flip_test(exactly), sign_flip_test([-gain for gain in exactly])))
    now = [values[item] for item in originals]
    return ClaimVerdict(
        word="consistent" if p > ALPHA or delta == 0.0 else "lower" if delta < 0 else "higher",
        n=len(differences),
        measured=mean(now),
        recorded=mean(list(originals.values())),
        solved_items=solved_count(now),
        recorded_items=solved_count(originals.values()),
        delta=delta,
        interval=paired_interval(differences, sides=2),
        too_few=too_few_items(len(differences), sides=2),
        p=p,
        higher=tuple(item for item, gain in gains.items() if gain > 0),
        lower=tuple(item for item, gain in gains.items() if gain < 0),
        failed=failures,
    )


def _alone(claim: Claim, values: dict[str, float], failures: int, metric: Metric) -> ClaimVerdict:
    scores = list(values.values())
    average = mean(scores)
    count = solved_count(scores)
    strict = metric is Metric.HARD and count is not None
    interval = wilson_interval(average, len(scores)) if strict or len(set(scores)) == 1 else bootstrap_interval(scores)
    p = binomial_test(round(sum(scores)), len(scores), claim.score) if strict else None
    outside = p <= ALPHA if p is not None else not interval[0] <= claim.score <= interval[1]
    return ClaimVerdict(
        word=("lower" if average < claim.score else "higher") if outside else "consistent",
        n=len(scores),
        measured=average,
        solved_items=count,
        delta=average - claim.score,
        interval=interval,
        p=p,
        failed=failures,
    )
