"""Reflect: analysts read trajectories in minibatches and propose patches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.edit import Patch, Source, normalised
from skillgit.domain.evaluation import Scored
from skillgit.engine.batches import chunks, shuffle, stream
from skillgit.engine.concurrency import ordered
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    budget_section,
    conversation,
    history_section,
    memory_section,
    skill_section,
    trajectories_section,
)
from skillgit.engine.replies import AnalysisReply, Finding, ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """Trajectories that one analyst reads.

    Attributes:
        source: Whether they are failures or successes.
        number: Its place among the minibatches of the same source.
        rollouts: The trajectories.
    """

    source: Source
    number: int
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """What the analysts say.

    Attributes:
        failure: Patches from failures, in the order of the minibatches.
        success: Patches from successes.
        findings: What they saw.
        unusable: Analysts whose replies could not be used.
    """

    failure: tuple[Patch, ...]
    success: tuple[Patch, ...]
    findings: tuple[Finding, ...]
    unusable: int


def minibatches(session: Session, rollouts: Sequence[Rollout], step: int) -> list[Minibatch]:
    """Cut the scored rollouts into minibatches, failures first; the composition depends on seed and step only."""
    settings = session.settings.gradient
    scored = [rollout for rollout in rollouts if isinstance(rollout.outcome, Scored)]
    failed = [rollout for rollout in scored if not _passed(rollout)]
    passed = [] if settings.failure_only else [rollout for rollout in scored if _passed(rollout)]
    found: list[Minibatch] = []
    for source, group in ((Source.FAILURE, failed), (Source.SUCCESS, passed)):
        shuffled = shuffle(group, stream(session.seed, f"reflect-{source}", step))
        found.extend(
            Minibatch(source=source, number=number, rollouts=tuple(chunk))
            for number, chunk in enumerate(chunks(shuffled, settings.minibatch_size))
        )
    return found


def _passed(rollout: Rollout) -> bool:
    return isinstance(rollout.outcome, Scored) and rollout.outcome.passed


async def reflect(
    session: Session, state: RunState, skill: Skill, rollouts: Sequence[Rollout], *, step: int, budget: int
) -> Reflection:
    """Let analysts read the rollouts of a step, all minibatches in parallel."""
    groups = minibatches(session, rollouts, step)
    session.monitor.stage(Stage.REFLECT, len(groups))

    async def one(group: Minibatch) -> AnalysisReply | None:
        return await _analyse(session, state, skill, group, step=step, budget=budget)

    limit = session.settings.gradient.analyst_workers
    replies = await ordered(one, groups, limit=limit, each=session.monitor.tick)
    answered = [(group.source, reply) for group, reply in zip(groups, replies, strict=True) if reply is not None]
    return Reflection(
        failure=tuple(_clipped(reply, source, budget) for source, reply in answered if source is Source.FAILURE),
        success=tuple(_clipped(reply, source, budget) for source, reply in answered if source is Source.SUCCESS),
        findings=joined(finding for _, reply in answered for finding in reply.findings),
        unusable=len(groups) - len(answered),
    )


def joined(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of several analysts with equal patterns put together, the most frequent first."""
    found: dict[str, Finding] = {}
    for finding in findings:
        key = normalised(finding.pattern)
        known = found.get(key)
        if known is None:
            found[key] = finding
            continue
        items = tuple(dict.fromkeys((*known.items, *finding.items)))
        found[key] = Finding(pattern=known.pattern, count=known.count + finding.count, items=items)
    return tuple(sorted(found.values(), key=lambda finding: -finding.count))


async def _analyse(
    session: Session, state: RunState, skill: Skill, group: Minibatch, *, step: int, budget: int
) -> AnalysisReply | None:
    failed = group.source is Source.FAILURE
    messages = conversation(
        "analyse_failures" if failed else "analyse_successes",
        session.task.environment.taxonomy(),
        (
            skill_section(skill),
            memory_section(state.optimizer_memory),
            history_section(state.memory),
            budget_section(budget),
            trajectories_section(group.rollouts, group.source.value, session.settings.gradient.max_trajectory_tokens),
        ),
    )
    return await ask(session, "analyst", messages, AnalysisReply, draw=(step, group.source.value, group.number))


def _clipped(reply: AnalysisReply, source: Source, budget: int) -> Patch:
    """Return the analyst's patch with at most ``budget`` edits, all of them from ``source``."""
    patch = reply.patch(source)
    return Patch(edits=patch.edits[:budget], reasoning=patch.reasoning, title=patch.title)
