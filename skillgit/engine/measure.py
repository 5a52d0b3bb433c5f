"""Measurement: a skill on the items of a split, a candidate until the gate can decide, and what the gate says.

An open item is at best solved, so that the most a candidate can still reach is known at any time. Once the policy
refuses even that, it refuses any outcome, and nothing more need be paid for: an exact early stop. A candidate that
is accepted is always evaluated in full. Items that fail to evaluate never end an evaluation: that they do says nothing
about the candidate.

Items are evaluated in a fixed order and in waves. A wave has as many items as are needed at least to settle the
decision, and never fewer than a fixed number if there are so many left; the last one is that in which it is settled.
So the outcomes alone say which items are rolled out, in any order. All bookkeeping is running sums.

A version that no stage of the method made gets a score as well, so that the run can go on from it: someone may have
edited the skill by hand, or taken up a text that was. Then nothing is decided: the version stays with any score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from skillgit.domain.address import version_label
from skillgit.domain.evaluation import (
    PERFECT,
    Evaluation,
    EvaluationSummary,
    FailedToEvaluate,
    Metric,
    Outcome,
    Scored,
    Split,
)
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule, Verdict, decide, decide_items, flips
from skillgit.domain.gate_policies import Comparison, Policy
from skillgit.domain.outcomes import BASE, REPEATS, Pairs, averaged, exact_value, outcome_row
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.concurrency import both, growing, ordered
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Search, Session, Stage, Transition
from skillgit.errors import ServiceError

WAVE = 8  # items at least; not the number of workers: which calls a run makes must not depend on its pace
Refused: TypeAlias = Callable[[asyncio.Semaphore], None]
"""What to do once a candidate is certain to be refused, while items of its evaluation still hold some of the slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    evaluation: Evaluation
    rollouts: tuple[Rollout, ...]


async def evaluate(
    session: Session,
    skill: Skill,
    split: Split,
    *,
    sample: int = 0,
    slots: asyncio.Semaphore | None = None,
    each: Callable[[Rollout], None] = lambda _: None,
) -> EvaluationResult:
    """Measure ``skill`` on ``split``; items that were measured before in the same sample cost nothing."""
    stage = "test" if split is Split.TEST else "selection"
    rollouts = await roll_out(session, skill, session.task.items[split], stage, sample=sample, slots=slots, each=each)
    evaluation = Evaluation(
        split=split,
        item_set=session.task.item_set(split),
        outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
        seed=session.seed,
    )
    return EvaluationResult(evaluation=evaluation, rollouts=tuple(rollouts))


async def evaluate_selection(
    session: Session,
    skill: Skill,
    stage: Stage = Stage.EVALUATE,
    *,
    slots: asyncio.Semaphore | None = None,
    each: Callable[[Rollout], None] = lambda _: None,
) -> EvaluationResult:
    """Measure ``skill`` on the selection split and say so; ``slots`` and ``each`` are those of ``evaluate``."""
    session.monitor.stage(stage, len(session.task.items[Split.SELECTION]))
    return await evaluate(session, skill, Split.SELECTION, slots=slots, each=each)


async def evaluate_candidate(
    session: Session,
    skill: Skill,
    base: Evaluation,
    *,
    rule: GateRule,
    sample: int = 0,
    on_refusal: Refused | None = None,
    wave: int = WAVE,
    slots: asyncio.Semaphore | None = None,
) -> EvaluationResult:
    """Measure a candidate on the selection split until ``rule`` can only refuse it, or to the end.

    Items are rolled out in waves. A wave has as many items as are needed at least to settle the decision, and never
    fewer than ``wave`` if there are so many left. Items beyond the one that settled it are paid for and not used.
    An item starts as soon as it is certain to be in a wave, so that slow items hold back only what hangs on them.

    ``base`` is the evaluation of the version that it was proposed on; other draws than the first ``sample`` are made
    for every item. ``on_refusal`` is called with the places of rollouts once it is certain that the rule refuses.
    ``slots`` are those places, where they are shared with others.
    """
    slots = asyncio.Semaphore(session.workers) if slots is None else slots
    if sample:
        return await evaluate(session, skill, Split.SELECTION, sample=sample, slots=slots)
    if not session.settings.gate.early_stop:
        return await evaluate_selection(session, skill, slots=slots)
    items = session.task.items[Split.SELECTION]
    session.monitor.stage(Stage.EVALUATE, len(items))
    look = EarlyStop(rule, base, wave)
    by_id = {item.id: item for item in items}
    start_count, is_refusal_known = 0, False
    by_item: dict[str, Rollout] = {}

    async def one(item: str) -> None:
        nonlocal is_refusal_known
        [by_item[item]] = await roll_out(session, skill, [by_id[item]], "selection", slots=slots)
        look.take(item, by_item[item].outcome)
        start()
        if on_refusal is not None and not is_refusal_known and look.refused:
            is_refusal_known = True
            on_refusal(slots)

    def start() -> None:
        """Begin the items that are certain to be needed by now."""
        nonlocal start_count
        if look.sure - len(by_item) < session.workers:
            look.look()
        for item in look.items[start_count : look.sure]:
            group.create_task(one(item))
        start_count = look.sure

    async with growing() as group:
        start()
    return partial_result(session, by_item, look.items[: look.needed])


