"""The judge: a candidate is measured against the version that it was proposed on, and the gate decides.

A version that no stage of the method made gets a score as well, so that the run can go on from it: someone may have
edited the skill by hand, or taken up a text that was. Then nothing is decided: the version stays with any score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, FailedToEvaluate, Outcome, Scored, Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule, Verdict, decide, decide_items, flips
from skillgit.domain.gate_policies import Policy
from skillgit.domain.outcomes import BASE, REPEATS, averaged, outcome_row
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.evaluate import EvaluationResult, Refused, evaluate, evaluate_candidate
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Session, SkillHistory, Transition
from skillgit.errors import ServiceError

if TYPE_CHECKING:
    Samples = Mapping[str, Sequence[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    evaluation: EvaluationSummary  # the candidate's score on the selection split, as far as it was evaluated
    verdict: Verdict
    fixes: tuple[str, ...]  # items that score higher than under the base
    breaks: tuple[str, ...]
    evidence: evidence_files.Evidence  # the outcomes behind it

    def explained(self, why: str) -> str:
        """Return ``why`` with score and tokens of the verdict, where tokens count."""
        return "\n\n".join(filter(None, (why, self.verdict.account)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCandidate:
    """A candidate and its base, measured over the same items; nothing is decided yet.

    Attributes:
        rule: The rule that decides.
        base: The number of the version that the candidate is compared with.
        evaluation: The candidate's evaluation, as far as it went.
        after: The same with the means of repeats, where there were any.
        before: The base's.
        repeats: How often items that differ were rolled out again.
    """

    rule: GateRule
    base: int
    evaluation: Evaluation
    after: Evaluation
    before: Evaluation
    repeats: int
    evidence: evidence_files.Evidence


async def judge(
    session: Session,
    state: RunState,
    current: Skill,
    candidate: Skill,
    *,
    base: int | None = None,
    has_gate: bool | None = None,
    policy: Policy | None = None,
    sample: int = 0,
    on_refusal: Refused | None = None,
    slots: asyncio.Semaphore | None = None,
) -> Judgement:
    """Measure ``candidate`` on the selection split and decide whether it replaces ``current``.

    ``base`` is the number of the version ``current``, the current one by default. The settings say whether there is a
    gate and how it compares unless ``has_gate`` and ``policy`` do. ``sample`` says which draws the candidate gets;
    other ones than the first for a placebo. ``on_refusal`` is called once it is certain that the gate refuses the
    candidate, while its last items still run. ``slots`` are the places of the candidate's rollouts, where they are
    shared with others.
    """
    rule = session.rule
    rule = replace(rule, enabled=rule.enabled if has_gate is None else has_gate, policy=policy or rule.policy)
    version = state.version if base is None else base
    before, files = await measured_base(session, current, version)
    repeats = session.settings.gate.repeats
    first = rule.first_pass(repeats)
    measurement = await evaluate_candidate(
        session, candidate, before, rule=first, sample=sample, on_refusal=on_refusal, slots=slots
    )
    comparison = await confirmed(
        session, current, candidate, measurement, before, rule=rule, base=version, repeats=repeats, sample=sample
    )
    return judged(session, state, replace(comparison, evidence=files | comparison.evidence))


async def confirmed(
    session: Session,
    current: Skill,
    candidate: Skill,
    measurement: EvaluationResult,
    before: Evaluation,
    *,
    rule: GateRule,
    base: int,
    repeats: int,
    sample: int = 0,
) -> MeasuredCandidate:
    """Return ``measurement`` as it compares with ``before``, once ``repeats`` have confirmed what scores higher."""
    after = measurement.evaluation
    files = evidence_files.rollouts_files("selection", measurement.rollouts)
    first = rule.first_pass(repeats)
    # Repeats confirm what scores higher; without a gate there is nothing to confirm.
    confirm = repeats > 0 and rule.enabled and decide(first, after, before).decision.accepted
    if confirm:
        pairs = flips(after, before, rule.metric, rule.soft_weight)
        items = [item for item in before.outcomes if item in {*pairs.fixed, *pairs.broken}]
        samples = partial(_samples, session, items=items, repeats=repeats, slots=asyncio.Semaphore(session.workers))
        new, old = await both(samples(candidate, after=sample), samples(current))
        after, before = averaged(after, new), averaged(before, old)
        files |= _repeats_file(items, new, old)
    return MeasuredCandidate(
        rule=rule,
        base=base,
        evaluation=measurement.evaluation,
        after=after,
        before=before,
        repeats=repeats if confirm else 0,
        evidence=files,
    )


def judged(session: Session, state: RunState, comparison: MeasuredCandidate, *, outrun: int = 0) -> Judgement:
    """Decide on a candidate with what the run has recorded by ``state``; ``outrun`` is the step that was better."""
    is_best = state.best == comparison.base
    best = None if is_best else recorded(session, state.best) or session.score(state, state.best)
    verdict, pairs = decide_items(
        comparison.rule, comparison.after, comparison.before, best, repeats=comparison.repeats, outrun=outrun
    )
    return Judgement(
        evaluation=comparison.evaluation.summary(),
        verdict=verdict,
        fixes=pairs.fixed,
        breaks=pairs.broken,
        evidence=comparison.evidence,
    )


def judged_event(session: Session, state: RunState, judgement: Judgement, **facts: Any) -> Event:  # noqa: ANN401 - facts have types of their own
    """Return the event of a candidate, by default on the current version, with ``facts`` besides the judgement's."""
    facts = {"base": state.version} | facts
    facts |= {
        "why": judgement.explained(str(facts["why"])),
        "run": session.run,
        "skill": session.skill_path,
        "evaluation": judgement.evaluation,
        "verdict": judgement.verdict,
        "fixed": judgement.fixes,
        "broken": judgement.breaks,
        "models": session.models,
    }
    if judgement.verdict.decision.accepted:
        return Event(kind=EventKind.ACCEPTED, **facts, version=state.version + 1)
    return Event(kind=EventKind.REJECTED, **facts, at=state.version if state.version != facts["base"] else None)


