"""What follows from an epoch at its end: edits of a reflection on its steps, then the guidance of the slow update.

The reflection, meta reflect, is the only stage that sees which accepted edits were worth what. Its candidate passes the
gate in every mode, with a gate of its own event: a version on the run branch, or a rejected candidate next to it. The
slow update compares the epoch with the one before and writes guidance for the skill and memory for the optimizer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from skillgit.domain.edit import EditSource, removal, removals, title_of
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import COMPARISON
from skillgit.domain.proposal import BudgetSource, EditRecord, Origin, PatchCounts, changed_lines
from skillgit.domain.protected_regions import slow_guidance, with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.model_text import EMPTY, SkillText
from skillgit.engine import evidence_files
from skillgit.engine.candidate import edit_lint, fits, invalid, refusal, sifted, update
from skillgit.engine.concurrency import growing, side_by_side
from skillgit.engine.measure import Measured, gate_event, measure
from skillgit.engine.method_settings import PairPolicy
from skillgit.engine.prompt_sections import (
    Background,
    budget_section,
    changes_section,
    conversation,
    history_section,
    memory_section,
    record_section,
    skill_section,
    tagged,
    told_of_files,
    trajectory_text,
    with_pictures,
)
from skillgit.engine.proposals import Draft
from skillgit.engine.replies import GuidanceReply, MemoryReply, PatchReply, ask
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import (
    Search,
    Session,
    Stage,
    Transition,
    shuffle,
    slow_sample,
    stream,
    unanswered,
)
from skillgit.plugin.redaction import redact


async def reflect_on_epoch(search: Search) -> Transition:
    """Return what comes of the record of the epoch that has just ended: a version, a rejected candidate or nothing."""
    session, state, skill, began = search.session, search.state, search.skill, search.session.clock()
    session.monitor.stage(Stage.META, 1)
    budget, room = search.settings.optimizer.meta_learning_rate, search.settings.gradient.max_history_tokens
    epoch, background = [step for step in state.memory if step.epoch == state.epoch], Background.of(session, skill)
    sections = (
        skill_section(skill, search.settings.optimizer),
        memory_section(state.optimizer_memory),
        history_section([step for step in state.memory if step.epoch < state.epoch], room, background),
        record_section(epoch, room, background, has_findings=True),
        budget_section(budget),
    )
    messages = told_of_files(session, conversation("meta_reflect", session.task.environment, sections))
    reply = await ask(session, "meta_reflect", messages, PatchReply, draw=(state.epoch,), check=fits(skill, session))
    draft = Draft()
    if reply is not None:
        draft = reply.draft(EditSource.META, [f"step-{step.step}" for step in epoch])
    (fitting,), losses = sifted(search, [draft])
    application = update(skill, fitting, budget, edit_lint(session, skill))
    application = replace(application, reports=(*application.reports, *losses))
    candidate, edits, reports = application.skill, application.applied, application.reports
    files = evidence_files.patch_file(draft, reports)
    facts: dict[str, Any] = {
        "epoch": state.epoch,
        "step": state.step,
        "origin": Origin.META,
        "patch": PatchCounts(
            merged=len(draft.proposals),
            ranked=min(len(draft.proposals), budget),
            applied=len(edits),
            skipped=len(reports) - len(edits),
            budget=budget,
            by=BudgetSource.META,
        ),
    }
    objection = None
    if candidate.digest != skill.digest:
        objection = refusal(search, candidate) or await invalid(session, skill, candidate)
        if objection is None:
            measurement = await measure(search, candidate, has_gate=True)
            # What the optimizer wrote speaks of all its edits.
            draft = draft.limited(budget)
            whole = application.complete and not draft.cut
            title, reasoning = (draft.title, draft.reasoning) if whole else ("", "")
            event = gate_event(
                search,
                measurement,
                title=redact(title or title_of(edits) or f"reflect on epoch {state.epoch}"),
                why=redact("\n\n".join(filter(None, (reasoning, removals(reports))))),
                edits=tuple(map(EditRecord.of, edits)),
                changes=changed_lines(skill, candidate),
                cost=session.cost_since(began),
                **facts,
            )
            files = evidence_files.merged([files, measurement.evidence])
            return Transition(event=event, skill=candidate, evidence=files)
    if objection is not None:
        title, why = objection.title, objection.why
    elif reply is None:
        unread = "The optimizer's reply was not the JSON asked for, nor was the second one."
        title, why = "no usable reply", unanswered(session, "meta_reflect") or unread
    elif not draft.proposals:
        title, why = "the epoch asks for no edit", draft.reasoning
    elif edits:
        title, why = "edits leave the skill as it was", draft.reasoning
    else:
        reasons = (f"{report.edit.op} is {report.status}: {report.detail}" for report in reports)
        title, why = "no edit applies", "\n\n".join(reasons)
    event = Event(
        kind=EventKind.SKIPPED,
        run=session.run,
        skill=session.skill_path,
        title=title,
        why=redact(why),
        models=session.models,
        cost=session.cost_since(began),
        **facts,
    )
    return Transition(event=event, evidence=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    text: SkillText = EMPTY  # the new guidance; empty if there is nothing new to merge
    title: str = "nothing to add"  # what it is about, or why there is none
    why: str = ""
    measurement: Measured | None = None  # what the skill with it scores and what the gate says; absent without guidance


async def propose_slow_update(search: Search) -> Transition:
    """Return the slow update of the epoch; new guidance is always measured, so that every version's score is a fact."""
    session, state, began = search.session, search.state, search.session.clock()
    session.monitor.stage(Stage.SLOW)
    # the version with which the epoch before ended, its slow update included
    previous = search.history.skill(max(version.version for version in state.versions if version.epoch < state.epoch))
    pairs, rest = await compare_versions(session, previous, search.skill, state.epoch)
    # The memory needs the comparison alone: it is written while guidance is measured.
    guidance, memory = await side_by_side(_guidance(search, previous, pairs), _memory(search, previous, pairs))
    measurement = guidance.measurement
    event = Event(
        kind=EventKind.SLOW_PROPOSED,
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        base=state.version,
        title=redact(guidance.title),
        why=redact(guidance.why),
        guidance=guidance.text,
        memory=memory or state.optimizer_memory,
        evaluation=measurement.evaluation if measurement is not None else None,
        verdict=measurement.verdict if measurement is not None else None,
        fixed=measurement.fixed if measurement is not None else (),
        broken=measurement.broken if measurement is not None else (),
        models=session.models,
        cost=session.cost_since(began),
    )
    files = measurement.evidence if measurement is not None else {}
    return Transition(event=event, evidence=evidence_files.merged([comparison_file(pairs, rest), files]))


