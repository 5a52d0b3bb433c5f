"""Reflect: analysts read trajectories in minibatches and propose changes.

In deep reflect a few items are rolled out again with a probe, an instruction that the optimizer writes for the
experiment, and what they show then is analysed too. The probe is behind the skill during these rollouts only and is
never part of a candidate; since the text differs, so do the keys of its rollouts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import field_validator
from rapidfuzz import fuzz

from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import EditReport, EditSource, normalised
from skillgit.domain.evaluation import Scored
from skillgit.domain.proposal import Feedback
from skillgit.domain.protected_regions import has_marker
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.model_text import SkillText
from skillgit.engine import evidence_files
from skillgit.engine.candidate import fits, sifted, within_budget
from skillgit.engine.concurrency import ended
from skillgit.engine.method_settings import GradientSettings
from skillgit.engine.prompt_sections import (
    aware,
    budget_section,
    contrast_section,
    conversation,
    earlier_section,
    elide,
    extended,
    feedback_section,
    listens,
    skill_section,
    standing_sections,
    tagged,
    told_of_files,
    trajectories_section,
    tried_section,
    with_pictures,
)
from skillgit.engine.proposals import Draft
from skillgit.engine.replies import Analysis, FailurePattern, ReplyModel, ask, dialect
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Search, Session, Stage, shuffle, stream
from skillgit.plugin.redaction import redact

_COMPARED = 4_000  # characters of a task that are compared with another one's


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """Trajectories that one analyst reads, and in contrast some of the other outcome.

    Other attempts at the same items come first, then the trajectories of other items that are most like them.
    """

    source: EditSource
    batch: int  # the batch of the step that they belong to
    number: int  # its place among the minibatches of the same source and batch
    rollouts: tuple[Rollout, ...]
    contrast: tuple[Rollout, ...] = ()

    @property
    def place(self) -> tuple[bool, int, int]:
        """Where it is among those of its step: failures first, then batch by batch."""
        return self.source is not EditSource.FAILURE, self.batch, self.number


class Cutter:
    """Cuts the rollouts of one batch into minibatches while they come in.

    In the order of the batch, the k-th run of ``minibatch_size`` failures is the k-th minibatch of failures, and the
    same goes for successes, if these are read. So a minibatch is complete once its last member and all items before it
    are rolled out, and what it holds depends on outcomes alone, not on the order in which they come. The short ones at
    the end wait for all. Items without a score are in none. Contrast is taken from what is rolled out before a
    minibatch is complete; where further rollouts of its items have the other outcome, one of each item comes first.
    """

    def __init__(self, items: Sequence[Item], batch: int, settings: GradientSettings) -> None:
        self._batch = batch
        self._size = settings.minibatch_size
        self._left = deque(item.id for item in items)
        self._early: dict[str, Rollout] = {}
        self._others: dict[str, Sequence[Rollout]] = {}
        self._open: dict[EditSource, list[Rollout]] = {EditSource.FAILURE: []}
        if not settings.failure_only:
            self._open[EditSource.SUCCESS] = []
        self._cut = dict.fromkeys(self._open, 0)
        self._contrast = settings.contrast
        self._scored: dict[EditSource, list[Rollout]] = {EditSource.FAILURE: [], EditSource.SUCCESS: []}

    def take(self, rollout: Rollout, draws: Sequence[Rollout] = ()) -> list[Minibatch]:
        """Take the rollout of an item of the batch, and more ``draws`` of it; return minibatches that it completes."""
        self._others[rollout.item.id] = draws
        self._early[rollout.item.id] = rollout
        complete: list[Minibatch] = []
        while self._left and self._left[0] in self._early:
            complete.extend(self._sorted(self._early.pop(self._left.popleft())))
        if not self._left:
            complete.extend(self._closed(source) for source, rollouts in self._open.items() if rollouts)
        return complete

    def _sorted(self, rollout: Rollout) -> Iterator[Minibatch]:
        if not isinstance(rollout.outcome, Scored):
            return
        source = EditSource.SUCCESS if rollout.outcome.passed else EditSource.FAILURE
        self._scored[source].append(rollout)
        if source in self._open:
            self._open[source].append(rollout)
            if len(self._open[source]) == self._size:
                yield self._closed(source)

    def _closed(self, source: EditSource) -> Minibatch:
        rollouts, self._open[source] = tuple(self._open[source]), []
        number, self._cut[source] = self._cut[source], self._cut[source] + 1
        candidates = self._scored[EditSource.SUCCESS if source is EditSource.FAILURE else EditSource.FAILURE]
        twins = tuple(twin for rollout in rollouts for twin in self._twins(rollout)[:1])
        contrast = (*twins, *most_alike(candidates, rollouts, max(self._contrast - len(twins), 0)))
        return Minibatch(source=source, batch=self._batch, number=number, rollouts=rollouts, contrast=contrast)

    def _twins(self, rollout: Rollout) -> list[Rollout]:
        """Return the further rollouts of an item that passed where ``rollout`` failed, or failed where it passed."""
        return [
            draw
            for draw in self._others[rollout.item.id]
            if isinstance(draw.outcome, Scored)
            and isinstance(rollout.outcome, Scored)
            and draw.outcome.passed is not rollout.outcome.passed
        ]


def most_alike(candidates: Sequence[Rollout], rollouts: Sequence[Rollout], count: int) -> tuple[Rollout, ...]:
    """Return the candidates most like one of ``rollouts``: of a same type first, then with the most common words."""
    types, texts = {rollout.item.task_type for rollout in rollouts}, [_task_text(rollout) for rollout in rollouts]

    def rank(index: int) -> tuple[bool, float, int]:
        text = _task_text(candidates[index])
        likeness = max((fuzz.token_set_ratio(text, task) for task in texts), default=0.0)
        return candidates[index].item.task_type not in types, -likeness, index

    return tuple(candidates[index] for index in sorted(sorted(range(len(candidates)), key=rank)[:count]))


def _task_text(rollout: Rollout) -> str:
    turns = rollout.trajectory.turns if rollout.trajectory is not None else ()
    return next((turn.content for turn in turns if turn.role == "user"), "")[:_COMPARED]


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

    One that fails keeps the others working: the failure is raised once all have ended, so that nothing that was paid
    for is lost.
    """

    def __init__(self, search: Search, batches: Sequence[Sequence[Item]]) -> None:
        self._search = search
        settings = search.settings.gradient
        self._cutters: dict[str, Cutter] = {}
        for number, batch in enumerate(batches):
            self._cutters |= dict.fromkeys((item.id for item in batch), Cutter(batch, number, settings))
        self._feedback = search.session.feedback()
        self._slots = asyncio.Semaphore(settings.analyst_workers)
        self._analysts: list[tuple[Minibatch, asyncio.Task[Analysis | None]]] = []
        self._read = 0
        self._complete = False

    def take(self, rollout: Rollout, draws: Sequence[Rollout] = ()) -> None:
        """Take the rollout of an item, and more ``draws`` of it; send off analysts of minibatches that it completes."""
        for group in self._cutters[rollout.item.id].take(rollout, draws):
            self._analysts.append((group, asyncio.create_task(self._analyse(group))))

    async def reflection(self) -> Reflection:
        """Return what all analysts say; every item of the step has been taken before."""
        search, monitor = self._search, self._search.session.monitor
        self._complete = True
        # the number of analysts was unknown before
        monitor.stage(Stage.REFLECT, len(self._analysts))
        for _ in range(self._read):
            monitor.tick()
        analysts = sorted(self._analysts, key=lambda analyst: analyst[0].place)
        await asyncio.gather(*(task for _, task in analysts), return_exceptions=True)
        replies = [(group, task.result()) for group, task in analysts]
        answers = [(group, reply) for group, reply in replies if reply is not None]
        proposals = [reply.draft(group.source, [trial.item.id for trial in group.rollouts]) for group, reply in answers]
        drafts, losses = sifted(search, proposals)
        by_source: dict[EditSource, list[Draft]] = {EditSource.FAILURE: [], EditSource.SUCCESS: []}
        for (group, _), draft in zip(answers, drafts, strict=True):
            by_source[group.source].append(within_budget(search, draft, search.quota))
        findings = (finding for group, reply in answers for finding in reply.seen(group.rollouts))
        return Reflection(
            failure=tuple(by_source[EditSource.FAILURE]),
            success=tuple(by_source[EditSource.SUCCESS]),
            findings=joined(findings, len(self._cutters)),
            unusable=len(replies) - len(answers),
            notes=tuple(
                note for group, reply in answers if listens(search.session, group.source) for note in reply.notes
            ),
            feedback=self._feedback,
            losses=losses,
        )

    async def close(self) -> None:
        await ended([task for _, task in self._analysts])

    async def _analyse(self, group: Minibatch) -> Analysis | None:
        search, session, gradient = self._search, self._search.session, self._search.settings.gradient
        words, is_failure = dialect(session), group.source is EditSource.FAILURE
        async with self._slots:
            shown_before = (tried_section(session.trials), feedback_section(self._feedback))
            sections = (
                *standing_sections(search, whole=asks_whole(search), between=shown_before),
                "" if asks_whole(search) else budget_section(search.quota, search.settings.optimizer),
                trajectories_section(group.rollouts, group.source.value, gradient.max_trajectory_tokens),
                earlier_section(search, group.rollouts),
                contrast_section(
                    group.contrast, gradient.max_trajectory_tokens, [trial.item.id for trial in group.rollouts]
                ),
            )
            name = words.failures if is_failure else words.successes
            messages = told_of_files(session, conversation(name, session.task.environment, sections))
            messages = aware(session, group.source, messages)
            messages = with_pictures(session, messages, (*group.rollouts, *group.contrast))
            draw = (search.step, group.source.value, group.batch, group.number)
            check = fits(search.skill, session)
            reply = await ask(session, "analyst", messages, words.analysis, draw=draw, check=check)
        self._read += 1
        if self._complete:
            session.monitor.tick()
        return reply


