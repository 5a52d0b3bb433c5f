"""The slow update: at the end of an epoch, compare it with the one before and write guidance and memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.calls.redaction import redact
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Cost, SlowMerged, SlowProposed
from skillgit.domain.gate import decide, flips
from skillgit.domain.skill import DOCUMENT, slow_guidance, with_slow_guidance
from skillgit.engine import artifacts
from skillgit.engine.batches import slow_sample
from skillgit.engine.concurrency import both
from skillgit.engine.evaluate import evaluate, evaluate_selection
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    conversation,
    history_section,
    memory_section,
    skill_section,
    tagged,
    trajectory_text,
)
from skillgit.engine.replies import GuidanceReply, MemoryReply, ask
from skillgit.engine.rollout import roll_out
from skillgit.engine.step import models
from skillgit.engine.transition import Transition

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.evaluate import Measured
    from skillgit.engine.session import Session
    from skillgit.engine.transition import SkillHistory


class Category(StrEnum):
    """How an item's outcome changed over an epoch."""

    REGRESSED = "regressed"
    PERSISTENT_FAIL = "persistent_fail"
    IMPROVED = "improved"
    STABLE_SUCCESS = "stable_success"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One item rolled out with the skill of the previous epoch's end and with the current one."""

    category: Category
    previous: Rollout
    current: Rollout


def previous_version(state: RunState, epoch: int) -> int:
    """Return the version with which the epoch before ``epoch`` ended, its slow update included."""
    return max(version.version for version in state.versions if version.epoch < epoch)


def compare(previous: list[Rollout], current: list[Rollout]) -> list[Pair]:
    """Pair two rollouts of the same items; items without a score on both sides are left out."""
    found: list[Pair] = []
    for before, after in zip(previous, current, strict=True):
        if isinstance(before.outcome, Scored) and isinstance(after.outcome, Scored):
            category = _category(passed_before=before.outcome.passed, passes_now=after.outcome.passed)
            found.append(Pair(category=category, previous=before, current=after))
    order = list(Category)
    return sorted(found, key=lambda pair: order.index(pair.category))


def _category(*, passed_before: bool, passes_now: bool) -> Category:
    if passed_before:
        return Category.STABLE_SUCCESS if passes_now else Category.REGRESSED
    return Category.IMPROVED if passes_now else Category.PERSISTENT_FAIL


async def propose_slow_update(session: Session, state: RunState, history: SkillHistory) -> Transition:
    """Return the slow update of the epoch that has just ended; guidance that is new is measured and gated."""
    began = session.clock()
    session.monitor.stage(Stage.SLOW)
    current = history.skill(state.version)
    previous = history.skill(previous_version(state, state.epoch))
    pairs = await _roll_out_both(session, previous, current, state.epoch)
    guided, remembered = await both(
        _guidance(session, state, previous, current, pairs),
        _memory(session, state, previous, current, pairs),
    )
    guidance = guided.guidance if guided is not None else ""
    if guidance == slow_guidance(current.document):
        guidance = ""
    candidate = await evaluate_selection(session, with_guidance(current, guidance)) if guidance else None
    base = await evaluate(session, current, Split.SELECTION) if guidance else None
    memory = redact(remembered.memory.strip()) if remembered is not None else ""
    cost = session.cost_since(began)
    event = _event(session, state, guided, guidance=guidance, memory=memory, candidate=candidate, base=base, cost=cost)
    selection = artifacts.rollouts_files("selection", candidate.rollouts) if candidate is not None else {}
    return Transition(event=event, evidence=artifacts.merged([{"comparison.json": _comparison(pairs)}, selection]))


async def _roll_out_both(session: Session, previous: Skill, current: Skill, epoch: int) -> list[Pair]:
    size = session.settings.optimizer.slow_update_samples
    items = slow_sample(session.task.items[Split.TRAIN], seed=session.seed, epoch=epoch, size=size)
    before, after = await both(
        roll_out(session, previous, items, "slow"),
        roll_out(session, current, items, "slow"),
    )
    return compare(before, after)


async def _guidance(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: list[Pair]
) -> GuidanceReply | None:
    if not session.settings.optimizer.use_slow_update:
        return None
    standing = slow_guidance(current.document)
    sections = (
        *_both_skills(previous, current),
        tagged("guidance", standing) if standing else "",
        memory_section(state.optimizer_memory),
        _comparison_section(session, pairs),
    )
    messages = conversation("slow_update", session.task.environment.taxonomy(), sections)
    return await ask(session, "slow_update", messages, GuidanceReply, draw=(state.epoch,))


