"""Reflect: analysts read trajectories in minibatches and propose changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from skillgit.domain.edit import Source, normalised
from skillgit.domain.evaluation import Scored
from skillgit.domain.rewrite import UpdateMode
from skillgit.engine.appendix import aware, notes_of
from skillgit.engine.batches import chunks, shuffle, stream
from skillgit.engine.concurrency import ordered
from skillgit.engine.dialect import dialect
from skillgit.engine.history import history_section
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    budget_section,
    conversation,
    memory_section,
    skill_section,
    template_section,
    trajectories_section,
)
from skillgit.engine.replies import Finding, ask, keeps_protected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.deep_reflect import Probe
    from skillgit.engine.drafts import Draft
    from skillgit.engine.replies import Analysis
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
        failure: Drafts from failures, in the order of the minibatches.
        success: Drafts from successes.
        findings: What they saw.
        unusable: Analysts whose replies could not be used.
        notes: Reminders for the appendix, where they are asked for.
        probe: The experiment of the step, if there was one.
    """

    failure: tuple[Draft, ...]
    success: tuple[Draft, ...]
    findings: tuple[Finding, ...]
    unusable: int
    notes: tuple[str, ...] = ()
    probe: Probe | None = None


def minibatches(session: Session, rollouts: Sequence[Rollout], step: int) -> list[Minibatch]:
    """Cut the scored rollouts of each batch into minibatches, failures first.

    The composition depends on seed and step only.
    """
    found: list[Minibatch] = []
    for number, part in enumerate(chunks(rollouts, session.settings.train.batch_size)):
        found.extend(_minibatches(session, part, (step, number) if number else (step,)))
    ordered_by_source = sorted(found, key=lambda group: group.source is not Source.FAILURE)
    counts = {source: count() for source in Source}
    return [replace(group, number=next(counts[group.source])) for group in ordered_by_source]


def _minibatches(session: Session, rollouts: Sequence[Rollout], place: tuple[int, ...]) -> Iterator[Minibatch]:
    settings = session.settings.gradient
    scored = [rollout for rollout in rollouts if isinstance(rollout.outcome, Scored)]
    failed = [rollout for rollout in scored if not _passed(rollout)]
    passed = [] if settings.failure_only else [rollout for rollout in scored if _passed(rollout)]
    for source, group in ((Source.FAILURE, failed), (Source.SUCCESS, passed)):
        shuffled = shuffle(group, stream(session.seed, f"reflect-{source}", *place))
        for chunk in chunks(shuffled, settings.minibatch_size):
            yield Minibatch(source=source, number=0, rollouts=tuple(chunk))


def _passed(rollout: Rollout) -> bool:
    return isinstance(rollout.outcome, Scored) and rollout.outcome.passed


async def reflect(
    session: Session, state: RunState, skill: Skill, rollouts: Sequence[Rollout], *, step: int, budget: int | None
) -> Reflection:
    """Let analysts read the rollouts of a step, all minibatches in parallel.

    Each proposes ``budget`` changes at most; None is no limit.
    """
    groups = minibatches(session, rollouts, step)
    session.monitor.stage(Stage.REFLECT, len(groups))

    async def one(group: Minibatch) -> Analysis | None:
        return await _analyse(session, state, skill, group, step=step, budget=budget)

    limit = session.settings.gradient.analyst_workers
    replies = await ordered(one, groups, limit=limit, each=session.monitor.tick)
    answered = [(group, reply) for group, reply in zip(groups, replies, strict=True) if reply is not None]
    drafts = [(group.source, _clipped(reply, group, budget)) for group, reply in answered]
    return Reflection(
        failure=tuple(draft for source, draft in drafts if source is Source.FAILURE),
        success=tuple(draft for source, draft in drafts if source is Source.SUCCESS),
        findings=joined(finding for _, reply in answered for finding in reply.findings),
        unusable=len(groups) - len(answered),
        notes=notes_of(session, ((group.source, reply) for group, reply in answered)),
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


def with_probe(reflection: Reflection, probe: Probe | None, budget: int | None) -> Reflection:
    """Return ``reflection`` with what the experiment of its step showed, as one more draft from failures."""
    if probe is None:
        return reflection
    draft = probe.draft(budget)
    findings = probe.analysis.findings if probe.analysis is not None else ()
    return replace(
        reflection,
        failure=reflection.failure if draft is None else (*reflection.failure, draft),
        findings=joined((*reflection.findings, *findings)),
        unusable=reflection.unusable + (draft is None and probe.text != ""),
        notes=(*reflection.notes, *probe.notes),
        probe=probe,
    )


async def _analyse(
    session: Session, state: RunState, skill: Skill, group: Minibatch, *, step: int, budget: int | None
) -> Analysis | None:
    words = dialect(session)
    whole = session.settings.optimizer.skill_update_mode is UpdateMode.FULL
    messages = conversation(
        words.failures if group.source is Source.FAILURE else words.successes,
        session.task.environment.taxonomy(),
        (
            template_section(skill) if whole else skill_section(skill),
            memory_section(state.optimizer_memory),
            history_section(state.memory, session.settings.gradient.max_history_tokens),
            "" if whole else budget_section(budget),
            trajectories_section(group.rollouts, group.source.value, session.settings.gradient.max_trajectory_tokens),
        ),
    )
    draw = (step, group.source.value, group.number)
    messages = aware(session, group.source, messages)
    return await ask(session, "analyst", messages, words.analysis, draw=draw, check=keeps_protected(skill))


def _clipped(reply: Analysis, group: Minibatch, budget: int | None) -> Draft:
    """Return what the analyst of ``group`` proposes, cut to ``budget``."""
    draft = reply.draft(group.source, [rollout.item.id for rollout in group.rollouts])
    return replace(draft, proposals=draft.proposals[:budget])