def asks_whole(search: Search) -> bool:
    """Whether analysts propose whole documents."""
    return search.settings.optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS


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
    for key, finding in by_pattern.items():
        if finding.rival.strip():
            pattern = f"{finding.pattern}; or else: {finding.rival}"
            by_pattern[key] = FailurePattern(pattern=pattern, count=finding.count, items=finding.items)
    return tuple(sorted(by_pattern.values(), key=lambda finding: -finding.count))


def with_probe(search: Search, reflection: Reflection, probe: Experiment | None) -> Reflection:
    """Return ``reflection`` with what the experiment of its step showed, as one more draft from failures."""
    if probe is None:
        return reflection
    draft, analysis = probe.draft(), probe.analysis
    findings, notes = (analysis.seen(probe.after), analysis.notes) if analysis is not None else ((), ())
    drafts = () if draft is None else (within_budget(search, draft, search.quota),)
    return replace(
        reflection,
        failure=(*reflection.failure, *drafts),
        findings=joined((*reflection.findings, *findings), len(search.items)),
        unusable=reflection.unusable + (draft is None and probe.text != ""),
        notes=(*reflection.notes, *notes),
        probe=probe,
    )


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


async def probe(search: Search, rollouts: Sequence[Rollout]) -> Experiment | None:
    """Carry out the experiment of a step; None where the settings want none or nothing failed.

    The optimizer writes the probe from some failures and passes; they are rolled out with it, and an analyst says what
    they show then.
    """
    session, settings, environment = search.session, search.settings, search.session.task.environment
    gradient = settings.gradient
    if not gradient.use_deep_reflect:
        return None
    pairs = [(trial, trial.outcome) for trial in rollouts]
    failing = [trial for trial, outcome in pairs if isinstance(outcome, Scored) and not outcome.passed]
    passing = [trial for trial, outcome in pairs if isinstance(outcome, Scored) and outcome.passed]
    failures = diverse(session, failing, gradient.deep_reflect_failures, search.step)
    passes = diverse(session, passing, gradient.deep_reflect_successes, search.step)
    if not failures:
        return None
    before, room = (*failures, *passes), gradient.max_trajectory_tokens
    sections = (
        skill_section(search.skill, settings.optimizer),
        trajectories_section(failures, "failure", room),
        trajectories_section(passes, "success", room) if passes else "",
    )
    messages = with_pictures(session, conversation("probe", environment, sections), before)
    instruction = await ask(session, "probe", messages, ProbeReply, draw=(search.step,))
    text = redact(elide(instruction.probe, PROBE_LENGTH)) if instruction is not None else ""
    if instruction is None or not text:
        return Experiment(reasoning=instruction.reasoning if instruction is not None else "", before=before)
    session.monitor.stage(Stage.PROBE, len(before))
    after = await roll_out(session, probed(search.skill, text), [rollout.item for rollout in before], "probe")
    experiment = Experiment(text=text, reasoning=instruction.reasoning, before=before, after=tuple(after))
    if not any(rollout.trajectory for rollout in after):
        return experiment
    sections_after = (
        *standing_sections(search, whole=asks_whole(search)),
        "" if asks_whole(search) else budget_section(search.quota, settings.optimizer),
        tagged("probe", text),
        tagged("before", "\n".join(map(_before, before))),
        trajectories_section(after, "probed", room),
    )
    words = dialect(session)
    messages = told_of_files(session, extended(conversation(words.failures, environment, sections_after), "probed"))
    messages = with_pictures(session, aware(session, EditSource.FAILURE, messages), after)
    draw, check = (search.step, "probe"), fits(search.skill, session)
    analysis = await ask(session, "analyst", messages, words.analysis, draw=draw, check=check)
    if analysis is not None and not listens(session, EditSource.FAILURE):
        analysis = analysis.model_copy(update={"notes": ()})
    return replace(experiment, analysis=analysis)


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


def _before(rollout: Rollout) -> str:
    answer = rollout.trajectory.answer if rollout.trajectory is not None else ""
    hard = rollout.outcome.hard if isinstance(rollout.outcome, Scored) else 0.0
    return f"{rollout.item.id}: hard {hard:g}, answered: {elide(' '.join(answer.split()), _ANSWER_SHOWN)}"
