"""The judge: a candidate is measured against the version that it was proposed on, and the gate decides."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.early_stop import first_pass
from skillgit.domain.evaluation import Scored, Split, mean
from skillgit.domain.gate import decide, flips
from skillgit.engine import artifacts
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.evaluate import evaluate, evaluate_candidate
from skillgit.engine.rollout import roll_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Outcome
    from skillgit.domain.gate import Policy, Verdict
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.evaluate import Refused
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A decision with what it rests on.

    Attributes:
        evaluation: The candidate's score on the selection split, as far as it was evaluated.
        verdict: The gate's decision and its numbers.
        fixed: Items that score higher than under the base.
        broken: Items that score lower.
        evidence: The rollouts behind it.
    """

    evaluation: EvaluationSummary
    verdict: Verdict
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    evidence: artifacts.Evidence


async def judge(
    session: Session,
    state: RunState,
    current: Skill,
    candidate: Skill,
    *,
    gated: bool | None = None,
    policy: Policy | None = None,
    sample: int = 0,
    refused: Refused | None = None,
) -> Judged:
    """Measure ``candidate`` on the selection split and decide whether it replaces ``current``, the current version.

    Args:
        session: What to measure with.
        state: The state of the run.
        current: The current version.
        candidate: What may replace it.
        gated: Whether there is a gate; the settings say so by default.
        policy: How it compares; the settings say so by default.
        sample: Which draws are made for the candidate; other ones than the first for a placebo.
        refused: Called once it is certain that the gate refuses the candidate, while its last items still run.
    """
    rule = session.rule if gated is None else replace(session.rule, enabled=gated)
    rule = rule if policy is None else replace(rule, policy=policy)
    repeats, best = session.settings.gate.repeats, session.score(state, state.best)
    base = (await evaluate(session, current, Split.SELECTION)).evaluation
    first = first_pass(rule, repeats)
    measured = await evaluate_candidate(session, candidate, base, rule=first, best=best, sample=sample, refused=refused)
    after, before, files = measured.evaluation, base, artifacts.rollouts_files("selection", measured.rollouts)
    # Repeats confirm what scores higher; without a gate there is nothing to confirm.
    repeated = repeats if rule.enabled and decide(first, after, before, best).decision.accepted else 0
    if repeated:
        pairs = flips(after, before, rule.metric, rule.soft_weight)
        items = [item for item in base.outcomes if item in {*pairs.fixed, *pairs.broken}]
        slots = asyncio.Semaphore(session.workers)
        new, old = await both(
            _samples(session, candidate, items, repeated, after=sample, slots=slots),
            _samples(session, current, items, repeated, slots=slots),
        )
        after, before = _averaged(after, new), _averaged(before, old)
        files |= _repeats_file(items, new, old)
        if state.best == state.version:
            best = before.summary().score(rule.metric, rule.soft_weight)
    pairs = flips(after, before, rule.metric, rule.soft_weight)
    return Judged(
        evaluation=measured.evaluation.summary(),
        verdict=decide(rule, after, before, best, repeats=repeated),
        fixed=pairs.fixed,
        broken=pairs.broken,
        evidence=files,
    )


async def _samples(
    session: Session,
    skill: Skill,
    items: Sequence[str],
    repeats: int,
    *,
    slots: asyncio.Semaphore,
    after: int = 0,
) -> dict[str, tuple[Outcome, ...]]:
    """Roll out ``items`` so many times more, each time with other draws, all at the same time."""
    known = {item.id: item for item in session.task.items[Split.SELECTION]}
    wanted = [known[item] for item in items]

    async def one(number: int) -> list[Rollout]:
        return await roll_out(session, skill, wanted, "selection", sample=after + number, slots=slots)

    rounds = await ordered(one, range(1, repeats + 1), limit=repeats)
    return {
        item: tuple(rollout.outcome for rollout in samples)
        for item, samples in zip(items, zip(*rounds, strict=True), strict=True)
    }


def _averaged(evaluation: Evaluation, samples: Mapping[str, Sequence[Outcome]]) -> Evaluation:
    """Return ``evaluation`` with the mean of all scored rollouts for every item that was rolled out again."""
    outcomes = dict(evaluation.outcomes)
    for item, more in samples.items():
        scored = [outcome for outcome in (outcomes[item], *more) if isinstance(outcome, Scored)]
        outcomes[item] = Scored(mean([one.hard for one in scored]), mean([one.soft for one in scored]))
    return replace(evaluation, outcomes=outcomes)


def _repeats_file(
    items: Sequence[str], new: Mapping[str, Sequence[Outcome]], old: Mapping[str, Sequence[Outcome]]
) -> artifacts.Evidence:
    rows = [
        {"id": item, "candidate": [_row(one) for one in new[item]], "current": [_row(one) for one in old[item]]}
        for item in items
    ]
    return {"repeats.json": artifacts.json_file(rows)}


def _row(outcome: Outcome) -> dict[str, object]:
    if isinstance(outcome, Scored):
        return {"hard": outcome.hard, "soft": outcome.soft}
    return {"failed": outcome.reason}
