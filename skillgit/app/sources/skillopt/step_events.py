"""The steps of a directory as events, with their edits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import TypedDict

from skillgit.app.sources.skillopt.directory import Directory, Import, Row
from skillgit.app.sources.skillopt.outcomes import (
    ORIGIN,
    ROUNDING,
    ImportedScore,
    Outcomes,
    RecordedScore,
    count,
    number,
    read_outcomes,
)
from skillgit.app.sources.skillopt.run_events import Chapter, ImportedJudgement, Step, cost
from skillgit.app.sources.skillopt.skill_texts import alike, with_our_markers
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import ProposalKind, RewriteError, Template, UpdateMode, changed_hunks, rewritten
from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus, Op, Patch, apply
from skillgit.domain.evaluation import Split
from skillgit.domain.event import Accepted, Models, Rejected, Skipped
from skillgit.domain.evidence_names import FINDINGS, ROLLOUT
from skillgit.domain.gate_decision import GateRule, NoRegression
from skillgit.domain.gate_policies import POLICIES
from skillgit.domain.proposal import BudgetSource, EditRecord, PatchCounts, changed_lines
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean, verbatim
from skillgit.engine.evidence_files import json_file, patch_file

_FILES = (
    *("step_record.json", "merged_patch.json", "ranked_edits.json", "lr_decision.json", "rewrite_result.json"),
    *("full_rewrite_result.json", "trajectory_digest.json"),
)
_REASONS = {
    "skip_no_patches": "no usable patches",
    "skip_no_rewrite": "no usable rewrite",
    "": "nothing is recorded of this step",
}


class _Told(TypedDict):
    title: str
    why: str
    step: int
    models: Models
    cost: Cost


def tell_step(source: Import, step: Step) -> None:
    text, score = _candidate(source, step), _score(source, step)
    if text is None or score is None:
        _tell_skip(source, step, score)
        return
    skill, story = source.texts.skill(text), source.story
    if skill.name != source.texts.name:
        raise AssertionError("all texts of a directory are versions of one skill")
    story.remark(score.remark)
    patch = read_patch(source.directory, step, source.settings.mode, story.skill, skill)
    story.remark(patch.remark)
    # A step says itself where nothing was gated.
    rule = source.settings.rule
    rule = rule_of(replace(rule, enabled=rule.enabled and step.action != "force_accept"), step.own)
    judgement = story.judge(rule, score, is_accepted=step.accepted, where=f"step {step.number}")
    story.remark(judgement.remark)
    _check_numbers(source, step, judgement)
    outcomes = _outcomes(source, step)
    evidence = _evidence(source, step, patch)
    if outcomes is not None:
        evidence |= outcomes.evidence(
            "selection.json", is_consistent=score.evaluation is not None and judgement.is_consistent
        )
        source.by_hash[text_hash(text)] = outcomes
    event = Rejected(
        **source.common(step.epoch),
        **_told(source, step, patch),
        base=story.state.version,
        edits=patch.edits,
        changes=changed_lines(story.skill, skill),
        patch=patch.counts,
        evaluation=score.summary,
        verdict=judgement.verdict,
        fixed=judgement.pairs.fixed,
        broken=judgement.pairs.broken,
    )
    facts = {name: getattr(event, name) for name in event.__dataclass_fields__ if name in Accepted.__dataclass_fields__}
    outcome_event = Accepted(**facts, version=story.state.version + 1) if step.accepted else event
    time = source.time(f"{step.folder}/step_record.json", f"skills/skill_v{step.number:04d}.md")
    story.tell(Chapter(event=outcome_event, skill=skill, evidence=evidence, time=time), score.evaluation)


def _candidate(source: Import, step: Step) -> SkillText | None:
    """Return the text of the candidate, if any, as far as it is here; an accepted one is the current text too."""
    text = None
    if step.action == "reject" or step.accepted:
        text = source.directory.text(f"{step.folder}/candidate_skill.md")
    if text is None and step.accepted:
        text = source.directory.text(f"skills/skill_v{step.number:04d}.md")
    return text


def text_hash(text: str) -> str:
    """Return what the reference knows ``text`` by: 16 hexadecimal characters of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_text(source: Import, step: Step) -> None:
    """Say where the text that the directory has after ``step`` is not that of the current version."""
    text = source.directory.text(f"skills/skill_v{step.number:04d}.md")
    if text is not None and not alike(source.texts.skill(text).document, source.story.skill.document):
        version = source.story.state.version
        source.story.remark(
            f"skills/skill_v{step.number:04d}.md is not the text of {version_label(version)},"
            f" which was current after step {step.number}: it changed without a gate,"
            " and the difference shows with the next candidate"
        )


def _outcomes(source: Import, step: Step) -> Outcomes | None:
    """Return the outcomes of the candidate; one whose text had been measured before was not measured again."""
    own = read_outcomes(source.directory, [f"{step.folder}/selection_eval"], "selection")
    return own if own is not None else source.by_hash.get(str(step.record.get("candidate_hash")))


