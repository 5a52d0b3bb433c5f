"""A run as the output directory of the reference implementation, SkillOpt, so that its tools can read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skillgit.app.deliver.export.skillopt_layout import Layout, Row, document, run_files, summary_files, text_hash
from skillgit.app.recorded.evidence_json import members, objects
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import resolve_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import EditStatus
from skillgit.domain.evaluation import EvaluationSummary, Metric
from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    MakesVersion,
    Measured,
    Measurement,
    Rejected,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_step,
)
from skillgit.domain.event_keys import lines_of
from skillgit.domain.evidence_names import COMPARISON, FINDINGS, PATCH, ROLLOUT
from skillgit.domain.gate_decision import Decision, NoRegression, Verdict
from skillgit.domain.gate_policies import STRICT
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import Skill
from skillgit.errors import ConflictError, HistoryError, UsageError
from skillgit.index import queries
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import PLAN, read_evidence
from skillgit.store.repo import Repo

_PREVIEW = 200
_CONTROL = {"schedule": "fixed", "optimizer": "autonomous", "fallback": "autonomous", "none": "none", "meta": "fixed"}


def event_files(layout: Layout, event: Event, skill: Skill | None, evidence: Mapping[str, bytes]) -> None:
    """Add the files of ``event``, whose commit holds ``skill``, and go on to where the run is after it."""
    match event:
        case RunStarted():
            layout.add_outcomes("selection_eval_baseline", evidence, "selection.json")
            _stand(layout, 0, skill, event.evaluation)
            _best(layout, 0, 0)
            layout.texts[0] = layout.document
        case Accepted() | Rejected() if event.origin is Origin.STEP:
            _candidate(layout, event, skill, evidence)
        case Skipped() if event.origin is Origin.STEP:
            record = _record(layout, event, evidence)
            edits = event.patch.mode.proposals is ProposalKind.EDITS
            record["action"] = "skip_no_patches" if edits else "skip_no_rewrite"
            _keep(layout, f"steps/step_{event.step:04d}", record, None, None)
        case SlowProposed():
            _slow(layout, event, evidence)
        case SlowMerged():
            layout.origin = f"slow_update_epoch_{event.epoch:02d}"
            _stand(layout, event.version, skill, event.evaluation)
            layout.add(f"slow_update/epoch_{event.epoch:02d}/candidate_skill.md", layout.document)
            if event.verdict.decision is Decision.ACCEPT_NEW_BEST:
                _best(layout, event.version, event.step)
        case RunFinished():
            summary_files(layout, event, evidence)
        case _:
            _elsewhere(layout, event, skill)
    if not isinstance(event, RunStarted | RunFinished):
        layout.texts[event.step] = layout.document


def _stand(layout: Layout, version: int, skill: Skill | None, measurement: Measurement | None) -> None:
    """Go on to ``version``; one that nobody has measured keeps the score before it, as the reference has it."""
    if skill is None:
        raise AssertionError("a version has a text")
    layout.last, layout.document = version, layout.text_of(skill)
    if isinstance(measurement, EvaluationSummary):
        layout.hard, layout.soft = measurement.hard, measurement.soft
        layout.score = layout.value(measurement.hard, measurement.soft)


def _best(layout: Layout, version: int, step: int) -> None:
    layout.best, layout.best_score, layout.best_step = layout.document, layout.score, step
    layout.best_version, layout.best_origin = version, layout.origin


def _elsewhere(layout: Layout, event: Event, skill: Skill | None) -> None:
    """Tell of what only skillgit has: interventions, reflections on epochs, edits by hand."""
    if isinstance(event, MakesVersion) and not isinstance(event, RunStarted):
        layout.remark(
            f"{version_label(event.version)} was made by no step; its text is in the files of step {event.step}"
        )
        layout.origin = f"step_{event.step:04d}"
        _stand(layout, event.version, skill, None if isinstance(event, Edited) else event.evaluation)
        verdict = None if isinstance(event, Edited) else event.verdict
        if verdict is not None and verdict.decision is Decision.ACCEPT_NEW_BEST:
            _best(layout, event.version, event.step)
    elif isinstance(event, Measured):
        layout.remark(
            f"the score of {version_label(event.version)}, which was measured late, has no place in that layout"
        )
    else:
        layout.remark(f"what was tried and refused after step {event_step(event)} has no place in that layout")


def _candidate(layout: Layout, event: Accepted | Rejected, skill: Skill | None, evidence: Mapping[str, bytes]) -> None:
    if skill is None:
        raise AssertionError("a candidate has a text")
    folder, text = f"steps/step_{event.step:04d}", layout.text_of(skill)
    lines = lines_of(event)
    before = event.verdict.current if lines else layout.score
    record = _record(layout, event, evidence)
    if isinstance(event, Accepted):
        layout.origin = f"step_{event.step:04d}"
        _stand(layout, event.version, skill, event.evaluation)
        if event.verdict.decision is Decision.ACCEPT_NEW_BEST:
            _best(layout, event.version, event.step)
    layout.add(f"{folder}/candidate_skill.md", text)
    layout.add_outcomes(f"{folder}/selection_eval", evidence, "selection.json")
    edits = _patch(layout, folder, event, members(document(evidence, PATCH)), text)
    action = _action(event.verdict)
    if event.verdict.decision is Decision.INDECISIVE:
        layout.remark(f"the gate of step {event.step} did not decide; that layout calls it a rejection")
    record |= {
        "candidate_hash": text_hash(text),
        "candidate_skill_len": len(text),
        **_selection(event.evaluation),
        "gate_metric": event.verdict.metric.value,
        "candidate_gate_score": event.verdict.score,
        "action": action,
    }
    digest = {"step": event.step, "action": action, **_failures(evidence)}
    if action == "reject":
        digest |= {"score_before": before, "score_after": event.verdict.score, "rejected_edits": edits}
    layout.add_json(f"{folder}/trajectory_digest.json", digest)
    _keep(layout, folder, record, event.evaluation, event.verdict)


def _record(layout: Layout, event: Accepted | Rejected | Skipped, evidence: Mapping[str, bytes]) -> Row:
    """Return what the record of every step says; its outcomes and findings are added on the way."""
    folder = f"steps/step_{event.step:04d}"
    rows = layout.add_outcomes(f"{folder}/rollout", evidence, ROLLOUT)
    if entries := _findings(evidence):
        layout.add_json(f"{folder}/patches/minibatch_fail_000.json", _analysis(entries, len(rows)))
    earlier = [record for record in layout.history if record["epoch"] == event.epoch]
    record: Row = {"step": event.step, "epoch": event.epoch, "step_in_epoch": len(earlier) + 1}
    if rows:
        hard, soft = ([float(str(row[key])) for row in rows] for key in ("hard", "soft"))
        record |= {"rollout_hard": sum(hard) / len(rows), "rollout_soft": sum(soft) / len(rows), "rollout_n": len(rows)}
    patch = event.patch
    record |= {"n_edits_merged": patch.merged, "n_edits_ranked": patch.ranked}
    record |= {"edit_budget": patch.budget, "lr_control_mode": _CONTROL[patch.by.value]}
    total = patch.applied + patch.skipped
    record["edit_apply_summary"] = {"total": total, "applied": patch.applied, "skipped": patch.skipped, "errors": 0}
    record |= {"tokens": _tokens(event.cost), "wall_time_s": event.cost.seconds}
    return record | {"skillgit": {"title": event.title, "why": event.why} | _search(layout, event)}


def _search(layout: Layout, event: Accepted | Rejected | Skipped) -> Row:
    """Return what only skillgit reads: what a candidate was made of, its screening, and who outran it."""
    row: Row = {}
    if lines := lines_of(event):
        row["made_of"] = list(lines)
        layout.remark(
            "that layout has one line of versions: what was made of an older one, or of two, follows the one before it"
        )
    if event.screening is not None:
        row["screening"] = asdict(event.screening)
        layout.remark("that layout knows no screening: a candidate that was screened out is a step without one")
    if isinstance(event, Accepted | Rejected) and event.verdict.outrun:
        row["outrun"] = event.verdict.outrun
        layout.remark("that layout knows no races: a candidate that was outrun is one that was rejected")
    if isinstance(event, Skipped) and event.taken_up_by is not None:
        row["taken_up_by"] = event.taken_up_by
        layout.remark("that layout knows no rounds: what another step took up is a step without a candidate")
    return row


def _analysis(findings: list[Row], trajectories: int) -> Row:
    sentences = [
        {"failure_type": "", "count": row.get("count"), "description": row.get("pattern"), "task_ids": row.get("items")}
        for row in findings
    ]
    empty: Row = {"reasoning": "", "edits": []}
    return {"patch": empty, "source_type": "failure", "batch_size": trajectories, "failure_summary": sentences}


def _keep(
    layout: Layout, folder: str, record: Row, evaluation: EvaluationSummary | None, verdict: Verdict | None
) -> None:
    own = record["skillgit"]
    if isinstance(own, dict) and evaluation is not None and verdict is not None:
        own |= _own(layout, evaluation, verdict)
    record |= {
        "current_score": layout.score,
        "best_score": layout.best_score,
        "best_step": layout.best_step,
        "current_origin": layout.origin,
        "best_origin": layout.best_origin,
        "skill_len": len(layout.document),
    }
    layout.history.append(record)
    layout.add_json(f"{folder}/step_record.json", record)


def _own(layout: Layout, evaluation: EvaluationSummary, verdict: Verdict) -> Row:
    """Return what only skillgit reads: how an evaluation was stopped, and a gate that the reference does not have."""
    row: Row = {}
    if evaluation.stopped:
        row |= {"unneeded": evaluation.unneeded, "spare": evaluation.spare}
        layout.remark(
            "evaluations that were stopped once their decision was certain tell the score of a part of the items,"
            " and the highest that the candidate could have had as its gate score"
        )
    if verdict.policy != STRICT.name or verdict.no_regression is not NoRegression.NONE:
        guard = verdict.no_regression.value
        row |= {"policy": verdict.policy, "alpha": verdict.alpha, "margin": verdict.margin, "guard": guard}
        layout.remark(f"the gate of this run was '{verdict.policy}' with the guard '{guard}'; that layout has none")
    return row


def _selection(evaluation: EvaluationSummary | None) -> Row:
    return {} if evaluation is None else {"selection_hard": evaluation.hard, "selection_soft": evaluation.soft}


def _action(verdict: Verdict) -> str:
    if not verdict.decision.accepted:
        return "reject"
    return verdict.decision.value if verdict.gated else "force_accept"


def _tokens(cost: Cost) -> Row:
    row: Row = {}
    for name, part in {**{f"{part.stage}": part.cost for part in cost.parts}, "_total": cost.whole}.items():
        tokens = {"prompt_tokens": part.tokens_in, "completion_tokens": part.tokens_out}
        row[name] = {"calls": part.calls, **tokens, "total_tokens": part.tokens_in + part.tokens_out}
    return row


def _failures(evidence: Mapping[str, bytes]) -> Row:
    results = [row for row in objects(document(evidence, ROLLOUT)) if "hard" in row]
    patterns = [
        {"pattern": row.get("pattern"), "count": row.get("count"), "task_ids": row.get("items")}
        for row in _findings(evidence)
    ]
    failures = sum(not row["hard"] for row in results)
    return {"n_total": len(results), "n_fail": failures, "failure_patterns": patterns}


def _findings(evidence: Mapping[str, bytes]) -> list[Row]:
    return objects(members(document(evidence, FINDINGS)).get("findings"))


def _patch(layout: Layout, folder: str, event: Accepted | Rejected, patch: Row, text: str) -> list[Row]:
    if event.patch.mode.proposals is not ProposalKind.EDITS:
        result: Row = {"reasoning": patch.get("reasoning") or "", "change_summary": [event.title], "new_skill": text}
        full = event.patch.mode.proposals is ProposalKind.DOCUMENTS
        layout.add_json(f"{folder}/{'full_rewrite_result' if full else 'rewrite_result'}.json", result)
        return []
    edits, report = list[Row](), list[Row]()
    for number, row in enumerate(objects(patch.get("edits")), start=1):
        op, target, content = row.get("op"), row.get("anchor") or "", row.get("content") or ""
        sources: Row = {"support_count": row.get("support"), "source_type": row.get("source")}
        edits.append({"op": op, "target": target, "content": content, **sources})
        is_applied = row.get("status") == EditStatus.APPLIED
        status = f"applied_{op}" if is_applied else f"skipped_{str(row.get('status')).replace('-', '_')}"
        texts: Row = {"target": str(target)[:_PREVIEW], "content_preview": str(content)[:_PREVIEW]}
        report.append({"index": number, "op": op, **texts, "status": status})
    if edits:
        layout.add_json(f"{folder}/ranked_edits.json", {"reasoning": patch.get("reasoning") or "", "edits": edits})
        layout.add_json(f"{folder}/edit_apply_report.json", report)
    return edits


def _slow(layout: Layout, event: SlowProposed, evidence: Mapping[str, bytes]) -> None:
    folder = f"slow_update/epoch_{event.epoch:02d}"
    verdict = event.verdict
    result: Row = {
        "reasoning": event.why,
        "slow_update_content": event.guidance,
        "action": "no_content" if verdict is None or not event.guidance else _action(verdict),
        "time_s": event.cost.seconds,
        "update_origin": f"slow_update_epoch_{event.epoch:02d}",
        "update_target": "skill",
        **_selection(event.evaluation),
        "skillgit": {"title": event.title},
    }
    if event.evaluation is not None and verdict is not None:
        result["skillgit"] = {"title": event.title, **_own(layout, event.evaluation, verdict)}
        layout.add_outcomes(f"{folder}/selection_eval", evidence, "selection.json")
    pairs = document(evidence, COMPARISON)
    if isinstance(pairs, list):
        layout.add_json(f"{folder}/comparison_pairs.json", [_pair(pair) for pair in objects(pairs)])
    layout.add_json(f"{folder}/slow_result.json", result)
    action = "write_meta_skill" if event.memory else "no_content"
    meta: Row = {"reasoning": "", "meta_skill_content": event.memory, "action": action}
    layout.add_json(f"meta_skill/epoch_{event.epoch:02d}/meta_skill_result.json", meta)


def _pair(pair: Row) -> Row:
    head: Row = {"id": pair.get("id"), "task": "", "category": pair.get("category")}
    return head | {"prev": _side(pair.get("previous")), "curr": _side(pair.get("current"))}


def _side(side: object) -> Row:
    fields = members(side)
    row = {"predicted_answer": fields.get("answer") or "", "fail_reason": ""}
    return {key: fields[key] for key in ("hard", "soft") if key in fields} | row


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLayout:
    run: str
    place: str
    files: int
    steps: int
    remarks: tuple[str, ...]  # what has no place in that layout, one sentence each


def export_layout(context: Context, revision: str, target: str) -> ExportedLayout:
    """Write the run that ``revision`` belongs to as a SkillOpt output directory, at once or not at all."""
    folder = refuse_way_out(typed_path(context.directory, target))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConflictError(f"{folder} exists and is not an empty folder", hint="name a new folder")
    with open_workspace(context) as workspace:
        row = resolve_in(workspace, revision).row
        if row is None:
            raise UsageError(f"{revision} belongs to no run", hint="skillgit runs")
        records = history_reader.read_run(workspace.repo, row.run)
        gauge = queries.gauge(workspace.index, row.run)
        layout = _laid_out(workspace.repo, records, folder, gauge.metric, gauge.soft_weight)
    files = {name: text.encode("utf-8", "replace") for name, text in layout.files().items()}
    put(folder, lambda beside: write_files(beside, files))
    return ExportedLayout(
        run=row.run,
        place=str(folder),
        files=len(files),
        steps=max(event_step(record.event) for record in records),
        remarks=tuple(layout.remarks),
    )


def _laid_out(repo: Repo, records: Sequence[Recorded], folder: Path, metric: Metric, soft_weight: float) -> Layout:
    start = records[0].event
    if not isinstance(start, RunStarted):
        raise HistoryError(f"run {start.run} has no beginning", hint="skillgit fsck")
    evidence = _evidence(repo, records[0])
    layout = Layout(start=start, evidence=evidence, folder=folder, metric=metric, soft_weight=soft_weight)
    for record in records:
        event = record.event
        makes = getattr(event, "version", None) is not None or hasattr(event, "verdict")
        skill = history_reader.skill_at(repo, record.commit, event.skill) if makes else None
        event_files(layout, event, skill, _evidence(repo, record))
    run_files(layout)
    return layout


def _evidence(repo: Repo, record: Recorded) -> Mapping[str, bytes]:
    return read_evidence(repo, record.evidence) or read_evidence(repo, record.evidence, PLAN) or {}
