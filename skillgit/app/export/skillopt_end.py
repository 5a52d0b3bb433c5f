"""What a SkillOpt output directory says of a run as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit import __version__
from skillgit.domain.evaluation import Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.export.skillopt_layout import Layout, Row
    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.event import RunFinished

_DIGITS = 4


def run_files(layout: Layout) -> None:
    """Add what stands at the top of the directory, and the text that was current after each step."""
    layout.add_json("config.json", layout.config())
    layout.add_json("history.json", layout.history)
    text = ""
    steps = max(layout.texts)
    for step in range(steps + 1):
        text = layout.texts.get(step, text)
        layout.add(f"skills/skill_v{step:0{_DIGITS}d}.md", text)
    layout.add("best_skill.md", layout.best)
    layout.add_json(
        "runtime_state.json",
        {
            "last_completed_step": len(layout.history),
            "current_skill_path": f"skills/skill_v{steps:0{_DIGITS}d}.md",
            "current_score": layout.score,
            "current_origin": layout.origin,
            "best_skill_path": "best_skill.md",
            "best_score": layout.best_score,
            "best_step": layout.best_step,
            "best_origin": layout.best_origin,
        },
    )


def summary_files(layout: Layout, event: RunFinished, evidence: Mapping[str, bytes]) -> None:
    """Add the end of the run: its summary and its scores on the test split."""
    tests = {found.version or 0: found for found in event.evaluations if found.split is Split.TEST}
    for folder, version in (
        ("test_eval_baseline", 0),
        ("test_eval", layout.best_version),
        ("test_eval_final", layout.last),
    ):
        if version in tests:
            layout.add_outcomes(folder, evidence, f"test-v{version}.json")
    first = layout.started.evaluation
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
    found: dict[object, list[Row]] = {}
    for record in history:
        found.setdefault(record["epoch"], []).append(record)
    return [
        {
            "epoch": epoch,
            "steps": len(records),
            **_counts(records, ""),
            "best_score": records[-1]["best_score"],
            "current_score": records[-1]["current_score"],
        }
        for epoch, records in found.items()
    ]


def _tests(layout: Layout, tests: Mapping[int, EvaluationSummary]) -> Row:
    found: Row = {}
    for key, version in (("baseline_test", 0), ("test", layout.best_version), ("final_test", layout.last)):
        if version in tests:
            found |= {f"{key}_hard": tests[version].hard, f"{key}_soft": tests[version].soft}
    if 0 in tests:
        for key, version in (("test", layout.best_version), ("final_test", layout.last)):
            if version in tests:
                found[f"{key}_delta_hard"] = tests[version].hard - tests[0].hard
    return found
