"""Output directories as the reference implementation lays them out, written from its documented layout.

``write_outputs(path)`` writes a whole run of two epochs with two steps each, as the default configuration makes one:

====  =================  ======================================================
step  action             selection (10 items; the unsolved ones get soft 0.1)
====  =================  ======================================================
0     baseline           4 of 10
1     accept_new_best    6 of 10
2     reject             5 of 10
-     epoch 1            an empty region for guidance, without a model call
3     skip_no_patches
4     accept_new_best    7 of 10
-     epoch 2            guidance, accepted by force and not measured
end   final selection    8 of 10, so that the last text is the best
====  =================  ======================================================
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

Row = dict[str, object]
HIDDEN = "zx81-correct-horse-battery"
KEY = "sk-abcdefghijklmnop0123456789"
ITEMS = tuple(f"q{number:02d}" for number in range(1, 11))
START = 1_780_000_000
STARTED = "<!-- SLOW_UPDATE_START -->"
ENDED = "<!-- SLOW_UPDATE_END -->"
SEED = """# Answering

Read the search results and answer the question.

- Answer briefly.
"""
ONE = SEED + "\n- Answer in the unit the question asks for.\n"
TWO = ONE.replace("- Answer briefly.", "- Answer at length.")
PLACED = ONE + f"\n{STARTED}\n{ENDED}\n"
FOUR = ONE + f"\n- Quote the span that you rely on.\n\n{STARTED}\n{ENDED}\n"
GUIDANCE = "- Prefer the shortest answer."
LAST = FOUR.replace(f"{STARTED}\n{ENDED}", f"{STARTED}\n{GUIDANCE}\n{ENDED}")
CONFIG = {
    "env": "searchqa",
    "num_epochs": 2,
    "batch_size": 3,
    "accumulation": 1,
    "seed": 42,
    "edit_budget": 4,
    "min_edit_budget": 2,
    "lr_scheduler": "cosine",
    "skill_update_mode": "patch",
    "use_slow_update": True,
    "use_gate": True,
    "gate_metric": "hard",
    "optimizer_model": "gpt-5.5",
    "target_model": "gpt-5.5-mini",
    "optimizer_backend": "openai_chat",
    "target_backend": "openai_chat",
    "azure_api_key": "***",
    "qwen_chat_api_key": HIDDEN,
    "out_root": "/home/somebody/outputs/one",
}


def mean(values: Sequence[float]) -> float:
    """Return the mean as the reference adds it up: from left to right, so that its last digits depend on the order."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


def rows(passed: int) -> list[Row]:
    """Return results in which the last items are solved, in the order in which they came back."""
    solved = set(ITEMS[:passed])
    found = [
        {
            "id": item,
            "hard": int(item in solved),
            "soft": 1.0 if item in solved else 0.1,
            "task_type": "span",
            "predicted_answer": f"answer of {item}",
            "fail_reason": "" if item in solved else f"wrong: {HIDDEN} was not asked for",
        }
        for item in ITEMS
    ]
    return found[3:] + found[:3]