async def _guidance(search: Search, previous: Skill, pairs: Sequence[RolloutPair]) -> Guidance:
    """Measure what the optimizer says, exactly as it would be merged; what no candidate may say is not measured."""
    session, state, skill, reply = search.session, search.state, search.skill, None
    standing = slow_guidance(skill.document)
    if search.settings.optimizer.use_slow_update and pairs:
        steps = [step for step in state.memory if step.epoch == state.epoch]
        sections = (
            *_both_skills(search, previous),
            tagged("guidance", standing) if standing else "",
            memory_section(state.optimizer_memory),
            record_section(steps, search.settings.gradient.max_history_tokens, Background.of(session, skill)),
            _comparison_section(session, pairs),
        )
        messages = conversation("slow_update", session.task.environment, sections)
        messages = with_pictures(session, messages, [pair.current for pair in pairs])
        reply = await ask(session, "slow_update", messages, GuidanceReply, draw=(state.epoch,))
    if reply is None and (reason := unanswered(session, "slow_update")):
        return Guidance(title="no usable reply", why=reason)
    text = reply.guidance.reworded(redact(reply.guidance)) if reply is not None else EMPTY
    if reply is None or not text or text == standing:
        return Guidance(why=reply.reasoning if reply is not None else "")
    candidate = with_guidance(skill, text)
    if (objection := refusal(search, candidate)) is not None:
        return Guidance(title=objection.title, why=objection.why)
    measurement = await measure(search, candidate, has_gate=search.settings.optimizer.slow_update_gate_with_selection)
    return Guidance(
        text=text,
        title=reply.title or f"guidance of epoch {state.epoch}",
        why=measurement.explained("\n\n".join(filter(None, (reply.reasoning, removal("the guidance", text))))),
        measurement=measurement,
    )