def partial_result(session: Session, by_item: Mapping[str, Rollout], items: Collection[str]) -> EvaluationResult:
    """Return an evaluation of ``items`` of the selection split; what else was rolled out is counted and not used."""
    selection, ids = session.task.items[Split.SELECTION], frozenset(items)
    rollouts = tuple(by_item[item.id] for item in selection if item.id in ids & by_item.keys())
    evaluation = Evaluation(
        split=Split.SELECTION,
        item_set=session.task.item_set(Split.SELECTION),
        outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
        seed=session.seed,
        unneeded=tuple(item.id for item in selection if item.id not in ids),
        spare=len(by_item) - len(rollouts),
    )
    return EvaluationResult(evaluation=evaluation, rollouts=rollouts)


_WORST = Scored(0.0, 0.0)


def order(base: Evaluation, rule: GateRule) -> list[str]:
    """Return the order of a candidate's items: unsolved first, as only they can be fixed, the most headroom first."""

    def key(item: str) -> tuple[bool, float]:
        outcome = base.outcomes[item]
        if isinstance(outcome, FailedToEvaluate):
            return False, -1.0
        return outcome.passed, outcome.value(rule.metric, rule.soft_weight) - 1.0

    return sorted(base.outcomes, key=key)


class _Sums(NamedTuple):
    """What items add to the comparison with the base; ``known_pairs`` counts those that are not open."""

    total: Fraction = Fraction(0)
    pairs: int = 0
    known_pairs: int = 0
    fixes: int = 0
    breaks: int = 0
    pinned_losses: int = 0

    def swapped(self, less: _Sums, more: _Sums) -> _Sums:
        return _Sums(
            self.total - less.total + more.total,
            self.pairs - less.pairs + more.pairs,
            self.known_pairs - less.known_pairs + more.known_pairs,
            self.fixes - less.fixes + more.fixes,
            self.breaks - less.breaks + more.breaks,
            self.pinned_losses - less.pinned_losses + more.pinned_losses,
        )


_NO_SUMS = _Sums()


