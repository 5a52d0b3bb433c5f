"""Reflect: analysts read trajectories in minibatches and propose changes.

In deep reflect a few items are rolled out again with a probe, an instruction that the optimizer writes for the
experiment, and what they show then is analysed too. The probe is behind the skill during these rollouts only and is
never part of a candidate; since the text differs, so do the keys of its rollouts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import field_validator

from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import EditReport, EditSource, normalised
from skillgit.domain.evaluation import Scored
from skillgit.domain.proposal import Feedback
from skillgit.domain.protected_regions import has_marker
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.model_text import SkillText
from skillgit.engine import evidence_files
from skillgit.engine.candidate_text import fits, sifted
from skillgit.engine.concurrency import ended
from skillgit.engine.earlier_attempts import earlier_section
from skillgit.engine.edit_budget import within_budget
from skillgit.engine.minibatches import Cutter, Minibatch, shuffle, stream
from skillgit.engine.optimizer_memory import feedback_section, standing_sections, tried_section
from skillgit.engine.prompt_sections import (
    aware,
    budget_section,
    contrast_section,
    conversation,
    extended,
    listens,
    skill_section,
    tagged,
    told_of_files,
    trajectories_section,
    with_pictures,
)
from skillgit.engine.proposals import Draft
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import Analysis, FailurePattern, ReplyModel, dialect
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Session, Stage
from skillgit.engine.trajectory_elision import elide
from skillgit.plugin.redaction import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    failure: tuple[Draft, ...]
    success: tuple[Draft, ...]
    findings: tuple[FailurePattern, ...]
    unusable: int
    notes: tuple[SkillText, ...] = ()  # reminders for the appendix, where they are asked for
    probe: Experiment | None = None  # the experiment of the step, if there was one
    feedback: tuple[Feedback, ...] = ()  # what people had said when the step began
    losses: tuple[EditReport, ...] = ()  # edits that have no place in the skill, or may not be made
    samples: tuple[tuple[Rollout, ...], ...] = ()  # the further rollouts of the step's items, draw by draw


class Reading:
    """The analysts of a step: each is sent off as soon as its minibatch is complete, while later items still run.

    ``base`` is the number of the version ``skill``. Each may propose at most ``budget`` changes. One that fails keeps
    the others working: the failure is raised once all have ended, so that nothing that was paid for is lost.
    """

    def __init__(
        self,
        session: Session,
        state: RunState,
        skill: Skill,
        batches: Sequence[Sequence[Item]],
        *,
        step: int,
        base: int,
        budget: int | None,
    ) -> None:
        self._session, self._state, self._skill, self._base = session, state, skill, base
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

    def take(self, rollout: Rollout, others: Sequence[Rollout] = ()) -> None:
        """Take the rollout of an item, and ``others`` of it; send off the analysts of minibatches that it completes."""
        for group in self._cutters[rollout.item.id].take(rollout, others):
            self._analysts.append((group, asyncio.create_task(self._analyse(group))))

    async def reflection(self) -> Reflection:
        """Return what all analysts say; every item of the step has been taken before."""
        self._complete = True
        # the number of analysts was unknown before
        self._session.monitor.stage(Stage.REFLECT, len(self._analysts))
        for _ in range(self._read):
            self._session.monitor.tick()
        analysts = sorted(self._analysts, key=lambda analyst: analyst[0].place)
        await asyncio.gather(*(task for _, task in analysts), return_exceptions=True)
        replies = [(group, task.result()) for group, task in analysts]
        answers = [(group, reply) for group, reply in replies if reply is not None]
        sources = [group.source for group, _ in answers]
        proposals = [reply.draft(group.source, [trial.item.id for trial in group.rollouts]) for group, reply in answers]
        drafts, losses = sifted(self._session, self._skill, proposals)
        by_source = [
            (source, within_budget(self._session, self._skill, draft, self._budget))
            for source, draft in zip(sources, drafts, strict=True)
        ]
        findings = (finding for group, reply in answers for finding in reply.seen(group.rollouts))
        return Reflection(
            failure=tuple(draft for source, draft in by_source if source is EditSource.FAILURE),
            success=tuple(draft for source, draft in by_source if source is EditSource.SUCCESS),
            findings=joined(findings, len(self._cutters)),
            unusable=len(replies) - len(answers),
            notes=tuple(
                note for group, reply in answers if listens(self._session, group.source) for note in reply.notes
            ),
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
                base=self._base,
                budget=self._budget,
                feedback=feedback_section(self._feedback),
            )
        self._read += 1
        if self._complete:
            self._session.monitor.tick()
        return reply


def joined(findings: Iterable[FailurePattern], trajectories: int) -> tuple[FailurePattern, ...]:
    """Return findings with equal patterns joined, most frequent first; unnamed trajectories count as others."""
    by_pattern: dict[str, FailurePattern] = {}
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
        by_pattern[key] = FailurePattern(pattern=earlier.pattern, count=count, items=items, rival=rival)
    return tuple(sorted(map(_with_rival, by_pattern.values()), key=lambda finding: -finding.count))


def _with_rival(finding: FailurePattern) -> FailurePattern:
    if not finding.rival.strip():
        return finding
    return FailurePattern(
        pattern=f"{finding.pattern}; or else: {finding.rival}", count=finding.count, items=finding.items
    )


def with_probe(
    session: Session,
    skill: Skill,
    reflection: Reflection,
    probe: Experiment | None,
    *,
    budget: int | None,
    trajectories: int,
) -> Reflection:
    """Return ``reflection`` with what the experiment of its step showed, as one more draft from failures."""
    if probe is None:
        return reflection
    draft = probe.draft()
    findings, notes = (
        (probe.analysis.seen(probe.after), probe.analysis.notes) if probe.analysis is not None else ((), ())
    )
    return replace(
        reflection,
        failure=reflection.failure
        if draft is None
        else (*reflection.failure, within_budget(session, skill, draft, budget)),
        findings=joined((*reflection.findings, *findings), trajectories),
        unusable=reflection.unusable + (draft is None and probe.text != ""),
        notes=(*reflection.notes, *notes),
        probe=probe,
    )


async def _analyse(
    session: Session,
    state: RunState,
    skill: Skill,
    group: Minibatch,
    *,
    step: int,
    base: int,
    budget: int | None,
    feedback: str,
) -> Analysis | None:
    words = dialect(session)
    whole = session.settings.optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS
    messages = conversation(
        words.failures if group.source is EditSource.FAILURE else words.successes,
        session.task.environment,
        (
            *standing_sections(session, state, skill, whole=whole, between=(tried_section(session.trials), feedback)),
            "" if whole else budget_section(budget, session.settings.optimizer),
            trajectories_section(group.rollouts, group.source.value, session.settings.gradient.max_trajectory_tokens),
            earlier_section(session, state, group.rollouts, base),
            contrast_section(
                group.contrast,
                session.settings.gradient.max_trajectory_tokens,
                [trial.item.id for trial in group.rollouts],
            ),
        ),
    )
    draw = (step, group.source.value, group.batch, group.number)
    messages = aware(session, group.source, told_of_files(session, messages))
    messages = with_pictures(session, messages, (*group.rollouts, *group.contrast))
    return await ask(session, "analyst", messages, words.analysis, draw=draw, check=fits(skill, session))


PROBE_LENGTH = 1200  # characters of a probe at most
_ANSWER_SHOWN = 200


class ProbeReply(ReplyModel):
    reasoning: str = ""
    probe: str

    @field_validator("probe")
    @classmethod
    def _no_markers(cls, value: str) -> str:
        if has_marker(value):
            raise ValueError("a probe must not contain skillgit markers")
        return value.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    text: str = ""  # the instruction; empty if the optimizer wanted none
    reasoning: str = ""
    before: tuple[Rollout, ...] = ()
    after: tuple[Rollout, ...] = ()
    analysis: Analysis | None = None  # what an analyst says of it; None without a usable reply

    def draft(self) -> Draft | None:
        """Return what the analyst proposes; None without a usable reply."""
        if self.analysis is None:
            return None
        return self.analysis.draft(EditSource.FAILURE, [rollout.item.id for rollout in self.after])

    def evidence(self) -> evidence_files.Evidence:
        data = {"probe": self.text, "reasoning": self.reasoning, "items": [rollout.item.id for rollout in self.before]}
        files = evidence_files.rollouts_files("probed", self.after) if self.after else {}
        return evidence_files.merged([{"probe.json": evidence_files.json_file(data)}, files])


async def probe(
    session: Session, state: RunState, skill: Skill, rollouts: Sequence[Rollout], *, step: int, budget: int | None
) -> Experiment | None:
    """Carry out the experiment of a step; None where the settings want none or nothing failed."""
    settings = session.settings.gradient
    if not settings.use_deep_reflect:
        return None
    failures = diverse(
        session, [trial for trial in rollouts if _solved(trial) is False], settings.deep_reflect_failures, step
    )
    passes = diverse(session, [trial for trial in rollouts if _solved(trial)], settings.deep_reflect_successes, step)
    if not failures:
        return None
    reply = await _written(session, skill, failures, passes, step=step)
    text = redact(elide(reply.probe, PROBE_LENGTH)) if reply is not None else ""
    before = (*failures, *passes)
    if reply is None or not text:
        return Experiment(reasoning=reply.reasoning if reply is not None else "", before=before)
    session.monitor.stage(Stage.PROBE, len(before))
    after = await roll_out(session, probed(skill, text), [rollout.item for rollout in before], "probe")
    experiment = Experiment(text=text, reasoning=reply.reasoning, before=before, after=tuple(after))
    if not any(rollout.trajectory for rollout in after):
        return experiment
    return replace(experiment, analysis=await _analysed(session, state, skill, experiment, step=step, budget=budget))


def probed(skill: Skill, text: str) -> Skill:
    return skill.with_text(DOCUMENT, f"{skill.document.rstrip()}\n\n## For this task only\n\n{text}\n")


def diverse(session: Session, rollouts: Sequence[Rollout], size: int, step: int) -> tuple[Rollout, ...]:
    """Return ``size`` of ``rollouts``: the types of tasks in turn, the most frequent first, each in random order."""
    by_type: dict[str, list[Rollout]] = {}
    for rollout in shuffle(sorted(rollouts, key=lambda trial: trial.item.id), stream(session.seed, "probe", step)):
        by_type.setdefault(rollout.item.task_type, []).append(rollout)
    queues = sorted(by_type.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    longest = max((len(queue) for _, queue in queues), default=0)
    in_turn = [queue[index] for index in range(longest) for _, queue in queues if index < len(queue)]
    return tuple(in_turn[:size])


def _solved(rollout: Rollout) -> bool | None:
    return rollout.outcome.passed if isinstance(rollout.outcome, Scored) else None


async def _written(
    session: Session, skill: Skill, failures: Sequence[Rollout], passes: Sequence[Rollout], *, step: int
) -> ProbeReply | None:
    room = session.settings.gradient.max_trajectory_tokens
    sections = (
        skill_section(skill, session.settings.optimizer),
        trajectories_section(failures, "failure", room),
        trajectories_section(passes, "success", room) if passes else "",
    )
    messages = conversation("probe", session.task.environment, sections)
    messages = with_pictures(session, messages, (*failures, *passes))
    return await ask(session, "probe", messages, ProbeReply, draw=(step,))


async def _analysed(
    session: Session, state: RunState, skill: Skill, experiment: Experiment, *, step: int, budget: int | None
) -> Analysis | None:
    words, settings = dialect(session), session.settings
    whole = settings.optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS
    sections = (
        *standing_sections(session, state, skill, whole=whole),
        "" if whole else budget_section(budget, settings.optimizer),
        tagged("probe", experiment.text),
        tagged("before", "\n".join(map(_before, experiment.before))),
        trajectories_section(experiment.after, "probed", settings.gradient.max_trajectory_tokens),
    )
    messages = conversation(words.failures, session.task.environment, sections)
    request = aware(session, EditSource.FAILURE, told_of_files(session, extended(messages, "probed")))
    request = with_pictures(session, request, experiment.after)
    reply = await ask(session, "analyst", request, words.analysis, draw=(step, "probe"), check=fits(skill, session))
    return reply if reply is None or listens(session, EditSource.FAILURE) else reply.model_copy(update={"notes": ()})


def _before(rollout: Rollout) -> str:
    answer = rollout.trajectory.answer if rollout.trajectory is not None else ""
    hard = rollout.outcome.hard if isinstance(rollout.outcome, Scored) else 0.0
    return f"{rollout.item.id}: hard {hard:g}, answered: {elide(' '.join(answer.split()), _ANSWER_SHOWN)}"
