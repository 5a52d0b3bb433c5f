"""The files of a SkillOpt output directory while they are put together, those about the whole run included."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillgit import __version__
from skillgit.app.recorded.evidence_json import members, objects, parsed
from skillgit.app.sources.skillopt.directory import ORIGIN, SECTIONED
from skillgit.app.sources.skillopt.skill_texts import with_their_markers
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import EvaluationSummary, Metric, Scored, Split
from skillgit.domain.event import RunFinished, RunStarted
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Turn
from skillgit.domain.untrusted.file_names import name_key, path_fault

Row = dict[str, object]

_FLAT_NAMES = {
    "env.name": "env",
    "optimizer.learning_rate": "edit_budget",
    "optimizer.min_learning_rate": "min_edit_budget",
    "model.optimizer": "optimizer_model",
    "model.target": "target_model",
}
INITIAL = "initial"  # where the reference says that a text comes from that no step changed


@dataclass(slots=True, kw_only=True)
class Layout:
    """A directory, and where the run stands while its events are laid out."""

    start: RunStarted
    evidence: Mapping[str, bytes]
    folder: Path  # where it will be; the trainer of the reference goes on by absolute paths
    metric: Metric
    soft_weight: float  # share of the soft score in the mixed metric
    history: list[Row] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)  # step to the text that was current after it
    document: str = ""
    best: str = ""
    score: float = 0.0  # the score of the current version under the gate's metric
    best_score: float = 0.0
    best_step: int = 0
    origin: str = INITIAL
    best_origin: str = INITIAL
    last: int = 0
    best_version: int = 0
    hard: float = 0.0
    soft: float = 0.0  # its score with partial credit
    remarks: list[str] = field(default_factory=list)  # what has no place here, one sentence each
    _files: dict[str, str] = field(default_factory=dict)
    _conversations: dict[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        return dict(sorted(self._files.items()))

    def add(self, path: str, text: str) -> None:
        self._files[path] = text

    def add_json(self, path: str, value: object) -> None:
        self._files[path] = f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"

    def remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def text_of(self, skill: Skill) -> str:
        """Return a skill's document as the reference reads it."""
        if len(skill.files) > 1:
            paths = ", ".join(path for path in skill.files if path != "SKILL.md")
            self.remark(f"a skill is one text in that layout; {paths} are left out")
        return with_their_markers(skill.document)

    def config(self) -> Row:
        """Return the configuration, flat and under the names of the reference."""
        # Where none is named, the reference makes a folder of its own. In this one its evaluation would find old
        # results, and in that of an imported run it would write into what was imported.
        nowhere: Row = {"out_root": ""}
        original = document(self.evidence, f"{ORIGIN}/config.json")
        if isinstance(original, dict):
            return original | nowhere
        settings = document(self.evidence, "config.json")
        if not isinstance(settings, dict):
            self.remark(
                "the evidence behind the start of the run is not here, so that config.json tells only its models"
            )
            settings = {}
        row: Row = {}
        for section, names in SECTIONED.items():
            values = settings.get(section)
            for name in names:
                if isinstance(values, dict) and values.get(name) is not None:  # it computes with what is there
                    row[_FLAT_NAMES.get(f"{section}.{name}", name)] = values[name]
        for role, model_name in (("target", self.start.models.target), ("optimizer", self.start.models.optimizer)):
            backend, _, model = model_name.partition("/")
            row |= {f"{role}_backend": backend, f"{role}_model": model} if model else {}
        # Its other mode divides the one file at data_path by ratio; this run's items are divided already.
        split: Row = {"split_mode": "split_dir", "split_dir": row.get("split_dir", "")}
        own = {name: value for name, value in row.items() if name not in {"split_ratio", "split_seed", "data_path"}}
        return own | split | nowhere

    def value(self, hard: float, soft: float) -> float:
        return Scored(hard, soft).value(self.metric, self.soft_weight)

    def add_outcomes(self, folder: str, evidence: Mapping[str, bytes], name: str) -> Sequence[Row]:
        """Add the outcomes that ``evidence`` holds in the file ``name`` to ``folder``; return those with a score."""
        entries = objects(document(evidence, name))
        results = [row for row in entries if "hard" in row]
        failures = [row for row in entries if "failed" in row]
        if results:
            self.add(f"{folder}/results.jsonl", _lines(_result(row) for row in results))
        if failures:
            errors = ({"id": row["id"], "reason": row["failed"]} for row in failures)
            self.add(f"{folder}/failed.jsonl", _lines(errors))
            self.remark("items that failed to evaluate have no place in that layout; they are in failed.jsonl beside")
        for row in results:
            turns = members(document(evidence, str(row.get("trajectory") or ""))).get("turns")
            if isinstance(turns, list):
                messages = [Turn.read(turn) for turn in objects(turns)]
                # The reference keeps words only: of tool calls and pictures, too.
                conversation: list[Row] = [{"role": message.role, "content": message.text} for message in messages]
                self._add_conversation(f"{folder}/predictions/{row['id']}/conversation.json", conversation)
        return results

    def _add_conversation(self, path: str, turns: list[Row]) -> None:
        """Add a conversation where the reference looks for it, if the item's id can be a folder."""
        owner = self._conversations.setdefault(name_key(path), path)
        if path_fault(path) or owner != path:
            self.remark("conversations of items whose ids cannot be folders on every system are left out")
        else:
            self.add_json(path, turns)


