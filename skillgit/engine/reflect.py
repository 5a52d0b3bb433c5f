"""Reflect: analysts read trajectories in minibatches and propose changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import EditSource, normalised
from skillgit.engine.companion_files import told_of_files
from skillgit.engine.concurrency import ended
from skillgit.engine.edit_places import fits, sifted
from skillgit.engine.minibatches import Cutter
from skillgit.engine.optimizer_memory import feedback_section, history_section, tried_section
from skillgit.engine.progress import Stage
from skillgit.engine.prompt_sections import (
    budget_section,
    contrast_section,
    conversation,
    memory_section,
    skill_section,
    template_section,
    trajectories_section,
    with_pictures,
)
from skillgit.engine.reminder_appendix import aware, notes_of
from skillgit.engine.reply_schemas import Finding, ask
from skillgit.engine.update_modes import dialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.domain.edit import EditReport
    from skillgit.domain.feedback import Feedback
    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Rollout
    from skillgit.domain.untrusted.model_text import SkillText
    from skillgit.engine.deep_reflect import Experiment
    from skillgit.engine.minibatches import Minibatch
    from skillgit.engine.proposals import Draft
    from skillgit.engine.reply_schemas import Analysis
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """What the analysts say."""

    failure: tuple[Draft, ...]
    success: tuple[Draft, ...]
    findings: tuple[Finding, ...]
    unusable: int
    notes: tuple[SkillText, ...] = ()  # reminders for the appendix, where they are asked for
    probe: Experiment | None = None  # the experiment of the step, if there was one
    feedback: tuple[Feedback, ...] = ()  # what people had said when the step began
    losses: tuple[EditReport, ...] = ()  # edits that have no place in the skill, or may not be made


class Reading:
    """The analysts of a step: each is sent off as soon as its minibatch is complete, while later items still run.

    An analyst that fails keeps nobody from working: the failure is raised once all have ended, so that nothing which
    was paid for is losses.

    Args:
        budget: Changes that each analyst may propose at most; None is no limit.
    """

    def __init__(
        self,
        session: Session,
        state: RunState,
        skill: Skill,
        batches: Sequence[Sequence[Item]],
        *,
        step: int,
        budget: int | None,
    ) -> None:
        self._session, self._state, self._skill = session, state, skill
        self._step, self._budget = step, budget
        settings = session.settings.gradient
        self._cutters: dict[str, Cutter] = {}
        for number, batch in enumerate(batches):
            self._cutters |= dict.fromkeys((item.id for item in batch), Cutter(batch, number, settings))
        self._feedback = session.feedback()
        self._slots = asyncio.Semaphore(settings.analyst_workers)
        self._analysts: list[tuple[Minibatch, asyncio.Task[Analysis | None]]] = []
        self._read = 0
        self._complete = False

    def take(self, rollout: Rollout) -> None:
        """Take the rollout of one item, and send off the analysts of the minibatches that it completes."""
        for group in self._cutters[rollout.item.id].take(rollout):
            self._analysts.append((group, asyncio.create_task(self._analyse(group))))

    async def reflection(self) -> Reflection:
        """Return what all analysts say; every item of the step has been taken before."""
        self._tell_total()
        analysts = sorted(self._analysts, key=lambda analyst: analyst[0].place)
        await asyncio.gather(*(task for _, task in analysts), return_exceptions=True)
        replies = [(group, task.result()) for group, task in analysts]
        answers = [(group, reply) for group, reply in replies if reply is not None]
        sources = [group.source for group, _ in answers]
        drafts, losses = sifted(self._session, self._skill, [_draft(reply, group) for group, reply in answers])
        drafts = tuple(draft.limited(self._budget) for draft in drafts)
        return Reflection(
            failure=_of(EditSource.FAILURE, sources, drafts),
            success=_of(EditSource.SUCCESS, sources, drafts),
            findings=joined(
                (finding for group, reply in answers for finding in reply.seen(group.rollouts)), len(self._cutters)
            ),
            unusable=len(replies) - len(answers),
            notes=notes_of(self._session, ((group.source, reply) for group, reply in answers)),
            feedback=self._feedback,
            losses=losses,
        )

    async def close(self) -> None:
        await ended([task for _, task in self._analysts])

    async def _analyse(self, group: Minibatch) -> Analysis | None:
        async with self._slots:
            reply = await _analyse(
                self._session,
                self._state,
                self._skill,
                group,
                step=self._step,
                budget=self._budget,
                feedback=feedback_section(self._feedback),
            )
        self._read += 1
        if self._complete:
            self._session.monitor.tick()
        return reply

    def _tell_total(self) -> None:
        """Say how many analysts there are, which nobody knew before, and how many have ended."""
        self._complete = True
        self._session.monitor.stage(Stage.REFLECT, len(self._analysts))
        for _ in range(self._read):
            self._session.monitor.tick()


def joined(findings: Iterable[Finding], trajectories: int) -> tuple[Finding, ...]:
    """Return grounded findings of several analysts with equal patterns put together, the most frequent first.

    A trajectory that two analysts name counts once; those that are not named count as others, as far as the step has
    so many ``trajectories``.
    """
    by_pattern: dict[str, Finding] = {}
    for finding in findings:
        key = normalised(finding.pattern)
        earlier = by_pattern.get(key)
        if earlier is None:
            by_pattern[key] = finding
            continue
        items = tuple(dict.fromkeys((*earlier.items, *finding.items)))
        rest = earlier.count - len(earlier.items) + finding.count - len(finding.items)
        rival = earlier.rival or finding.rival
        count = min(len(items) + rest, trajectories)
        by_pattern[key] = Finding(pattern=earlier.pattern, count=count, items=items, rival=rival)
    return tuple(sorted(map(_with_rival, by_pattern.values()), key=lambda finding: -finding.count))


def _with_rival(finding: Finding) -> Finding:
    """Return ``finding`` as people and later steps read it: the rival cause behind the pattern."""
    if not finding.rival.strip():
        return finding
    return Finding(pattern=f"{finding.pattern}; or else: {finding.rival}", count=finding.count, items=finding.items)


def with_probe(
    reflection: Reflection, probe: Experiment | None, *, budget: int | None, trajectories: int
) -> Reflection:
    """Return ``reflection`` with what the experiment of its step showed, as one more draft from failures."""
    if probe is None:
        return reflection
    draft = probe.draft(budget)
    findings = probe.analysis.seen(probe.after) if probe.analysis is not None else ()
    return replace(
        reflection,
        failure=reflection.failure if draft is None else (*reflection.failure, draft),
        findings=joined((*reflection.findings, *findings), trajectories),
        unusable=reflection.unusable + (draft is None and probe.text != ""),
        notes=(*reflection.notes, *probe.notes),
        probe=probe,
    )


async def _analyse(
    session: Session, state: RunState, skill: Skill, group: Minibatch, *, step: int, budget: int | None, feedback: str
) -> Analysis | None:
    words = dialect(session)
    whole = session.settings.optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS
    messages = conversation(
        words.failures if group.source is EditSource.FAILURE else words.successes,
        session.task.environment,
        (
            template_section(skill) if whole else skill_section(skill, session.settings.optimizer),
            memory_section(state.optimizer_memory),
            history_section(state.memory, session.settings.gradient.max_history_tokens),
            tried_section(session.tried),
            feedback,
            "" if whole else budget_section(budget),
            trajectories_section(group.rollouts, group.source.value, session.settings.gradient.max_trajectory_tokens),
            contrast_section(group.contrast, session.settings.gradient.max_trajectory_tokens),
        ),
    )
    draw = (step, group.source.value, group.batch, group.number)
    messages = aware(session, group.source, told_of_files(session, messages))
    messages = with_pictures(session, messages, (*group.rollouts, *group.contrast))
    return await ask(session, "analyst", messages, words.analysis, draw=draw, check=fits(skill))


def _draft(reply: Analysis, group: Minibatch) -> Draft:
    return reply.draft(group.source, [rollout.item.id for rollout in group.rollouts])


def _of(source: EditSource, sources: Sequence[EditSource], drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    return tuple(draft for own, draft in zip(sources, drafts, strict=True) if own is source)
