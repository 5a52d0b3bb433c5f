"""The slow update: at the end of an epoch, compare it with the one before and write guidance and memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.domain.edit import removal
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import SlowMerged, SlowProposed
from skillgit.domain.protected_regions import slow_guidance, with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import EMPTY, SkillText
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import refusal
from skillgit.engine.concurrency import both, growing, side_by_side
from skillgit.engine.gating import Judgement, judge
from skillgit.engine.method_settings import PairPolicy
from skillgit.engine.minibatches import shuffle, slow_sample, stream
from skillgit.engine.optimizer_memory import history_section, record_section
from skillgit.engine.prompt_sections import (
    conversation,
    memory_section,
    skill_section,
    tagged,
    trajectory_text,
    with_pictures,
)
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import GuidanceReply, MemoryReply
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Session, SkillHistory, Stage, Transition, unanswered
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.cost import Cost
    from skillgit.domain.run_state import RunState
    from skillgit.domain.trajectory import Item, Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    text: SkillText = EMPTY  # the new guidance; empty if there is nothing new to merge
    title: str = "nothing to add"  # what it is about, or why there is none
    why: str = ""
    judgement: Judgement | None = None  # what the skill with it scores and what the gate says; absent without guidance


async def propose_slow_update(session: Session, state: RunState, history: SkillHistory) -> Transition:
    """Return the slow update of the epoch that has just ended.

    Guidance that is new is measured whatever the settings, so that no version ever has a score that nobody measured.
    Without a gate of its own it is merged after that, even if it lowers the score.
    """
    began = session.clock()
    session.monitor.stage(Stage.SLOW)
    current = history.skill(state.version)
    # the version with which the epoch before ended, its slow update included
    previous = history.skill(max(version.version for version in state.versions if version.epoch < state.epoch))
    comparison = await compare_versions(session, previous, current, state.epoch)
    # The memory needs the comparison alone: it is written while guidance is measured.
    guidance, reply = await side_by_side(
        _guidance(session, state, previous, current, comparison.kept),
        _memory(session, state, previous, current, comparison.kept),
    )
    memory = redact(reply.memory.strip()) if reply is not None else ""
    event = _event(session, state, guidance, memory=memory or state.optimizer_memory, cost=session.cost_since(began))
    files = guidance.judgement.evidence if guidance.judgement is not None else {}
    return Transition(event=event, evidence=evidence_files.merged([comparison_file(comparison), files]))


async def _guidance(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: Sequence[RolloutPair]
) -> Guidance:
    """Measure what the optimizer says, exactly as it would be merged; what no candidate may say is not measured."""
    reply = await _asked(session, state, previous, current, pairs)
    if reply is None and (reason := unanswered(session, "slow_update")):
        return Guidance(title="no usable reply", why=reason)
    text = reply.guidance.reworded(redact(reply.guidance)) if reply is not None else EMPTY
    if reply is None or not text or text == slow_guidance(current.document):
        return Guidance(why=reply.reasoning if reply is not None else "")
    candidate = with_guidance(current, text)
    if (objection := refusal(session, state, current, candidate)) is not None:
        return Guidance(title=objection.title, why=objection.why)
    is_gated = session.settings.optimizer.slow_update_gate_with_selection
    return Guidance(
        text=text,
        title=reply.title or f"guidance of epoch {state.epoch}",
        why="\n\n".join(filter(None, (reply.reasoning, removal("the guidance", text)))),
        judgement=await judge(session, state, current, candidate, gated=is_gated),
    )


async def _asked(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: Sequence[RolloutPair]
) -> GuidanceReply | None:
    if not session.settings.optimizer.use_slow_update or not pairs:
        return None
    standing = slow_guidance(current.document)
    steps = [step for step in state.memory if step.epoch == state.epoch]
    sections = (
        *_both_skills(session, previous, current),
        tagged("guidance", standing) if standing else "",
        memory_section(state.optimizer_memory),
        record_section(steps, session.settings.gradient.max_history_tokens),
        _comparison_section(session, pairs),
    )
    messages = conversation("slow_update", session.task.environment, sections)
    messages = with_pictures(session, messages, [pair.current for pair in pairs])
    return await ask(session, "slow_update", messages, GuidanceReply, draw=(state.epoch,))


async def _memory(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: Sequence[RolloutPair]
) -> MemoryReply | None:
    last_epoch = state.epoch >= session.settings.train.num_epochs
    if last_epoch or not session.settings.optimizer.use_meta_skill:
        return None
    steps = [step for step in state.memory if step.epoch == state.epoch]
    sections = (
        *_both_skills(session, previous, current),
        memory_section(state.optimizer_memory),
        history_section(steps, session.settings.gradient.max_history_tokens),
        _comparison_section(session, pairs),
    )
    messages = conversation("meta_skill", session.task.environment, sections)
    return await ask(session, "meta_skill", messages, MemoryReply, draw=(state.epoch,))


def _both_skills(session: Session, previous: Skill, current: Skill) -> tuple[str, str]:
    settings = session.settings.optimizer
    return skill_section(previous, settings, version="previous"), skill_section(current, settings, version="current")


def _comparison_section(session: Session, pairs: Sequence[RolloutPair]) -> str:
    limit = session.settings.gradient.max_trajectory_tokens
    counts = {category.value: sum(pair.category is category for pair in pairs) for category in Category}
    sections = [_pair_section(pair, limit) for pair in pairs if pair.category is not Category.STABLE_SUCCESS]
    return tagged("comparison", "\n".join(sections), **counts)


def _pair_section(pair: RolloutPair, limit: int) -> str:
    before, after = pair.previous.trajectory, pair.current.trajectory
    # What went alike with both, as it always does where the epoch accepted nothing, is shown once.
    sides = [
        tagged(name, trajectory_text(trajectory, limit))
        for name, trajectory in (("previous", None if before == after else before), ("current", after))
        if trajectory is not None
    ]
    return tagged("pair", "\n".join(sides), id=pair.current.item.id, category=pair.category.value)


def with_guidance(skill: Skill, guidance: SkillText) -> Skill:
    return skill.with_text(DOCUMENT, with_slow_guidance(skill.document, guidance))


def _event(session: Session, state: RunState, guidance: Guidance, *, memory: str, cost: Cost) -> SlowProposed:
    judgement = guidance.judgement
    return SlowProposed(
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        base=state.version,
        title=redact(guidance.title),
        why=redact(guidance.why),
        guidance=guidance.text,
        memory=memory,
        evaluation=judgement.evaluation if judgement is not None else None,
        verdict=judgement.verdict if judgement is not None else None,
        fixed=judgement.fixed if judgement is not None else (),
        broken=judgement.broken if judgement is not None else (),
        models=session.models,
        cost=cost,
    )


def merge_slow_update(session: Session, state: RunState, proposal: SlowProposed, history: SkillHistory) -> Transition:
    if proposal.evaluation is None or proposal.verdict is None:
        raise AssertionError("accepted guidance was measured")
    event = SlowMerged(
        run=session.run,
        skill=session.skill_path,
        epoch=proposal.epoch,
        step=state.step,
        title=proposal.title,
        why=proposal.why,
        version=state.version + 1,
        base=state.version,
        evaluation=proposal.evaluation,
        verdict=proposal.verdict,
    )
    return Transition(event=event, skill=with_guidance(history.skill(state.version), proposal.guidance))


ROUND = 8  # items that are rolled out at a time to top up changed pairs


class Category(StrEnum):
    REGRESSED = "regressed"
    PERSISTENT_FAIL = "persistent_fail"
    IMPROVED = "improved"
    STABLE_SUCCESS = "stable_success"

    @property
    def is_change(self) -> bool:
        return self in {Category.REGRESSED, Category.IMPROVED}


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPair:
    category: Category
    previous: Rollout
    current: Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochComparison:
    kept: tuple[RolloutPair, ...]
    dropped: tuple[RolloutPair, ...]


async def compare_versions(session: Session, previous: Skill, current: Skill, epoch: int) -> EpochComparison:
    """Roll out a sample of train items with both versions, and keep the pairs that the settings ask for.

    ``changed`` goes on with other train items, in an order of its own and in rounds of fixed size, until it has as many
    pairs as the sample has items or there are no more; what it keeps does not depend on how many run at once.
    """
    settings, items = session.settings.optimizer, session.task.items[Split.TRAIN]
    policy = settings.longitudinal_pair_policy
    sample = slow_sample(items, seed=session.seed, epoch=epoch, size=settings.slow_update_samples)
    reserve: list[Item] = []
    if policy is PairPolicy.CHANGED:
        ids = {item.id for item in sample}
        reserve = shuffle([item for item in items if item.id not in ids], stream(session.seed, "slow-pairs", epoch))
    pairs = await _roll_out_both(session, previous, current, sample, reserve)
    selection = [pair for pair in pairs if _keeps(policy, pair)][: settings.slow_update_samples]
    return EpochComparison(
        kept=tuple(worst_first(selection)),
        dropped=tuple(worst_first([pair for pair in pairs if all(pair is not entry for entry in selection)])),
    )


def _keeps(policy: PairPolicy, pair: RolloutPair) -> bool:
    return policy is PairPolicy.MIXED or pair.category.is_change == (policy is PairPolicy.CHANGED)


async def _roll_out_both(
    session: Session, previous: Skill, current: Skill, sample: Sequence[Item], reserve: Sequence[Item]
) -> list[RolloutPair]:
    """Roll out ``sample``, and rounds of ``reserve``, each as soon as it is certain that it will be needed."""
    settings, slots = session.settings.optimizer, asyncio.Semaphore(session.workers)
    items, by_index = [*sample, *reserve], dict[int, list[RolloutPair]]()
    start_count, possible = 0, 0

    async def one(index: int) -> None:
        nonlocal possible
        before, after = await both(
            roll_out(session, previous, [items[index]], "slow", slots=slots),
            roll_out(session, current, [items[index]], "slow", slots=slots),
        )
        by_index[index] = compare(before, after)
        possible -= not any(_keeps(settings.longitudinal_pair_policy, pair) for pair in by_index[index])
        top_up()

    def start(count: int) -> None:
        nonlocal start_count, possible
        indexes = range(start_count, min(start_count + count, len(items)))
        start_count, possible = indexes.stop, possible + len(indexes)
        for index in indexes:
            group.create_task(one(index))

    def top_up() -> None:
        while possible < settings.slow_update_samples and start_count < len(items):
            start(ROUND)

    async with growing() as group:
        start(len(sample))
        top_up()
    return [pair for index in sorted(by_index) for pair in by_index[index]]


def compare(previous: Sequence[Rollout], current: Sequence[Rollout]) -> list[RolloutPair]:
    """Pair two rollouts of the same items, in their order; items without a score on both sides are left out."""
    pairs: list[RolloutPair] = []
    for before, after in zip(previous, current, strict=True):
        if isinstance(before.outcome, Scored) and isinstance(after.outcome, Scored):
            category = _CATEGORIES[before.outcome.passed, after.outcome.passed]
            pairs.append(RolloutPair(category=category, previous=before, current=after))
    return pairs


_CATEGORIES = {
    (True, False): Category.REGRESSED,
    (False, False): Category.PERSISTENT_FAIL,
    (False, True): Category.IMPROVED,
    (True, True): Category.STABLE_SUCCESS,
}
"""How an outcome changed, by whether the item was solved before and is solved now."""


def worst_first(pairs: Sequence[RolloutPair]) -> list[RolloutPair]:
    """Return the pairs by category, regressions first; within one they keep their order."""
    order = list(Category)
    return sorted(pairs, key=lambda pair: order.index(pair.category))


def comparison_file(comparison: EpochComparison) -> evidence_files.Evidence:
    """Return ``comparison.json``: every pair, and whether the optimizer saw it."""
    rows = [
        {
            "id": pair.current.item.id,
            "category": pair.category.value,
            "shown": is_shown,
            "previous": _side(pair.previous),
            "current": _side(pair.current),
        }
        for pairs, is_shown in ((comparison.kept, True), (comparison.dropped, False))
        for pair in pairs
    ]
    return {"comparison.json": evidence_files.json_file(rows)}


def _side(rollout: Rollout) -> dict[str, object]:
    outcome, trajectory = rollout.outcome, rollout.trajectory
    scores = {"hard": outcome.hard, "soft": outcome.soft} if isinstance(outcome, Scored) else {}
    return {**scores, "answer": trajectory.answer if trajectory is not None else ""}