def _result(row: Mapping[str, object]) -> Row:
    return {
        "id": row["id"],
        "task_type": row.get("task_type") or "default",
        "hard": row["hard"],
        "soft": row["soft"],
        "predicted_answer": row.get("answer") or "",
        "fail_reason": row.get("feedback") or "",
    }


def document(files: Mapping[str, bytes], name: str) -> object:
    """Return the JSON in the file ``name``; None if it is missing or none."""
    return parsed(files.get(name))


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _lines(rows: Iterator[Row]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def run_files(layout: Layout) -> None:
    """Add what is at the top of the directory, and the text that was current after each step."""
    layout.add_json("config.json", layout.config())
    layout.add_json("history.json", layout.history)
    text = ""
    steps = max(layout.texts)
    for step in range(steps + 1):
        text = layout.texts.get(step, text)
        layout.add(f"skills/skill_v{step:04d}.md", text)
    layout.add("best_skill.md", layout.best)
    layout.add_json(
        "runtime_state.json",
        {
            "last_completed_step": len(layout.history),
            "current_skill_path": str(layout.folder / "skills" / f"skill_v{steps:04d}.md"),
            "current_score": layout.score,
            "current_origin": layout.origin,
            "best_skill_path": str(layout.folder / "best_skill.md"),
            "best_score": layout.best_score,
            "best_step": layout.best_step,
            "best_origin": layout.best_origin,
        },
    )


def summary_files(layout: Layout, event: RunFinished, evidence: Mapping[str, bytes]) -> None:
    """Add the end of the run: its summary and its scores on the test split."""
    tests = {evaluation.version or 0: evaluation for evaluation in event.evaluations if evaluation.split is Split.TEST}
    folders = {"test_eval_baseline": 0, "test_eval": layout.best_version, "test_eval_final": layout.last}
    for folder, version in folders.items():
        if version in tests:
            layout.add_outcomes(folder, evidence, f"test-{version_label(version)}.json")
    first = layout.start.evaluation
    hard, soft = getattr(first, "hard", None), getattr(first, "soft", None)
    baseline = layout.value(hard, soft) if hard is not None and soft is not None else None
    layout.add_json(
        "summary.json",
        {
            "version": f"skillgit-{__version__}",
            "config": layout.config(),
            "baseline_selection_hard": baseline,
            "best_selection_hard": layout.best_score,
            "final_selection_hard": layout.hard,
            "final_selection_soft": layout.soft,
            "best_step": layout.best_step,
            "current_origin": layout.origin,
            "best_origin": layout.best_origin,
            "total_steps": len(layout.history),
            **_counts(layout.history, "total_"),
            "epoch_stats": _epochs(layout.history),
            **_tests(layout, tests),
        },
    )


def _counts(history: list[Row], prefix: str) -> Row:
    actions = [str(record["action"]) for record in history]
    return {
        f"{prefix}accepts": sum("accept" in action for action in actions),
        f"{prefix}rejects": sum(action == "reject" for action in actions),
        f"{prefix}skips": sum(action.startswith("skip") for action in actions),
    }


def _epochs(history: list[Row]) -> list[Row]:
    by_epoch: dict[object, list[Row]] = {}
    for record in history:
        by_epoch.setdefault(record["epoch"], []).append(record)
    return [
        {
            "epoch": epoch,
            "steps": len(records),
            **_counts(records, ""),
            "best_score": records[-1]["best_score"],
            "current_score": records[-1]["current_score"],
        }
        for epoch, records in by_epoch.items()
    ]


def _tests(layout: Layout, tests: Mapping[int, EvaluationSummary]) -> Row:
    row: Row = {}
    for key, version in (("baseline_test", 0), ("test", layout.best_version), ("final_test", layout.last)):
        if version in tests:
            row |= {f"{key}_hard": tests[version].hard, f"{key}_soft": tests[version].soft}
    if 0 in tests:
        for key, version in (("test", layout.best_version), ("final_test", layout.last)):
            if version in tests:
                row[f"{key}_delta_hard"] = tests[version].hard - tests[0].hard
    return row
