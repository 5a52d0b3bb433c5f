"""A run as the output directory of the reference implementation, SkillOpt, so that its tools can read it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from skillgit import __version__
from skillgit.app.recorded.evidence_json import members, objects, parsed
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path
from skillgit.app.sources.skillopt.directory import ORIGIN, SECTIONED
from skillgit.app.sources.skillopt.skill_texts import with_their_markers
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import EditStatus
from skillgit.domain.evaluation import EvaluationSummary, Metric, Scored, Split
from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import COMPARISON, FINDINGS, PATCH, ROLLOUT
from skillgit.domain.gate_decision import Decision, NoRegression, Verdict
from skillgit.domain.gate_policies import STRICT
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Turn
from skillgit.domain.untrusted.file_names import name_key, path_fault
from skillgit.errors import ConflictError, HistoryError, UsageError
from skillgit.index import queries
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader
from skillgit.store.evidence import PLAN, read_evidence

Row = dict[str, object]
_PREVIEW: Final = 200
_CONTROL: Final = {
    "schedule": "fixed",
    "optimizer": "autonomous",
    "fallback": "autonomous",
    "none": "none",
    "meta": "fixed",
}
_FLAT_NAMES: Final = {
    "env.name": "env",
    "optimizer.learning_rate": "edit_budget",
    "optimizer.min_learning_rate": "min_edit_budget",
    "model.optimizer": "optimizer_model",
    "model.target": "target_model",
}
_INITIAL: Final = "initial"  # where the reference says that a text comes from that no step changed


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLayout:
    run: str
    place: str
    files: int
    steps: int
    remarks: tuple[str, ...]  # what has no place in that layout, one sentence each


def export_layout(workspace: Workspace, revision: str, target: str) -> ExportedLayout:
    """Write the run that ``revision`` belongs to as a SkillOpt output directory, at once or not at all."""
    folder = refuse_way_out(typed_path(workspace.context.directory, target))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConflictError(f"{folder} exists and is not an empty folder", hint="name a new folder")
    row, repo = resolve(workspace, revision).row, workspace.repo
    if row is None:
        raise UsageError(f"{revision} belongs to no run", hint="skillgit runs")
    records = history_reader.read_run(repo, row.run)
    start, gauge = records[0].event, queries.gauge(workspace.index, row.run)
    if start.kind is not EventKind.RUN_STARTED:
        raise HistoryError(f"run {row.run} has no beginning", hint="skillgit fsck")
    layout = _Layout(start=start, folder=folder, metric=gauge.metric, soft_weight=gauge.soft_weight)
    for record in records:
        event = record.event
        has_text = event.kind not in {EventKind.SKIPPED, EventKind.RUN_FINISHED}
        skill = history_reader.skill_at(repo, record.commit, event.skill) if has_text else None
        layout.take(
            event, skill, read_evidence(repo, record.evidence) or read_evidence(repo, record.evidence, PLAN) or {}
        )
    layout.finish()
    files = {name: text.encode("utf-8", "replace") for name, text in sorted(layout.files.items())}
    put(folder, lambda beside: write_files(beside, files))
    return ExportedLayout(
        run=row.run,
        place=str(folder),
        files=len(files),
        steps=max(record.event.step for record in records),
        remarks=tuple(layout.remarks),
    )


@dataclass(slots=True, kw_only=True)
class _Layout:
    """The directory while it is put together, and where the run is after the events so far."""

    start: Event
    folder: Path  # where it will be; the trainer of the reference goes on by absolute paths
    metric: Metric
    soft_weight: float  # share of the soft score in the mixed metric
    evidence: Mapping[str, bytes] = field(default_factory=dict)  # that of the start
    files: dict[str, str] = field(default_factory=dict)
    history: list[Row] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)  # step to the text that was current after it
    remarks: list[str] = field(default_factory=list)
    document: str = ""
    best: str = ""
    score: float = 0.0  # the score of the current version under the gate's metric
    hard: float = 0.0
    soft: float = 0.0  # its score with partial credit
    best_score: float = 0.0
    best_step: int = 0
    origin: str = _INITIAL
    best_origin: str = _INITIAL
    last: int = 0
    best_version: int = 0
    conversations: dict[str, str] = field(default_factory=dict)

    def take(self, event: Event, skill: Skill | None, evidence: Mapping[str, bytes]) -> None:
        """Add the files of ``event``, whose commit holds ``skill``, and go on to where the run is after it."""
        match event.kind:
            case EventKind.RUN_STARTED:
                self.evidence = evidence
                self._add_outcomes("selection_eval_baseline", evidence, "selection.json")
                self._stand(event, skill, _INITIAL, is_best=True)
            case EventKind.ACCEPTED | EventKind.REJECTED if event.origin is Origin.STEP:
                self._candidate(event, skill, evidence)
            case EventKind.SKIPPED if event.origin is Origin.STEP:
                record = self._record(event, evidence)
                edits = event.patch.mode.proposals is ProposalKind.EDITS
                record["action"] = "skip_no_patches" if edits else "skip_no_rewrite"
                self._keep(f"steps/step_{event.step:04d}", record, None, None)
            case EventKind.SLOW_PROPOSED:
                self._slow(event, evidence)
            case EventKind.SLOW_MERGED:
                self._stand(event, skill, f"slow_update_epoch_{event.epoch:02d}")
                self.files[f"slow_update/epoch_{event.epoch:02d}/candidate_skill.md"] = self.document
            case EventKind.RUN_FINISHED:
                self._summary(event, evidence)
            case _ if event.new_version is not None:
                self._remark(
                    f"{version_label(event.version)} was made by no step; its text is in the files of step {event.step}"
                )
                self._stand(event, skill, f"step_{event.step:04d}")
            case EventKind.MEASURED:
                self._remark(
                    f"the score of {version_label(event.version)}, which was measured late, has no place in that layout"
                )
            case _:
                self._remark(f"what was tried and refused after step {event.step} has no place in that layout")
        if event.kind is not EventKind.RUN_FINISHED:
            self.texts[event.step] = self.document

    def _stand(self, event: Event, skill: Skill | None, origin: str, *, is_best: bool = False) -> None:
        """Go on to a version; one without a measurement keeps the score before it, as the reference has it."""
        self.last, self.document, self.origin = event.version, self._text_of(skill), origin
        if (summary := event.summary) is not None:
            self.hard, self.soft = summary.hard, summary.soft
            self.score = self._value(summary.hard, summary.soft)
        if is_best or event.decision is Decision.ACCEPT_NEW_BEST:
            self.best, self.best_score, self.best_step = self.document, self.score, event.step
            self.best_version, self.best_origin = self.last, origin

    def _candidate(self, event: Event, skill: Skill | None, evidence: Mapping[str, bytes]) -> None:
        folder, text, verdict = f"steps/step_{event.step:04d}", self._text_of(skill), event.verdict
        before = verdict.current if event.lines else self.score
        record = self._record(event, evidence)
        if event.kind is EventKind.ACCEPTED:
            self._stand(event, skill, f"step_{event.step:04d}")
        self.files[f"{folder}/candidate_skill.md"] = text
        self._add_outcomes(f"{folder}/selection_eval", evidence, "selection.json")
        edits = self._patch(folder, event, members(parsed(evidence.get(PATCH))), text)
        action = _action(verdict)
        if verdict.decision is Decision.INDECISIVE:
            self._remark(f"the gate of step {event.step} did not decide; that layout calls it a rejection")
        record |= {
            "candidate_hash": hashlib.sha256(text.encode()).hexdigest()[:16],
            "candidate_skill_len": len(text),
            **_selection(event.evaluation),
            "gate_metric": verdict.metric.value,
            "candidate_gate_score": verdict.score,
            "action": action,
        }
        results = [row for row in objects(parsed(evidence.get(ROLLOUT))) if "hard" in row]
        digest: Row = {
            "step": event.step,
            "action": action,
            "n_total": len(results),
            "n_fail": sum(not row["hard"] for row in results),
            "failure_patterns": [
                {"pattern": row.get("pattern"), "count": row.get("count"), "task_ids": row.get("items")}
                for row in _findings(evidence)
            ],
        }
        if action == "reject":
            digest |= {"score_before": before, "score_after": verdict.score, "rejected_edits": edits}
        self._add_json(f"{folder}/trajectory_digest.json", digest)
        self._keep(folder, record, event.evaluation, verdict)

    def _record(self, event: Event, evidence: Mapping[str, bytes]) -> Row:
        """Return what the record of every step says; its outcomes and findings are added on the way."""
        folder, patch = f"steps/step_{event.step:04d}", event.patch
        rows = self._add_outcomes(f"{folder}/rollout", evidence, ROLLOUT)
        if findings := _findings(evidence):
            sentences = [
                {
                    "failure_type": "",
                    "count": row.get("count"),
                    "description": row.get("pattern"),
                    "task_ids": row.get("items"),
                }
                for row in findings
            ]
            analysis: Row = {"patch": {"reasoning": "", "edits": []}, "source_type": "failure"}
            analysis |= {"batch_size": len(rows), "failure_summary": sentences}
            self._add_json(f"{folder}/patches/minibatch_fail_000.json", analysis)
        place = sum(record["epoch"] == event.epoch for record in self.history) + 1
        record: Row = {"step": event.step, "epoch": event.epoch, "step_in_epoch": place}
        if rows:
            hard, soft = (sum(float(str(row[key])) for row in rows) / len(rows) for key in ("hard", "soft"))
            record |= {"rollout_hard": hard, "rollout_soft": soft, "rollout_n": len(rows)}
        tokens: Row = {}
        for name, part in {**{part.stage: part.cost for part in event.cost.parts}, "_total": event.cost.whole}.items():
            tokens[name] = {
                "calls": part.calls,
                "prompt_tokens": part.tokens_in,
                "completion_tokens": part.tokens_out,
                "total_tokens": part.tokens_in + part.tokens_out,
            }
        total = patch.applied + patch.skipped
        return record | {
            "n_edits_merged": patch.merged,
            "n_edits_ranked": patch.ranked,
            "edit_budget": patch.budget,
            "lr_control_mode": _CONTROL[patch.by.value],
            "edit_apply_summary": {"total": total, "applied": patch.applied, "skipped": patch.skipped, "errors": 0},
            "tokens": tokens,
            "wall_time_s": event.cost.seconds,
            "skillgit": {"title": event.title, "why": event.why} | self._search(event),
        }

    def _search(self, event: Event) -> Row:
        """Return what only skillgit reads: what a candidate was made of, its screening, and who outran it."""
        row: Row = {}
        if lines := event.lines:
            row["made_of"] = list(lines)
            self._remark(
                "that layout has one line of versions: what was made of an older one, or of two, follows the one before"
                " it"
            )
        if event.screening is not None:
            row["screening"] = asdict(event.screening)
            self._remark("that layout knows no screening: a candidate that was screened out is a step without one")
        if event.kind in CANDIDATES and event.verdict.outrun:
            row["outrun"] = event.verdict.outrun
            self._remark("that layout knows no races: a candidate that was outrun is one that was rejected")
        if event.taken_up_by is not None:
            row["taken_up_by"] = event.taken_up_by
            self._remark("that layout knows no rounds: what another step took up is a step without a candidate")
        return row

    def _keep(self, folder: str, record: Row, evaluation: EvaluationSummary | None, verdict: Verdict | None) -> None:
        if evaluation is not None and verdict is not None:
            record["skillgit"] = members(record["skillgit"]) | self._own(evaluation, verdict)
        record |= {
            "current_score": self.score,
            "best_score": self.best_score,
            "best_step": self.best_step,
            "current_origin": self.origin,
            "best_origin": self.best_origin,
            "skill_len": len(self.document),
        }
        self.history.append(record)
        self._add_json(f"{folder}/step_record.json", record)

    def _own(self, evaluation: EvaluationSummary, verdict: Verdict) -> Row:
        """Return what only skillgit reads: how an evaluation was stopped, and a gate that the reference lacks."""
        row: Row = {}
        if evaluation.stopped:
            row |= {"unneeded": evaluation.unneeded, "spare": evaluation.spare}
            self._remark(
                "evaluations that were stopped once their decision was certain have the score of a part of the items,"
                " and the highest that the candidate could have had as its gate score"
            )
        if verdict.policy != STRICT.name or verdict.no_regression is not NoRegression.NONE:
            guard = verdict.no_regression.value
            row |= {"policy": verdict.policy, "alpha": verdict.alpha, "margin": verdict.margin, "guard": guard}
            self._remark(f"the gate of this run was '{verdict.policy}' with the guard '{guard}'; that layout has none")
        return row

    def _patch(self, folder: str, event: Event, patch: Row, text: str) -> list[Row]:
        reasoning, proposals = patch.get("reasoning") or "", event.patch.mode.proposals
        if proposals is not ProposalKind.EDITS:
            name = "full_rewrite_result" if proposals is ProposalKind.DOCUMENTS else "rewrite_result"
            result = {"reasoning": reasoning, "change_summary": [event.title], "new_skill": text}
            self._add_json(f"{folder}/{name}.json", result)
            return []
        edits, report = list[Row](), list[Row]()
        for number, row in enumerate(objects(patch.get("edits")), start=1):
            op, target, content = row.get("op"), row.get("anchor") or "", row.get("content") or ""
            sources = {"support_count": row.get("support"), "source_type": row.get("source")}
            edits.append({"op": op, "target": target, "content": content, **sources})
            is_applied = row.get("status") == EditStatus.APPLIED
            status = f"applied_{op}" if is_applied else f"skipped_{str(row.get('status')).replace('-', '_')}"
            texts = {"target": str(target)[:_PREVIEW], "content_preview": str(content)[:_PREVIEW]}
            report.append({"index": number, "op": op, **texts, "status": status})
        if edits:
            self._add_json(f"{folder}/ranked_edits.json", {"reasoning": reasoning, "edits": edits})
            self._add_json(f"{folder}/edit_apply_report.json", report)
        return edits

    def _slow(self, event: Event, evidence: Mapping[str, bytes]) -> None:
        folder, verdict = f"slow_update/epoch_{event.epoch:02d}", event.verdict
        own: Row = {"title": event.title}
        if event.evaluation is not None and verdict is not None:
            own |= self._own(event.evaluation, verdict)
            self._add_outcomes(f"{folder}/selection_eval", evidence, "selection.json")
        result: Row = {
            "reasoning": event.why,
            "slow_update_content": event.guidance,
            "action": "no_content" if verdict is None or not event.guidance else _action(verdict),
            "time_s": event.cost.seconds,
            "update_origin": f"slow_update_epoch_{event.epoch:02d}",
            "update_target": "skill",
            **_selection(event.evaluation),
            "skillgit": own,
        }
        pairs = parsed(evidence.get(COMPARISON))
        if isinstance(pairs, list):
            rows = [
                {"id": pair.get("id"), "task": "", "category": pair.get("category")}
                | {"prev": _side(pair.get("previous")), "curr": _side(pair.get("current"))}
                for pair in objects(pairs)
            ]
            self._add_json(f"{folder}/comparison_pairs.json", rows)
        self._add_json(f"{folder}/slow_result.json", result)
        action = "write_meta_skill" if event.memory else "no_content"
        meta = {"reasoning": "", "meta_skill_content": event.memory, "action": action}
        self._add_json(f"meta_skill/epoch_{event.epoch:02d}/meta_skill_result.json", meta)

    def _summary(self, event: Event, evidence: Mapping[str, bytes]) -> None:
        """Add the end of the run: its summary and its scores on the test split."""
        tests = {
            evaluation.version or 0: evaluation for evaluation in event.evaluations if evaluation.split is Split.TEST
        }
        versions = {"baseline": 0, "": self.best_version, "final": self.last}
        for name, version in versions.items():
            if version in tests:
                folder = f"test_eval_{name}".rstrip("_")
                self._add_outcomes(folder, evidence, f"test-{version_label(version)}.json")
        first = self.start.evaluation
        hard, soft = getattr(first, "hard", None), getattr(first, "soft", None)
        test_rows: Row = {}
        for key, version in (("baseline_test", 0), ("test", self.best_version), ("final_test", self.last)):
            if version in tests:
                test_rows |= {f"{key}_hard": tests[version].hard, f"{key}_soft": tests[version].soft}
        for key, version in (("test", self.best_version), ("final_test", self.last)):
            if 0 in tests and version in tests:
                test_rows[f"{key}_delta_hard"] = tests[version].hard - tests[0].hard
        epochs = {
            record["epoch"]: [row for row in self.history if row["epoch"] == record["epoch"]] for record in self.history
        }
        summary = {
            "version": f"skillgit-{__version__}",
            "config": self._config(),
            "baseline_selection_hard": self._value(hard, soft) if hard is not None and soft is not None else None,
            "best_selection_hard": self.best_score,
            "final_selection_hard": self.hard,
            "final_selection_soft": self.soft,
            "best_step": self.best_step,
            "current_origin": self.origin,
            "best_origin": self.best_origin,
            "total_steps": len(self.history),
            **_counts(self.history, "total_"),
            "epoch_stats": [
                {
                    "epoch": epoch,
                    "steps": len(records),
                    **_counts(records, ""),
                    "best_score": records[-1]["best_score"],
                    "current_score": records[-1]["current_score"],
                }
                for epoch, records in epochs.items()
            ],
            **test_rows,
        }
        self._add_json("summary.json", summary)

    def finish(self) -> None:
        """Add what is at the top of the directory, and the text that was current after each step."""
        self._add_json("config.json", self._config())
        self._add_json("history.json", self.history)
        text, steps = "", max(self.texts)
        for step in range(steps + 1):
            text = self.texts.get(step, text)
            self.files[f"skills/skill_v{step:04d}.md"] = text
        self.files["best_skill.md"] = self.best
        state = {
            "last_completed_step": len(self.history),
            "current_skill_path": str(self.folder / "skills" / f"skill_v{steps:04d}.md"),
            "current_score": self.score,
            "current_origin": self.origin,
            "best_skill_path": str(self.folder / "best_skill.md"),
            "best_score": self.best_score,
            "best_step": self.best_step,
            "best_origin": self.best_origin,
        }
        self._add_json("runtime_state.json", state)

    def _config(self) -> Row:
        """Return the configuration, flat and under the names of the reference."""
        # Where none is named, the reference makes a folder of its own. In this one its evaluation would find old
        # results, and in that of an imported run it would write into what was imported.
        nowhere: Row = {"out_root": ""}
        original = parsed(self.evidence.get(f"{ORIGIN}/config.json"))
        if isinstance(original, dict):
            return original | nowhere
        settings = parsed(self.evidence.get("config.json"))
        if not isinstance(settings, dict):
            self._remark(
                "the evidence behind the start of the run is not here, so that config.json has only its models"
            )
            settings = {}
        row: Row = {}
        for section, names in SECTIONED.items():
            values = members(settings.get(section))
            for name in names:
                if values.get(name) is not None:  # it computes with what is there
                    row[_FLAT_NAMES.get(f"{section}.{name}", name)] = values[name]
        for role, model_name in (("target", self.start.models.target), ("optimizer", self.start.models.optimizer)):
            backend, _, model = model_name.partition("/")
            row |= {f"{role}_backend": backend, f"{role}_model": model} if model else {}
        # Its other mode divides the one file at data_path by ratio; this run's items are divided already.
        split: Row = {"split_mode": "split_dir", "split_dir": row.get("split_dir", "")}
        own = {name: value for name, value in row.items() if name not in {"split_ratio", "split_seed", "data_path"}}
        return own | split | nowhere

    def _add_outcomes(self, folder: str, evidence: Mapping[str, bytes], name: str) -> Sequence[Row]:
        """Add the outcomes that ``evidence`` holds in the file ``name`` to ``folder``; return those with a score."""
        entries = objects(parsed(evidence.get(name)))
        results = [row for row in entries if "hard" in row]
        failures = [{"id": row["id"], "reason": row["failed"]} for row in entries if "failed" in row]
        if results:
            self.files[f"{folder}/results.jsonl"] = _lines(
                {
                    "id": row["id"],
                    "task_type": row.get("task_type") or "default",
                    "hard": row["hard"],
                    "soft": row["soft"],
                    "predicted_answer": row.get("answer") or "",
                    "fail_reason": row.get("feedback") or "",
                }
                for row in results
            )
        if failures:
            self.files[f"{folder}/failed.jsonl"] = _lines(failures)
            self._remark("items that failed to evaluate have no place in that layout; they are in failed.jsonl")
        for row in results:
            turns = members(parsed(evidence.get(str(row.get("trajectory") or "")))).get("turns")
            if not isinstance(turns, list):
                continue
            path = f"{folder}/predictions/{row['id']}/conversation.json"
            # an item's id has to be a folder where the reference looks for its conversation
            if path_fault(path) or self.conversations.setdefault(name_key(path), path) != path:
                self._remark("conversations of items whose ids cannot be folders on every system are left out")
            else:
                # The reference keeps words only: of tool calls and pictures, too.
                messages = [Turn.read(turn) for turn in objects(turns)]
                self._add_json(path, [{"role": message.role, "content": message.text} for message in messages])
        return results

    def _text_of(self, skill: Skill | None) -> str:
        """Return a skill's document as the reference reads it."""
        if skill is None:
            raise AssertionError("a version and a candidate have a text")
        if len(skill.files) > 1:
            paths = ", ".join(path for path in skill.files if path != "SKILL.md")
            self._remark(f"a skill is one text in that layout; {paths} are left out")
        return with_their_markers(skill.document)

    def _value(self, hard: float, soft: float) -> float:
        return Scored(hard, soft).value(self.metric, self.soft_weight)

    def _add_json(self, path: str, value: object) -> None:
        self.files[path] = f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"

    def _remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)


def _selection(evaluation: EvaluationSummary | None) -> Row:
    return {} if evaluation is None else {"selection_hard": evaluation.hard, "selection_soft": evaluation.soft}


def _action(verdict: Verdict) -> str:
    if not verdict.decision.accepted:
        return "reject"
    return verdict.decision.value if verdict.gated else "force_accept"


def _findings(evidence: Mapping[str, bytes]) -> list[Row]:
    return objects(members(parsed(evidence.get(FINDINGS))).get("findings"))


def _side(side: object) -> Row:
    fields = members(side)
    row = {"predicted_answer": fields.get("answer") or "", "fail_reason": ""}
    return {key: fields[key] for key in ("hard", "soft") if key in fields} | row


def _counts(history: list[Row], prefix: str) -> Row:
    actions = [str(record["action"]) for record in history]
    return {
        f"{prefix}accepts": sum("accept" in action for action in actions),
        f"{prefix}rejects": sum(action == "reject" for action in actions),
        f"{prefix}skips": sum(action.startswith("skip") for action in actions),
    }


def _lines(rows: Iterable[Row]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