async def _memory(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: list[Pair]
) -> MemoryReply | None:
    last_epoch = state.epoch >= session.settings.train.num_epochs
    if last_epoch or not session.settings.optimizer.use_meta_skill:
        return None
    sections = (
        *_both_skills(previous, current),
        memory_section(state.optimizer_memory),
        history_section([step for step in state.memory if step.epoch == state.epoch]),
        _comparison_section(session, pairs),
    )
    messages = conversation("meta_skill", session.task.environment.taxonomy(), sections)
    return await ask(session, "meta_skill", messages, MemoryReply, draw=(state.epoch,))


def _both_skills(previous: Skill, current: Skill) -> tuple[str, str]:
    return skill_section(previous, version="previous"), skill_section(current, version="current")


def _comparison_section(session: Session, pairs: list[Pair]) -> str:
    limit = session.settings.gradient.max_trajectory_tokens
    counts = {category.value: sum(pair.category is category for pair in pairs) for category in Category}
    shown = [_pair_section(pair, limit) for pair in pairs if pair.category is not Category.STABLE_SUCCESS]
    return tagged("comparison", "\n".join(shown), **counts)


def _pair_section(pair: Pair, limit: int) -> str:
    sides = [
        tagged(name, trajectory_text(rollout.trajectory, limit))
        for name, rollout in (("previous", pair.previous), ("current", pair.current))
        if rollout.trajectory is not None
    ]
    return tagged("pair", "\n".join(sides), id=pair.current.item.id, category=pair.category.value)


def with_guidance(skill: Skill, guidance: str) -> Skill:
    """Return ``skill`` with its slow region set."""
    return skill.with_text(DOCUMENT, with_slow_guidance(skill.document, guidance))


def _event(
    session: Session,
    state: RunState,
    guided: GuidanceReply | None,
    *,
    guidance: str,
    memory: str,
    candidate: Measured | None,
    base: Measured | None,
    cost: Cost,
) -> SlowProposed:
    rule = session.settings.evaluation.rule()
    verdict = fixed = broken = None
    if candidate is not None and base is not None:
        verdict = decide(rule, candidate.evaluation, base.evaluation, session.score(state, state.best))
        pairs = flips(candidate.evaluation, base.evaluation, rule.metric, rule.soft_weight)
        fixed, broken = pairs.fixed, pairs.broken
    title = guided.title if guided is not None and guidance else "nothing to add"
    return SlowProposed(
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        base=state.version,
        title=redact(title) or f"guidance of epoch {state.epoch}",
        why=redact(guided.reasoning) if guided is not None else "",
        guidance=redact(guidance),
        memory=memory,
        evaluation=candidate.evaluation.summary() if candidate is not None else None,
        verdict=verdict,
        fixed=fixed or (),
        broken=broken or (),
        models=models(session),
        cost=cost,
    )


def merge_slow_update(session: Session, state: RunState, proposed: SlowProposed, history: SkillHistory) -> Transition:
    """Return the merge of accepted guidance into the run."""
    if proposed.evaluation is None or proposed.verdict is None:
        raise AssertionError("accepted guidance was measured")
    event = SlowMerged(
        run=session.run,
        skill=session.skill_path,
        epoch=proposed.epoch,
        step=state.step,
        title=proposed.title,
        why=proposed.why,
        version=state.version + 1,
        base=state.version,
        evaluation=proposed.evaluation,
        verdict=proposed.verdict,
    )
    return Transition(event=event, skill=with_guidance(history.skill(state.version), proposed.guidance))


def _comparison(pairs: list[Pair]) -> bytes:
    rows = [
        {
            "id": pair.current.item.id,
            "category": pair.category.value,
            "previous": _side(pair.previous),
            "current": _side(pair.current),
        }
        for pair in pairs
    ]
    return artifacts.json_file(rows)


def _side(rollout: Rollout) -> dict[str, object]:
    outcome, trajectory = rollout.outcome, rollout.trajectory
    scores = {"hard": outcome.hard, "soft": outcome.soft} if isinstance(outcome, Scored) else {}
    return {**scores, "answer": trajectory.answer if trajectory is not None else ""}