def every_object(repository: Path) -> bytes:
    """Return the content of every object of a repository."""
    command = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def hashed(text: str) -> str:
    """Return what the reference knows a text by."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Outputs:
    """A directory that is being written.

    Args:
        path: Where.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = START
        self.history: list[Row] = []

    def text(self, name: str, text: str) -> None:
        """Write a file, a minute after the one before."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.clock += 60
        os.utime(file, (self.clock, self.clock))

    def json(self, name: str, value: object) -> None:
        """Write a file with JSON."""
        self.text(name, json.dumps(value, indent=2))

    def results(self, folder: str, found: Iterable[Row]) -> tuple[float, float]:
        """Write results with a conversation for each, and return their means."""
        listed = list(found)
        self.text(f"{folder}/results.jsonl", "".join(f"{json.dumps(row)}\n" for row in listed))
        for row in listed[:2]:
            turns = [{"role": "user", "content": "Where?"}, {"type": "tool_call", "cmd": "ls", "obs": f"key {KEY}"}]
            self.json(f"{folder}/predictions/{row['id']}/conversation.json", turns)
        return mean([float(row["hard"]) for row in listed]), mean([float(row["soft"]) for row in listed])

    def step(self, number: int, epoch: int, action: str, told: Row) -> None:
        """Write the record of a step, and history with it."""
        best = max((float(record["best_score"]) for record in self.history), default=0.4)
        current = float(self.history[-1]["current_score"]) if self.history else 0.4
        if "accept" in action:
            current = float(told["candidate_gate_score"])
            best = max(best, current)
        record = {
            "step": number,
            "epoch": epoch,
            "step_in_epoch": 1 + (number - 1) % 2,
            "tokens": {"analyst": {"calls": 2, "prompt_tokens": 100, "completion_tokens": 10}},
            "edit_budget": 4,
            "lr_control_mode": "fixed",
            "action": action,
            "current_score": current,
            "best_score": best,
            "wall_time_s": 12.5,
            **told,
        }
        self.history.append(record)
        self.json("history.json", self.history)
        self.json(
            "runtime_state.json",
            {"last_completed_step": number, "current_score": current, "best_score": best, "best_step": number},
        )
        self.json(f"steps/step_{number:04d}/step_record.json", record)

    def candidate(self, place: tuple[int, int], action: str, text: str, passed: int, edits: Sequence[Row]) -> None:
        """Write a step with a candidate; ``place`` is step and epoch."""
        number, epoch = place
        folder = f"steps/step_{number:04d}"
        self.results(f"{folder}/rollout", rows(3)[:3])
        self.json(f"{folder}/patches/minibatch_fail_000.json", failure(number))
        self.json(f"{folder}/merged_patch.json", {"reasoning": "merged", "edits": list(edits)})
        self.json(f"{folder}/ranked_edits.json", {"reasoning": f"reasons of step {number}", "edits": list(edits)})
        self.text(f"{folder}/candidate_skill.md", text)
        report = [
            {"index": place, "op": edit["op"], "status": f"applied_{edit['op']}"} for place, edit in enumerate(edits, 1)
        ]
        self.json(f"{folder}/edit_apply_report.json", report)
        hard, soft = self.results(f"{folder}/selection_eval", rows(passed))
        summary = {"total": len(edits), "applied": len(edits), "skipped": 0, "errors": 0}
        told = {
            "n_edits_merged": len(edits) + 1,
            "n_edits_ranked": len(edits),
            "edit_apply_summary": summary,
            "candidate_hash": hashed(text),
            "selection_hard": hard,
            "selection_soft": soft,
            "gate_metric": "hard",
            "candidate_gate_score": hard,
        }
        self.step(number, epoch, action, told)


def failure(number: int) -> Row:
    """Return what an analyst said of failures."""
    return {
        "batch_size": 3,
        "failure_summary": [{"failure_type": "unit", "count": 2, "description": f"units are wrong in step {number}"}],
        "patch": {"reasoning": "", "edits": []},
        "source_type": "failure",
    }


def append(content: str) -> Row:
    """Return an edit."""
    return {"op": "append", "content": content, "support_count": 3, "source_type": "failure"}


def write_outputs(path: Path, *, until: int = 4, end: bool = True, config: Row | None = None) -> Outputs:
    """Write the run up to step ``until``; with ``end`` also what stands behind the last one."""
    outputs = Outputs(path)
    outputs.json("config.json", CONFIG | (config or {}))
    outputs.text("skills/skill_v0000.md", SEED)
    outputs.results("selection_eval_baseline", rows(4))
    for number, tell in enumerate((_first, _second, _third, _fourth), start=1):
        if number <= until:
            tell(outputs)
    if end:
        _end(outputs)
    return outputs


def _first(outputs: Outputs) -> None:
    outputs.candidate((1, 1), "accept_new_best", ONE, 6, [append("- Answer in the unit the question asks for.")])
    outputs.text("skills/skill_v0001.md", ONE)


def _second(outputs: Outputs) -> None:
    edit = {"op": "replace", "target": "- Answer briefly.", "content": "- Answer at length.", "support_count": 2}
    outputs.candidate((2, 1), "reject", TWO, 5, [edit])
    outputs.json("slow_update/epoch_01/slow_result.json", {"action": "inject_placeholder"})
    outputs.json("meta_skill/epoch_01/meta_skill_result.json", {"action": "skip_first_epoch"})
    outputs.text("skills/skill_v0002.md", PLACED)


def _third(outputs: Outputs) -> None:
    outputs.results("steps/step_0003/rollout", rows(3)[:3])
    outputs.step(3, 2, "skip_no_patches", {})
    outputs.text("skills/skill_v0003.md", PLACED)


def _fourth(outputs: Outputs) -> None:
    outputs.candidate((4, 2), "accept_new_best", FOUR, 7, [append("- Quote the span that you rely on.")])
    outputs.text("skills/skill_v0004.md", FOUR)


def _end(outputs: Outputs) -> None:
    slow = {"reasoning": "Long answers lose.", "slow_update_content": GUIDANCE, "action": "force_accept", "time_s": 3.0}
    outputs.json("slow_update/epoch_02/slow_result.json", slow)
    meta = {"reasoning": "", "meta_skill_content": "Rules about units help.", "action": "write_meta_skill"}
    outputs.json("meta_skill/epoch_02/meta_skill_result.json", meta)
    outputs.text("skills/skill_v0004.md", LAST)
    final = outputs.results("final_selection_eval", rows(8))
    outputs.text("best_skill.md", LAST)
    first, best = (
        outputs.results(folder, rows(passed)) for folder, passed in (("test_eval_baseline", 5), ("test_eval", 9))
    )
    outputs.results("test_eval_final", rows(9))
    outputs.json(
        "summary.json",
        {
            "version": "skillopt-0.1.0",
            "config": CONFIG,
            "baseline_selection_hard": 0.4,
            "best_selection_hard": final[0],
            "final_selection_hard": final[0],
            "final_selection_soft": final[1],
            "best_step": 4,
            "total_steps": 4,
            "total_accepts": 2,
            "total_rejects": 1,
            "total_skips": 1,
            "baseline_test_hard": first[0],
            "baseline_test_soft": first[1],
            "test_hard": best[0],
            "test_soft": best[1],
            "final_test_hard": best[0],
            "final_test_soft": best[1],
        },
    )
