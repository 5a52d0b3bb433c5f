"""The edits of a step of the reference, as far as they can be told as ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING

from skillgit.app.importing.outcomes import count
from skillgit.app.importing.texts import with_our_markers
from skillgit.domain.edit import Edit, EditReport, EditStatus, Op, Patch, Source, apply
from skillgit.domain.event import BudgetSource, EditRecord, PatchCounts
from skillgit.domain.rewrite import RewriteError, Template, UpdateMode, changed_hunks, rewritten
from skillgit.domain.untrusted.text import EMPTY, clean, verbatim
from skillgit.engine.artifacts import patch_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.app.importing.directory import Directory, Row
    from skillgit.app.importing.history import Step
    from skillgit.domain.skill import Skill

_ITEMS = ("edits", "revise_suggestions", "skill_candidates")
_AUTONOMOUS = frozenset({"autonomous", "auto", "optimizer"})
_UNLIMITED = frozenset({"none", "off", "no_lr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """What a step changed.

    Attributes:
        title: A few words for it.
        reasoning: Why.
        edits: The edits, where they are edits.
        counts: How many there were.
        evidence: ``patch.json``, if applying the edits to the base gives the candidate here too.
        remark: What is odd about it; empty if nothing is.
    """

    title: str
    reasoning: str
    edits: tuple[EditRecord, ...]
    counts: PatchCounts
    evidence: Mapping[str, bytes]
    remark: str = ""


def read_patch(directory: Directory, step: Step, mode: UpdateMode, base: Skill, candidate: Skill | None) -> Patched:
    """Return what ``step`` changed; ``candidate`` is absent for a step without one."""
    ranked = directory.mapping(f"{step.folder}/ranked_edits.json") or {}
    merged = directory.mapping(f"{step.folder}/merged_patch.json") or {}
    items = _items(ranked) or _items(merged)
    statuses = [str(row.get("status", "")) for row in directory.listing(f"{step.folder}/edit_apply_report.json") or ()]
    reports = zip(items, chain(statuses, repeat("applied")), strict=False)
    applied = [(item, status) for item, status in reports if status.startswith("applied")]
    edits = tuple(_edits(applied))
    title = str(step.own.get("title") or _title(step, [item for item, _ in applied]))
    # What the optimizer wrote speaks of all its edits.
    written = ranked.get("reasoning") or merged.get("reasoning") if len(applied) == len(items) else ""
    reasoning = str(step.own.get("why") or written or "")
    evidence: Mapping[str, bytes] = {}
    records = tuple(EditRecord.of(edit) for edit in edits)
    if candidate is not None and mode is UpdateMode.PATCH:
        done = apply(base, edits)
        if len(done.applied) == len(edits) and done.skill.digest == candidate.digest:
            evidence = patch_file(Patch(edits=edits, reasoning=reasoning, title=title), done.reports)
    elif candidate is not None:
        records, evidence = _rewrite(base, candidate, title, reasoning)
    counts, remark = _counts(step, mode, len(records))
    return Patched(title=title, reasoning=reasoning, edits=records, counts=counts, evidence=evidence, remark=remark)


def _items(patch: Row) -> list[Row]:
    for key in _ITEMS:
        found = patch.get(key)
        if isinstance(found, list):
            return [row for row in found if isinstance(row, dict)]
    return []


def _edits(applied: Sequence[tuple[Row, str]]) -> Iterator[Edit]:
    """Yield the edits that took effect, each given with its status, as far as they are of a kind that we know."""
    for item, status in applied:
        op = str(item.get("op") or "")
        if op not in set(Op):
            continue
        fallen = "fallback" in status
        source = str(item.get("source_type") or "")
        yield Edit(
            op=Op.APPEND if fallen else Op(op),
            anchor=EMPTY if fallen or op == Op.APPEND else clean(with_our_markers(str(item.get("target") or ""))),
            content=clean(str(item.get("content") or "")),
            support=count(item.get("support_count")) or 0,
            source=Source(source) if source in set(Source) else Source.MIXED,
        )


def _title(step: Step, items: Sequence[Row]) -> str:
    summary = step.record.get("rewrite_change_summary")
    told = [str(line) for line in summary] if isinstance(summary, list) else []
    told += [str(item.get("title") or item.get("content") or item.get("target") or "") for item in items]
    lines = [line.strip(" -*#") for text in told for line in text.splitlines()]
    return next((line for line in lines if line), f"step {step.number}")


def _rewrite(
    base: Skill, candidate: Skill, title: str, reasoning: str
) -> tuple[tuple[EditRecord, ...], Mapping[str, bytes]]:
    """Return the stretches of lines that a rewrite changed, and the evidence if it kept what is protected here."""
    edits = changed_hunks(base, candidate, support=0, source=Source.MIXED)
    records = tuple(EditRecord.of(edit) for edit in edits)
    body = verbatim(Template.of(candidate.document).body)
    try:
        same = rewritten(base, body).digest == candidate.digest
    except RewriteError:
        same = False
    if not same:
        return records, {}
    reports = [EditReport(edit=edit, status=EditStatus.APPLIED) for edit in edits]
    return records, patch_file(Patch(edits=edits, reasoning=reasoning, title=title), reports, body)


def _counts(step: Step, mode: UpdateMode, applied: int) -> tuple[PatchCounts, str]:
    summary = step.record.get("edit_apply_summary")
    summary = summary if isinstance(summary, dict) else {}
    ranked = step.counted("n_edits_ranked")
    control = str(step.record.get("lr_control_mode") or "")
    found = PatchCounts(
        merged=step.counted("n_edits_merged"),
        ranked=ranked,
        applied=applied if count(summary.get("applied")) is None else int(str(summary["applied"])),
        skipped=(count(summary.get("skipped")) or 0) + (count(summary.get("errors")) or 0),
        budget=count(step.record.get("edit_budget")),
        by=BudgetSource.OPTIMIZER if control in _AUTONOMOUS else BudgetSource.SCHEDULE,
        mode=mode,
    )
    unlimited = control in _UNLIMITED and mode is UpdateMode.FULL
    over = found.budget is not None and ranked > found.budget and not unlimited
    if found.budget is None or unlimited or over:
        without = replace(found, budget=None, by=BudgetSource.NONE)
        told = f"step {step.number} applied {ranked} edits with a budget of {found.budget}; the budget is left out"
        return without, told if over else ""
    return found, ""