def _score(source: Import, step: Step) -> ImportedScore | None:
    claim = RecordedScore(
        path=f"step {step.number} of history.json",
        split=Split.SELECTION,
        hard=step.score("selection_hard"),
        soft=step.score("selection_soft"),
        is_partial=bool(step.own.get("unneeded")),
        spare=count(step.own.get("spare")) or 0,
    )
    return source.measured(claim, _outcomes(source, step))


def rule_of(rule: GateRule, own: Mapping[str, object]) -> GateRule:
    """Return ``rule`` with what ``own`` tells of a gate that the reference does not have."""
    policy, guard = own.get("policy"), own.get("guard")
    if policy not in POLICIES or guard not in set(NoRegression):
        return rule
    alpha, margin = number(own.get("alpha")), number(own.get("margin"))
    return replace(
        rule,
        policy=POLICIES[str(policy)],
        no_regression=NoRegression(str(guard)),
        alpha=rule.alpha if alpha is None else alpha,
        margin=margin or 0.0,
    )


def _tell_skip(source: Import, step: Step, score: ImportedScore | None) -> None:
    """Tell a step without a candidate, or with one whose text or score is lost."""
    title = _REASONS.get(step.action, "")
    if not title:
        missing = "score" if score is None else "text"
        title = f"{'accepted' if step.accepted else 'rejected'}, and the candidate's {missing} is lost"
        source.story.remark(f"step {step.number} was {title}; it is imported as a step without a candidate")
    patch = read_patch(source.directory, step, source.settings.mode, source.story.skill, None)
    source.story.remark(patch.remark)
    summary = _told(source, step, patch)
    summary["title"] = str(step.own.get("title") or title)
    event = Skipped(**source.common(step.epoch), **summary, patch=patch.counts)
    time = source.time(f"{step.folder}/step_record.json", f"skills/skill_v{step.number:04d}.md")
    source.story.tell(Chapter(event=event, evidence=_evidence(source, step, patch), time=time))


def _told(source: Import, step: Step, patch: Patched) -> _Told:
    own = "why" in step.own
    patterns = [] if own else [str(row["pattern"]) for row in _findings(source, step)]
    return _Told(
        title=patch.title,
        why="\n\n".join([patch.reasoning, *patterns[:8]]),
        step=step.number,
        models=source.settings.models,
        cost=cost(step.record),
    )


def _evidence(source: Import, step: Step, patch: Patched) -> dict[str, bytes]:
    directory, files = source.directory, dict(patch.evidence)
    rollout = read_outcomes(directory, [f"{folder}/rollout" for folder in _folders(source, step)], "rollout")
    if rollout is not None:
        files |= rollout.evidence(ROLLOUT)
    findings = list(_findings(source, step))
    if findings:
        files[FINDINGS] = json_file({"findings": findings, "unusable_replies": 0})
    for name in _FILES:
        if (content := directory.mapping(f"{step.folder}/{name}")) is not None:
            files[f"{ORIGIN}/{name}"] = json_file(content)
    for name in ("edit_apply_report.json", "appendix_notes.json"):
        if (rows := directory.listing(f"{step.folder}/{name}")) is not None:
            files[f"{ORIGIN}/{name}"] = json_file(rows)
    for path in _patches(source, step):
        if (content := directory.mapping(path)) is not None:
            files[f"{ORIGIN}/patches/{path.rpartition('/')[2]}"] = json_file(content)
    if step.record and f"{ORIGIN}/step_record.json" not in files:
        files[f"{ORIGIN}/step_record.json"] = json_file(step.record)
    return files


def _folders(source: Import, step: Step) -> list[str]:
    batches = source.directory.numbered(step.folder, "batch_")
    return [step.folder, *(f"{step.folder}/batch_{batch}" for batch in batches)]


def _patches(source: Import, step: Step) -> Iterator[str]:
    for folder in _folders(source, step):
        yield from source.directory.files(f"{folder}/patches", ".json")


def _findings(source: Import, step: Step) -> Iterator[Row]:
    for path in _patches(source, step):
        summary = (source.directory.mapping(path) or {}).get("failure_summary")
        for row in summary if isinstance(summary, list) else ():
            if isinstance(row, dict) and (row.get("description") or row.get("failure_type")):
                description = str(row.get("description") or row["failure_type"])
                ids = row.get("task_ids")
                items = [str(item) for item in ids] if isinstance(ids, list) else []
                yield {"pattern": description, "count": count(row.get("count")) or 0, "items": items}


