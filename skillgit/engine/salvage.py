"""Salvage: parts of a rejected patch of several edits, each measured and gated like any other candidate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.edit import Application, Edit, EditReport, EditStatus, apply
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import PATCH, SALVAGE
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.proposal import EditRecord
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import invalid, refusal
from skillgit.engine.concurrency import ordered
from skillgit.engine.prompt_sections import edit_fields
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Session, Transition

MOST_PARTS = 2  # parts that are measured at most
FEWEST_EDITS = 2  # a patch of fewer edits has no parts


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPart:
    application: Application  # the skill with these edits, and what happened to every edit of the patch
    breaks: int  # of the items that the whole patch broke, those that the part breaks too


def worth_salvaging(session: Session, event: Event) -> bool:
    """Say whether ``event`` rejects a patch of which a part may pass: one that is not known to have broken nothing."""
    return (
        session.settings.optimizer.salvage
        and event.kind is EventKind.REJECTED
        and event.verdict.decision is Decision.REJECT
        and event.patch.applied >= FEWEST_EDITS
        and event.patch.mode.proposals is ProposalKind.EDITS
        and event.appendix is None
        and (bool(event.broken) or event.evaluation.stopped)
    )


async def salvage(
    session: Session,
    state: RunState,
    skill: Skill,
    whole: Transition,
    *,
    edits: Sequence[Edit],
    judge: Callable[[Application], Awaitable[Transition]],
) -> Transition:
    """Return the first part of a rejected patch that passes the gate; ``whole``, the rejection, if none does.

    The edits are halved by their support. Both halves are first rolled out on the items that the whole is known to have
    broken; the half that breaks fewer of them is measured first. At most two parts are measured, and each is one more
    look at the selection split. ``judge`` measures a part and puts it before the gate.
    """
    rows: list[dict[str, object]] = []
    for part in (await _parts(session, skill, whole, edits))[:MOST_PARTS]:
        candidate = part.application.skill
        if refusal(session, state, skill, candidate) or await invalid(session, skill, candidate):
            continue
        transition = await judge(part.application)
        rows.append(_row(part, transition.event))
        if transition.event.kind is not EventKind.REJECTED:
            return replace(transition, evidence=evidence_files.merged([transition.evidence, _kept(whole, rows)]))
    files = {SALVAGE: evidence_files.json_file({"parts": rows})}
    return replace(whole, evidence=evidence_files.merged([whole.evidence, files]))


def attributed(edits: Sequence[Edit], verdict: Verdict, mode: UpdateMode) -> tuple[EditRecord, ...]:
    """Return the records of edits; only an accepted one that was measured alone bears what it fixed and broke."""
    records = tuple(EditRecord.of(edit) for edit in edits)
    if len(records) != 1 or mode.proposals is not ProposalKind.EDITS or not verdict.decision.accepted:
        return records
    return (replace(records[0], fixed=verdict.fixed, broken=verdict.broken),)


def halves(edits: Sequence[Edit]) -> list[tuple[Edit, ...]]:
    """Return the half of ``edits`` with the most support and the other one, each in the order of the patch."""
    by_support = sorted(range(len(edits)), key=lambda index: (-edits[index].support, index))
    middle = (len(edits) + 1) // 2
    return [tuple(edits[index] for index in sorted(half)) for half in (by_support[:middle], by_support[middle:])]


async def _parts(session: Session, skill: Skill, whole: Transition, edits: Sequence[Edit]) -> list[PatchPart]:
    """Return the halves that work alone, the one that breaks least first."""
    items = [item for item in session.task.items[Split.SELECTION] if item.id in whole.event.broken]
    before = await roll_out(session, skill, items, "selection")
    parts = [_apart(skill, half, edits) for half in halves(edits)]
    alone = [part for part in parts if part.skill.digest != skill.digest]
    slots = asyncio.Semaphore(session.workers)

    async def measured(part: Application) -> PatchPart:
        after = await roll_out(session, part.skill, items, "selection", slots=slots)
        return PatchPart(application=part, breaks=_breaks(session, before, after))

    results = await ordered(measured, alone, limit=MOST_PARTS)
    return sorted(results, key=lambda part: part.breaks)


def _breaks(session: Session, before: Sequence[Rollout], after: Sequence[Rollout]) -> int:
    """Return how many items score lower after than before; one that could not be evaluated counts as broken."""
    rule = session.rule

    def value(rollout: Rollout) -> float:
        outcome = rollout.outcome
        return outcome.value(rule.metric, rule.soft_weight) if isinstance(outcome, Scored) else 0.0

    return sum(value(new) < value(old) for old, new in zip(before, after, strict=True))


def _apart(skill: Skill, half: Sequence[Edit], edits: Sequence[Edit]) -> Application:
    """Return ``half`` applied to ``skill``; the other edits are reported as set aside."""
    alone = apply(skill, half)
    reports = iter(alone.reports)
    ids = set(map(id, half))
    return Application(
        skill=alone.skill,
        reports=tuple(
            next(reports)
            if id(edit) in ids
            else EditReport(edit=edit, status=EditStatus.SET_ASIDE, detail="the patch with it was rejected")
            for edit in edits
        ),
    )


def _row(part: PatchPart, event: Event) -> dict[str, object]:
    verdict = event.verdict
    return {
        "edits": [edit_fields(edit) for edit in part.application.applied],
        "breaks": part.breaks,
        "decision": verdict.decision.value if verdict is not None else "",
        "score": verdict.score if verdict is not None else None,
        "fixed": list(event.fixed),
        "broken": list(event.broken),
    }


def _kept(whole: Transition, rows: list[dict[str, object]]) -> evidence_files.Evidence:
    inner = b'"trajectory": "selection/'
    files = {
        f"salvage/{path}": content.replace(inner, b'"trajectory": "salvage/selection/')
        for path, content in whole.evidence.items()
        if path.startswith((PATCH, "selection"))
    }
    event = whole.event
    verdict, flips = event.verdict, {"fixed": list(event.fixed), "broken": list(event.broken)}
    summary = {"score": verdict.score, "current": verdict.current, "p": verdict.p, **flips}
    return files | {SALVAGE: evidence_files.json_file({"whole": summary, "parts": rows})}