async def _memory(search: Search, previous: Skill, pairs: Sequence[RolloutPair]) -> str:
    """Return what the optimizer is to remember from this epoch on; empty if it says nothing new."""
    session, state = search.session, search.state
    last_epoch = state.epoch >= search.settings.train.num_epochs
    if last_epoch or not search.settings.optimizer.use_meta_skill:
        return ""
    steps = [step for step in state.memory if step.epoch == state.epoch]
    background = Background.of(session, search.skill)
    sections = (
        *_both_skills(search, previous),
        memory_section(state.optimizer_memory),
        history_section(steps, search.settings.gradient.max_history_tokens, background),
        _comparison_section(session, pairs),
    )
    messages = conversation("meta_skill", session.task.environment, sections)
    reply = await ask(session, "meta_skill", messages, MemoryReply, draw=(state.epoch,))
    return redact(reply.memory.strip()) if reply is not None else ""


def _both_skills(search: Search, previous: Skill) -> tuple[str, str]:
    """Return the skill as it is, and in place of the one before the epoch what changed since."""
    return skill_section(search.skill, search.settings.optimizer), changes_section(previous, search.skill)


def _comparison_section(session: Session, pairs: Sequence[RolloutPair]) -> str:
    limit, sections = session.settings.gradient.max_trajectory_tokens, list[str]()
    counts = {category.value: sum(pair.category is category for pair in pairs) for category in Category}
    for pair in pairs:
        if pair.category is Category.STABLE_SUCCESS:
            continue
        before, after = pair.previous.trajectory, pair.current.trajectory
        # What went alike with both, as it always does where the epoch accepted nothing, is shown once.
        sides = [
            tagged(name, trajectory_text(trajectory, limit))
            for name, trajectory in (("previous", None if before == after else before), ("current", after))
            if trajectory is not None
        ]
        sections.append(tagged("pair", "\n".join(sides), id=pair.current.item.id, category=pair.category.value))
    return tagged("comparison", "\n".join(sections), **counts)


def with_guidance(skill: Skill, guidance: SkillText) -> Skill:
    return skill.with_text(DOCUMENT, with_slow_guidance(skill.document, guidance))