class EarlyStop:
    """A candidate in evaluation, in waves of at least ``wave`` items; ``base`` is what it was proposed on.

    Attributes:
        items: All items, in the order in which they are evaluated.
        sure: How many of them are certain to be rolled out; it only grows.
        needed: After how many outcomes the decision was settled; None while that is open.
    """

    def __init__(self, rule: GateRule, base: Evaluation, wave: int) -> None:
        self.items = order(base, rule)
        self.sure = 0
        self.needed: int | None = None
        self._rule, self._base, self._wave = rule, base, wave
        self._place = {item: index for index, item in enumerate(self.items)}
        self._outcomes: dict[str, Outcome] = {}
        self._best = [self._sums(item, PERFECT, count=0) for item in self.items]
        self._worst = [self._sums(item, _WORST) for item in self.items]
        at_best = reduce(lambda total, sums: total.swapped(_NO_SUMS, sums), self._best, _NO_SUMS)
        # With the outcomes up to the first open item; with every open item of the waves so far at worst; and with every
        # open item that is sure at worst. The items after them are at best.
        self._at_known = self._at_end = self._at_sure = at_best
        self._hopeless = rule.enabled and base.summary().coverage < rule.min_coverage
        self._slow = rule.is_slow
        self._known = self._end = self._open = 0
        self._look_again = len(self.items) // 2
        self._next_wave()

    def take(self, item: str, outcome: Outcome) -> None:
        index, sums = self._place[item], self._sums(item, outcome)
        self._outcomes[item] = outcome
        self._at_sure = self._at_sure.swapped(self._worst[index], sums)
        if index < self._end:
            self._at_end = self._at_end.swapped(self._worst[index], sums)
            self._open -= 1
        while self.needed is None and not self._open:
            if self._advance(self._end):
                self.needed = self._known
            else:
                self._next_wave()
        if self.needed is None:
            self._advance(self._end)

    def look(self) -> None:
        """Add to ``sure`` what is needed even if all open items come out worst, since solving one never hurts."""
        if self.needed is not None or self._slow or not self._may_pass(self._at_end, self._end):
            return
        self._extend(min(self._end + self._wave, len(self.items)))
        while self.sure < len(self.items) and self._may_pass(self._at_sure, self.sure):
            self._extend(self.sure + 1)

    @property
    def refused(self) -> bool:
        """Whether the gate will refuse, though items are open: the outcomes before the first open one settle it."""
        return self.needed is None and self._known < len(self.items) and not self._may_pass(self._at_known, self._known)

    def _sums(self, item: str, outcome: Outcome, *, count: int = 1) -> _Sums:
        """Return what ``item`` adds with ``outcome``; only what both sides score is compared."""
        before, rule = self._base.outcomes[item], self._rule
        if isinstance(before, FailedToEvaluate) or isinstance(outcome, FailedToEvaluate):
            return _NO_SUMS
        after, was = (exact_value(result, rule.metric, rule.soft_weight) for result in (outcome, before))
        is_worse = after < was
        return _Sums(
            total=after - was,
            pairs=1,
            known_pairs=count,
            fixes=int(after > was),
            breaks=int(is_worse),
            pinned_losses=int(is_worse and rule.protects(item)),
        )

    def _may_pass(self, sums: _Sums, count: int, *, thorough: bool = False) -> bool:
        """Say whether the gate may still accept, where ``sums`` has the first ``count`` items and the rest at best."""
        rule = self._rule
        if not rule.enabled:
            return True
        if sums.pinned_losses or self._hopeless:
            return False
        comparison = Comparison(
            total=sums.total.numerator,
            scale=sums.total.denominator,
            count=sums.pairs,
            fixed=sums.fixes,
            broken=sums.breaks,
            terms=rule.terms,
            p_value=lambda: self._p(count),
            counts_decide=rule.metric is Metric.HARD,
        )
        return rule.reachable(comparison, sums.known_pairs, thorough=thorough)

    def _p(self, count: int) -> float:
        """Return the p-value that the candidate has at best after ``count`` outcomes."""
        outcomes = self._outcomes | dict.fromkeys(self.items[count:], PERFECT)
        rule = self._rule
        return Pairs(replace(self._base, outcomes=outcomes), self._base, rule.metric, rule.soft_weight).p

    def _extend(self, sure: int) -> None:
        for index in range(self.sure, sure):
            self._at_sure = self._at_sure.swapped(self._best[index], self._worst[index])
        self.sure = max(self.sure, sure)

    def _advance(self, most: int) -> bool:
        """Count the outcomes up to the first open item, as far as ``most``; return whether one settles the decision."""
        while self._known < most and (item := self.items[self._known]) in self._outcomes:
            if not self._may_pass(self._at_known, self._known):
                return True
            sums = self._sums(item, self._outcomes[item])
            self._at_known = self._at_known.swapped(self._best[self._known], sums)
            self._known += 1
        return False

    def _next_wave(self) -> None:
        rest = len(self.items) - self._end
        thorough = self._slow and rest <= self._look_again
        self._look_again = rest // 2 if thorough else self._look_again
        if not rest or not self._may_pass(self._at_known, self._end, thorough=thorough):
            self.needed = self._end
            return
        begin, self._end = self._end, min(self._end + max(self._wave, self._least()), len(self.items))
        self._extend(self._end)
        for index in range(begin, self._end):
            outcome = self._outcomes.get(self.items[index])
            sums = self._worst[index] if outcome is None else self._sums(self.items[index], outcome)
            self._at_end = self._at_end.swapped(self._best[index], sums)
            self._open += outcome is None

    def _least(self) -> int:
        """Return how many more items have to be evaluated at least before the decision can be settled."""
        sums, index = self._at_known, self._end
        while index < len(self.items) and self._may_pass(sums, index):
            sums = sums.swapped(self._best[index], self._worst[index])
            index += 1
        return index - self._end


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A candidate and its base, measured over the same items, and what the gate says.

    Attributes:
        rule: The rule that decides.
        evaluation: The candidate's score on the selection split, as far as it was evaluated.
        after: Its outcomes, with the means of repeats where there were any.
        before: The base's.
        repeats: How often items that differ were rolled out again.
        verdict: The decision.
        fixed: The items that score higher than under the base.
        broken: The items that score lower.
        evidence: The outcomes behind it.
    """

    rule: GateRule
    evaluation: EvaluationSummary
    after: Evaluation
    before: Evaluation
    repeats: int
    verdict: Verdict
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    evidence: evidence_files.Evidence

    @property
    def is_accepted(self) -> bool:
        return self.verdict.decision.accepted

    def decided(self, search: Search, *, outrun: int = 0) -> Measured:
        """Return it as the gate decides on what the run has recorded by now; ``outrun`` is the step that is better."""
        return replace(self, **_decision(search, self.rule, self.after, self.before, self.repeats, outrun=outrun))

    def explained(self, why: str) -> str:
        """Return ``why`` with score and tokens of the verdict, where tokens count."""
        return "\n\n".join(filter(None, (why, self.verdict.account)))


def _decision(
    search: Search, rule: GateRule, after: Evaluation, before: Evaluation, repeats: int, *, outrun: int = 0
) -> dict[str, Any]:
    best = search.state.best
    rival = None if best == search.base else recorded(search.session, best) or search.score(best)
    verdict, pairs = decide_items(rule, after, before, rival, repeats=repeats, outrun=outrun)
    return {"verdict": verdict, "fixed": pairs.fixed, "broken": pairs.broken}


async def measure(
    search: Search,
    candidate: Skill,
    *,
    has_gate: bool | None = None,
    policy: Policy | None = None,
    sample: int = 0,
    on_refusal: Refused | None = None,
    slots: asyncio.Semaphore | None = None,
) -> Measured:
    """Measure ``candidate`` on the selection split and decide whether it replaces the base.

    The settings say whether there is a gate and how it compares unless ``has_gate`` and ``policy`` do. ``sample`` says
    which draws the candidate gets; other ones than the first for a placebo. ``on_refusal`` is called once it is certain
    that the gate refuses the candidate, while its last items still run. ``slots`` are the places of the candidate's
    rollouts, where they are shared with others.
    """
    session, rule = search.session, search.session.rule
    rule = replace(rule, enabled=rule.enabled if has_gate is None else has_gate, policy=policy or rule.policy)
    before, files = await measured_base(search)
    first = rule.first_pass(session.settings.gate.repeats)
    result = await evaluate_candidate(
        session, candidate, before, rule=first, sample=sample, on_refusal=on_refusal, slots=slots
    )
    measurement = await compare(search, candidate, result, before, rule=rule, sample=sample)
    return replace(measurement, evidence=files | measurement.evidence)


async def compare(
    search: Search,
    candidate: Skill,
    result: EvaluationResult,
    before: Evaluation,
    *,
    rule: GateRule,
    sample: int = 0,
    outrun: int = 0,
) -> Measured:
    """Compare a candidate with its base; repeats confirm first what scores higher.

    Without a gate there is nothing to confirm, nor where the candidate of the step ``outrun`` is better. Items that
    differ are rolled out again with both texts, all at once and each time with other draws.
    """
    session, after, repeats = search.session, result.evaluation, search.settings.gate.repeats
    files = evidence_files.rollouts_files("selection", result.rollouts)
    confirms = repeats > 0 and not outrun and rule.enabled
    if confirms := confirms and decide(rule.first_pass(repeats), after, before).decision.accepted:
        pairs, slots = flips(after, before, rule.metric, rule.soft_weight), asyncio.Semaphore(session.workers)
        ids = [item for item in before.outcomes if item in {*pairs.fixed, *pairs.broken}]
        items = [item for item in session.task.items[Split.SELECTION] if item.id in ids]

        async def draw(skill: Skill, first: int) -> dict[str, list[Outcome]]:
            async def again(number: int) -> list[Rollout]:
                return await roll_out(session, skill, items, "selection", sample=first + number, slots=slots)

            rounds = await ordered(again, range(1, repeats + 1), limit=repeats)
            return {samples[0].item.id: [trial.outcome for trial in samples] for samples in zip(*rounds, strict=True)}

        new, old = await both(draw(candidate, sample), draw(search.skill, 0))
        after, before = averaged(after, new), averaged(before, old)
        rows = [
            {"id": item, "candidate": list(map(outcome_row, new[item])), "current": list(map(outcome_row, old[item]))}
            for item in ids
        ]
        files |= {REPEATS: evidence_files.json_file(rows)}
    repeats = repeats if confirms else 0
    return Measured(
        rule=rule,
        evaluation=result.evaluation.summary(),
        after=after,
        before=before,
        repeats=repeats,
        evidence=files,
        **_decision(search, rule, after, before, repeats, outrun=outrun),
    )


def gate_event(search: Search, measurement: Measured, **facts: Any) -> Event:  # noqa: ANN401 - facts have types of their own
    """Return the event of a candidate of the base, with ``facts`` besides what was measured and decided."""
    state = search.state
    facts |= {
        "why": measurement.explained(str(facts["why"])),
        "run": search.session.run,
        "skill": search.session.skill_path,
        "base": search.base,
        "evaluation": measurement.evaluation,
        "verdict": measurement.verdict,
        "fixed": measurement.fixed,
        "broken": measurement.broken,
        "models": search.session.models,
    }
    if measurement.is_accepted:
        return Event(kind=EventKind.ACCEPTED, **facts, version=state.version + 1)
    return Event(kind=EventKind.REJECTED, **facts, at=state.version if state.version != search.base else None)


async def measured_base(search: Search) -> tuple[Evaluation, evidence_files.Evidence]:
    """Return the outcomes of the base, measured again only where that may help, and evidence of what is new."""
    session, base = search.session, recorded(search.session, search.base)
    if base is None:
        base = (await evaluate(session, search.skill, Split.SELECTION)).evaluation
        additions = base.outcomes
    else:
        failures = {id_: fault for id_, fault in base.outcomes.items() if isinstance(fault, FailedToEvaluate)}
        may_succeed = {id_ for id_, fault in failures.items() if session.calls.asks_again or not fault.kind.permanent}
        items = [item for item in session.task.items[Split.SELECTION] if item.id in may_succeed]
        rollouts = await roll_out(session, search.skill, items, "selection")
        outcomes = {trial.item.id: trial.outcome for trial in rollouts}
        additions = {id_: each for id_, each in outcomes.items() if not isinstance(each, FailedToEvaluate)}
        base = replace(base, outcomes={**base.outcomes, **additions})
    rows = [{"id": item} | outcome_row(outcome) for item, outcome in additions.items()]
    return base, {BASE: evidence_files.json_file(rows)} if rows else {}


def recorded(session: Session, version: int) -> Evaluation | None:
    """Return the outcomes of ``version`` as the run has recorded them; None if they are not here."""
    items, outcomes = session.task.items[Split.SELECTION], session.outcomes(version)
    if outcomes is None or any(item.id not in outcomes for item in items):
        return None
    if session.rule.counts_tokens and any(
        isinstance(each, Scored) and each.tokens is None for each in outcomes.values()
    ):
        return None  # another run measured them, whose gate did not count tokens
    return Evaluation(
        split=Split.SELECTION,
        item_set=session.task.item_set(Split.SELECTION),
        outcomes={item.id: outcomes[item.id] for item in items},
        seed=session.seed,
    )


def lacks_score(state: RunState) -> bool:
    return state.known_evaluation(state.version) is None


async def measure_version(search: Search) -> Transition:
    """Return the measurement of the current version, against the newest one before it that has a score."""
    session, state, began = search.session, search.state, search.session.clock()
    version, before = state.version, state.last_measured(state.version)
    measurement = await measure(replace(search, base=before), search.history.skill(version), has_gate=False)
    if not measurement.evaluation.scored:
        raise ServiceError(
            f"none of the {measurement.evaluation.n} selection items could be evaluated with {version_label(version)}",
            hint="skillgit doctor asks each model once and says what is wrong",
        )
    event = Event(
        kind=EventKind.MEASURED,
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        title=f"selection score of {version_label(version)}",
        why=f"{version_label(version)} had no score."
        f" It is compared with {version_label(before)}, and no gate decides on it.",
        version=version,
        evaluation=measurement.evaluation,
        verdict=measurement.verdict,
        fixed=measurement.fixed,
        broken=measurement.broken,
        models=session.models,
        cost=session.cost_since(began),
    )
    return Transition(event=event, evidence=measurement.evidence)