async def measured_base(session: Session, skill: Skill, version: int) -> tuple[Evaluation, evidence_files.Evidence]:
    """Return the outcomes of ``version``, measured again only where that may help, and evidence of what is new."""
    base = recorded(session, version)
    if base is None:
        measurement = (await evaluate(session, skill, Split.SELECTION)).evaluation
        return measurement, _base_file(measurement.outcomes)
    failures = {id_: fault for id_, fault in base.outcomes.items() if isinstance(fault, FailedToEvaluate)}
    may_succeed = {id_ for id_, fault in failures.items() if session.calls.asks_again or not fault.kind.permanent}
    items = [item for item in session.task.items[Split.SELECTION] if item.id in may_succeed]
    rollouts = await roll_out(session, skill, items, "selection")
    again = {trial.item.id: trial.outcome for trial in rollouts if not isinstance(trial.outcome, FailedToEvaluate)}
    return replace(base, outcomes={**base.outcomes, **again}), _base_file(again)


def _base_file(outcomes: Mapping[str, Outcome]) -> evidence_files.Evidence:
    rows = [{"id": item} | outcome_row(outcome) for item, outcome in outcomes.items()]
    return {BASE: evidence_files.json_file(rows)} if rows else {}


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


async def _samples(
    session: Session, skill: Skill, *, items: Sequence[str], repeats: int, slots: asyncio.Semaphore, after: int = 0
) -> dict[str, list[Outcome]]:
    """Roll out ``items``, in the order of the split, so many times more, all at once and each time with other draws."""
    subset = [item for item in session.task.items[Split.SELECTION] if item.id in {*items}]

    async def one(number: int) -> list[Rollout]:
        return await roll_out(session, skill, subset, "selection", sample=after + number, slots=slots)

    rounds = await ordered(one, range(1, repeats + 1), limit=repeats)
    return {samples[0].item.id: [sample.outcome for sample in samples] for samples in zip(*rounds, strict=True)}


def _repeats_file(items: Sequence[str], new: Samples, old: Samples) -> evidence_files.Evidence:
    def rows(side: Samples, item: str) -> list[dict[str, object]]:
        return [outcome_row(sample) for sample in side[item]]

    entries = [{"id": item, "candidate": rows(new, item), "current": rows(old, item)} for item in items]
    return {REPEATS: evidence_files.json_file(entries)}


def lacks_score(state: RunState) -> bool:
    return state.known_evaluation(state.version) is None


async def measure_version(session: Session, state: RunState, history: SkillHistory) -> Transition:
    """Return the measurement of the current version, against the newest one before it that has a score."""
    began = session.clock()
    version, before = state.version, state.last_measured(state.version)
    judgement = await judge(session, state, history.skill(before), history.skill(version), base=before, has_gate=False)
    if not judgement.evaluation.scored:
        raise ServiceError(
            f"none of the {judgement.evaluation.n} selection items could be evaluated with {version_label(version)}",
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
        evaluation=judgement.evaluation,
        verdict=judgement.verdict,
        fixed=judgement.fixes,
        broken=judgement.breaks,
        models=session.models,
        cost=session.cost_since(began),
    )
    return Transition(event=event, evidence=judgement.evidence)