def merge_slow_update(search: Search, proposal: Event) -> Transition:
    session, state = search.session, search.state
    if proposal.evaluation is None or proposal.verdict is None:
        raise AssertionError("accepted guidance was measured")
    event = Event(
        kind=EventKind.SLOW_MERGED,
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
    return Transition(event=event, skill=with_guidance(search.skill, proposal.guidance))


def comparison_file(pairs: Sequence[RolloutPair], rest: Sequence[RolloutPair]) -> evidence_files.Evidence:
    """Return ``comparison.json``: the pairs that the optimizer saw, and the ``rest``."""
    rows = [
        {
            "id": pair.current.item.id,
            "category": pair.category.value,
            "shown": is_shown,
            "previous": _side(pair.previous),
            "current": _side(pair.current),
        }
        for group, is_shown in ((pairs, True), (rest, False))
        for pair in group
    ]
    return {COMPARISON: evidence_files.json_file(rows)}


def _side(rollout: Rollout) -> dict[str, object]:
    outcome, trajectory = rollout.outcome, rollout.trajectory
    scores = {"hard": outcome.hard, "soft": outcome.soft} if isinstance(outcome, Scored) else {}
    return {**scores, "answer": trajectory.answer if trajectory is not None else ""}


ROUND = 8  # items that are rolled out at a time to top up changed pairs


class Category(StrEnum):
    REGRESSED = "regressed"
    PERSISTENT_FAIL = "persistent_fail"
    IMPROVED = "improved"
    STABLE_SUCCESS = "stable_success"


_CATEGORIES = {
    (True, False): Category.REGRESSED,
    (False, False): Category.PERSISTENT_FAIL,
    (False, True): Category.IMPROVED,
    (True, True): Category.STABLE_SUCCESS,
}
"""How an outcome changed, by whether the item was solved before and is solved now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPair:
    category: Category
    previous: Rollout
    current: Rollout

    def is_wanted(self, policy: PairPolicy) -> bool:
        is_change = self.category in {Category.REGRESSED, Category.IMPROVED}
        return policy is PairPolicy.MIXED or is_change == (policy is PairPolicy.CHANGED)


async def compare_versions(
    session: Session, previous: Skill, current: Skill, epoch: int
) -> tuple[list[RolloutPair], list[RolloutPair]]:
    """Roll out a sample of train items with both versions; return the pairs that the settings ask for, and the others.

    Regressions come first. ``changed`` goes on with other train items, in an order of its own and in rounds of fixed
    size, until it has as many pairs as the sample has items or there are no more; what it keeps does not depend on how
    many run at once.
    """
    settings, items = session.settings.optimizer, session.task.items[Split.TRAIN]
    policy, size = settings.longitudinal_pair_policy, settings.slow_update_samples
    sample = slow_sample(items, seed=session.seed, epoch=epoch, size=size)
    reserve: list[Item] = []
    if policy is PairPolicy.CHANGED:
        ids = {item.id for item in sample}
        reserve = shuffle([item for item in items if item.id not in ids], stream(session.seed, "slow-pairs", epoch))
    pairs = await _roll_out_both(session, previous, current, sample, reserve)
    selection = [pair for pair in pairs if pair.is_wanted(policy)][:size]
    rest = [pair for pair in pairs if all(pair is not entry for entry in selection)]
    order = list(Category)
    worst_first = [sorted(each, key=lambda pair: order.index(pair.category)) for each in (selection, rest)]
    return worst_first[0], worst_first[1]


async def _roll_out_both(
    session: Session, previous: Skill, current: Skill, sample: Sequence[Item], reserve: Sequence[Item]
) -> list[RolloutPair]:
    """Roll out ``sample``, and rounds of ``reserve``, each as soon as it is certain that it will be needed.

    The items of a round are rolled out with the one version and then with the other, not by turns: a server that keeps
    the prompts that it worked on then works on each text once.
    """
    settings, slots = session.settings.optimizer, asyncio.Semaphore(session.workers)
    items, by_index = [*sample, *reserve], dict[int, list[RolloutPair]]()
    start_count, possible = 0, 0

    async def one(skill: Skill, index: int) -> list[Rollout]:
        return await roll_out(session, skill, [items[index]], "slow", slots=slots)

    async def pair(index: int, before: asyncio.Task[list[Rollout]], after: asyncio.Task[list[Rollout]]) -> None:
        nonlocal possible
        by_index[index] = compare(await before, await after)
        possible -= not any(pair.is_wanted(settings.longitudinal_pair_policy) for pair in by_index[index])
        top_up()

    def start(count: int) -> None:
        nonlocal start_count, possible
        indexes = range(start_count, min(start_count + count, len(items)))
        start_count, possible = indexes.stop, possible + len(indexes)
        sides = [[group.create_task(one(skill, index)) for index in indexes] for skill in (previous, current)]
        for index, before, after in zip(indexes, *sides, strict=True):
            group.create_task(pair(index, before, after))

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
