"""Deep reflect: a few items are rolled out again with a probe, and what they show then is analysed too.

The probe is an instruction that the optimizer writes for the experiment. It is behind the skill during these
rollouts only and is never part of a candidate; since the text differs, so do the keys of its rollouts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import field_validator

from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import EditSource
from skillgit.domain.evaluation import Scored
from skillgit.domain.protected_regions import has_marker
from skillgit.domain.skill import DOCUMENT
from skillgit.engine import evidence_files
from skillgit.engine.companion_files import told_of_files
from skillgit.engine.edit_places import fits
from skillgit.engine.minibatches import shuffle, stream
from skillgit.engine.optimizer_memory import history_section
from skillgit.engine.progress import Stage
from skillgit.engine.prompt_sections import (
    budget_section,
    conversation,
    memory_section,
    skill_section,
    tagged,
    template_section,
    trajectories_section,
    with_pictures,
)
from skillgit.engine.reminder_appendix import aware, extended, listens
from skillgit.engine.reply_fields import ReplyModel
from skillgit.engine.reply_schemas import ask
from skillgit.engine.rollout import roll_out
from skillgit.engine.trajectory_elision import elide
from skillgit.engine.update_modes import dialect
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.domain.untrusted.model_text import SkillText
    from skillgit.engine.proposals import Draft
    from skillgit.engine.reply_schemas import Analysis
    from skillgit.engine.session import Session

PROBE_LENGTH = 1200  # characters of a probe at most
_ANSWER_SHOWN = 200


class ProbeReply(ReplyModel):
    """An instruction for an experiment; empty if none is needed."""

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
    """An experiment."""

    text: str = ""  # the instruction; empty if the optimizer wanted none
    reasoning: str = ""
    before: tuple[Rollout, ...] = ()
    after: tuple[Rollout, ...] = ()
    analysis: Analysis | None = None  # what an analyst says of it; None without a usable reply

    @property
    def notes(self) -> tuple[SkillText, ...]:
        return self.analysis.notes if self.analysis is not None else ()

    def draft(self, budget: int | None) -> Draft | None:
        """Return what the analyst proposes, cut to ``budget``; None without a usable reply."""
        if self.analysis is None:
            return None
        draft = self.analysis.draft(EditSource.FAILURE, [rollout.item.id for rollout in self.after])
        return draft.limited(budget)

    def evidence(self) -> evidence_files.Evidence:
        """Return ``probe.json`` with the instruction and, if it was tried, ``probed.json`` with its rollouts."""
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
    """Return ``skill`` as the target sees it in the experiment: with the probe behind it."""
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
    """Say whether the item is solved; None if it could not be evaluated."""
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
        template_section(skill) if whole else skill_section(skill, settings.optimizer),
        memory_section(state.optimizer_memory),
        history_section(state.memory, settings.gradient.max_history_tokens),
        "" if whole else budget_section(budget),
        tagged("probe", experiment.text),
        tagged("before", "\n".join(map(_before, experiment.before))),
        trajectories_section(experiment.after, "probed", settings.gradient.max_trajectory_tokens),
    )
    messages = conversation(words.failures, session.task.environment, sections)
    request = aware(session, EditSource.FAILURE, told_of_files(session, extended(messages, "probed")))
    request = with_pictures(session, request, experiment.after)
    reply = await ask(session, "analyst", request, words.analysis, draw=(step, "probe"), check=fits(skill))
    return reply if reply is None or listens(session, EditSource.FAILURE) else reply.model_copy(update={"notes": ()})


def _before(rollout: Rollout) -> str:
    answer = rollout.trajectory.answer if rollout.trajectory is not None else ""
    hard = rollout.outcome.hard if isinstance(rollout.outcome, Scored) else 0.0
    return f"{rollout.item.id}: hard {hard:g}, answered: {elide(' '.join(answer.split()), _ANSWER_SHOWN)}"