def _check_numbers(source: Import, step: Step, judgement: ImportedJudgement) -> None:
    """Say where the gate of the directory compared another number than the score is."""
    claim = number(step.record.get("candidate_gate_score"))
    if claim is None or source.settings.density or abs(claim - judgement.verdict.score) <= ROUNDING:
        return
    source.story.remark(
        f"step {step.number} of history.json gives the candidate's score as {claim:.6g} to the gate, and its evaluation"
        f" says {judgement.verdict.score:.6g}; the latter is kept"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    title: str
    reasoning: str
    edits: tuple[EditRecord, ...]
    counts: PatchCounts
    evidence: Mapping[str, bytes]  # ``patch.json``, if applying the edits to the base gives the candidate here too
    remark: str = ""  # what is odd about it


def read_patch(directory: Directory, step: Step, mode: UpdateMode, base: Skill, candidate: Skill | None) -> Patched:
    """Return what ``step`` changed; ``candidate`` is absent for a step without one."""
    ranking = directory.mapping(f"{step.folder}/ranked_edits.json") or {}
    merge = directory.mapping(f"{step.folder}/merged_patch.json") or {}
    items = _items(ranking) or _items(merge)
    statuses = [str(row.get("status", "")) for row in directory.listing(f"{step.folder}/edit_apply_report.json") or ()]
    reports = zip(items, chain(statuses, repeat("applied")), strict=False)
    effective = [(item, status) for item, status in reports if status.startswith("applied")]
    edits = tuple(_edits(effective))
    summary = step.record.get("rewrite_change_summary")
    titles = [str(line) for line in summary] if isinstance(summary, list) else []
    titles += [str(item.get("title") or item.get("content") or item.get("target") or "") for item, _ in effective]
    lines = (line.strip(" -*#") for text in titles for line in text.splitlines())
    title = str(step.own.get("title") or next(filter(None, lines), f"step {step.number}"))
    # What the optimizer wrote speaks of all its edits.
    reason = ranking.get("reasoning") or merge.get("reasoning") if len(effective) == len(items) else ""
    reasoning = str(step.own.get("why") or reason or "")
    evidence: Mapping[str, bytes] = {}
    records = tuple(EditRecord.of(edit) for edit in edits)
    if candidate is not None and mode.proposals is ProposalKind.EDITS:
        application = apply(base, edits)
        if len(application.applied) == len(edits) and application.skill.digest == candidate.digest:
            evidence = patch_file(Patch(edits=edits, reasoning=reasoning, title=title), application.reports)
    elif candidate is not None:
        records, evidence = _rewrite(base, candidate, title, reasoning)
    counts, remark = _counts(step, mode, len(records))
    return Patched(title=title, reasoning=reasoning, edits=records, counts=counts, evidence=evidence, remark=remark)


def _items(patch: Row) -> list[Row]:
    for key in ("edits", "revise_suggestions", "skill_candidates"):
        entries = patch.get(key)
        if isinstance(entries, list):
            return [row for row in entries if isinstance(row, dict)]
    return []


def _edits(effective: Sequence[tuple[Row, str]]) -> Iterator[Edit]:
    """Yield the edits that took effect, each given with its status, as far as they are of a kind that we know."""
    for item, status in effective:
        op = str(item.get("op") or "")
        if op not in set(Op):
            continue
        is_fallback = "fallback" in status
        source = str(item.get("source_type") or "")
        yield Edit(
            op=Op.APPEND if is_fallback else Op(op),
            anchor=EMPTY if is_fallback or op == Op.APPEND else clean(with_our_markers(str(item.get("target") or ""))),
            content=clean(str(item.get("content") or "")),
            support=count(item.get("support_count")) or 0,
            source=EditSource(source) if source in set(EditSource) else EditSource.MIXED,
        )


def _rewrite(
    base: Skill, candidate: Skill, title: str, reasoning: str
) -> tuple[tuple[EditRecord, ...], Mapping[str, bytes]]:
    """Return the stretches of lines that a rewrite changed, and the evidence if it kept what is protected here."""
    edits = changed_hunks(base, candidate, support=0, source=EditSource.MIXED)
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


def _counts(step: Step, mode: UpdateMode, effective: int) -> tuple[PatchCounts, str]:
    summary = step.record.get("edit_apply_summary")
    summary = summary if isinstance(summary, dict) else {}
    rank_count = count(step.record.get("n_edits_ranked")) or 0
    control = str(step.record.get("lr_control_mode") or "")
    counts = PatchCounts(
        merged=count(step.record.get("n_edits_merged")) or 0,
        ranked=rank_count,
        applied=effective if count(summary.get("applied")) is None else int(str(summary["applied"])),
        skipped=(count(summary.get("skipped")) or 0) + (count(summary.get("errors")) or 0),
        budget=count(step.record.get("edit_budget")),
        by=BudgetSource.OPTIMIZER if control in {"autonomous", "auto", "optimizer"} else BudgetSource.SCHEDULE,
        mode=mode,
    )
    is_unlimited = control in {"none", "off", "no_lr"} and mode.proposals is ProposalKind.DOCUMENTS
    over = counts.budget is not None and rank_count > counts.budget and not is_unlimited
    if counts.budget is None or is_unlimited or over:
        without = replace(counts, budget=None, by=BudgetSource.NONE)
        remark = (
            f"step {step.number} applied {rank_count} edits with a budget of {counts.budget}; the budget is left out"
        )
        return without, remark if over else ""
    return counts, ""
