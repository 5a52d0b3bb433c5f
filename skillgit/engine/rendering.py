"""Sections of optimizer prompts: stable parts first, the skill once, long trajectories elided in the open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.skill import DOCUMENT
from skillgit.engine.prompts import prompt
from skillgit.plugin.backend import system, user

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.domain.edit import Edit, Patch
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import StepMemory
    from skillgit.domain.trajectory import Rollout, Trajectory
    from skillgit.plugin.backend import Message

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English text; only lengths of prompts depend on it."""


def conversation(name: str, taxonomy: str, sections: Iterable[str]) -> list[Message]:
    """Return the prompt called ``name`` as system message and the non-empty sections as user message."""
    instructions = prompt(name).replace("{taxonomy}", taxonomy.strip())
    return [system(instructions), user("\n\n".join(section for section in sections if section))]


def tagged(tag: str, text: str, **attributes: str | float) -> str:
    """Return ``text`` between tags on lines of their own; nothing is escaped."""
    listed = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{listed}>\n{text.strip(chr(10))}\n</{tag}>"


def skill_section(skill: Skill, **attributes: str) -> str:
    """Return the skill's Markdown files in full and the names of its other files."""
    shown = [tagged("file", text, path=path) for path, text in skill.text_files() if path.endswith(".md")]
    names = {path for path, _ in skill.text_files() if path.endswith(".md")}
    others = [path for path in skill.files if path not in names]
    if others:
        shown.append(tagged("other_files", "\n".join(others)))
    return tagged("skill", "\n".join(shown), name=skill.name, **attributes)


def memory_section(memory: str) -> str:
    """Return the optimizer's memory, or nothing."""
    return tagged("memory", memory) if memory else ""


def budget_section(budget: int) -> str:
    """Return the edit budget."""
    return f"<budget>{budget}</budget>"


def history_section(steps: Sequence[StepMemory]) -> str:
    """Return what was tried before, newest first, or nothing."""
    return tagged("history", "\n".join(_step(step) for step in reversed(steps))) if steps else ""


def _step(step: StepMemory) -> str:
    head = f"step {step.step} (epoch {step.epoch})"
    if step.decision is None:
        return f"{head} skipped: {step.title}"
    lines = [f"{head} {step.decision} {step.score:.4f} against {step.current:.4f}: {step.title}"]
    lines += [f"  {change.sign} {change.text}" for change in step.changes]
    if step.broken:
        lines.append(f"  broke: {', '.join(step.broken)}")
    return "\n".join(lines)


def trajectories_section(rollouts: Sequence[Rollout], outcome: str, max_tokens: int) -> str:
    """Return trajectories, each cut to about ``max_tokens``."""
    shown = [
        tagged("trajectory", trajectory_text(trajectory, max_tokens), **_scores(rollout))
        for rollout in rollouts
        if (trajectory := rollout.trajectory) is not None
    ]
    return tagged("trajectories", "\n".join(shown), outcome=outcome, count=len(shown))


def _scores(rollout: Rollout) -> dict[str, str | float]:
    outcome = rollout.outcome
    return {
        "id": rollout.item.id,
        "task_type": rollout.item.task_type,
        "hard": f"{getattr(outcome, 'hard', 0.0):g}",
        "soft": f"{getattr(outcome, 'soft', 0.0):.2f}",
    }


def trajectory_text(trajectory: Trajectory, max_tokens: int) -> str:
    """Return turns, answer and feedback of a trajectory; long turns are elided in the middle, in the open."""
    limit = max(max_tokens * CHARACTERS_PER_TOKEN // max(len(trajectory.turns), 1), 400)
    parts = [tagged("turn", elide(turn.content, limit), role=turn.role) for turn in trajectory.turns]
    parts.append(tagged("answer", elide(trajectory.answer, limit)))
    parts.append(tagged("feedback", elide(trajectory.feedback, limit)))
    return "\n".join(parts)


def elide(text: str, limit: int) -> str:
    """Return ``text``, with its middle left out if it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


def edit_fields(edit: Edit) -> dict[str, object]:
    """Return an edit as JSON values."""
    return {
        "op": edit.op.value,
        "file": edit.file or DOCUMENT,
        "anchor": edit.anchor,
        "content": edit.content,
        "support": edit.support,
        "source": edit.source.value,
    }


def patches_section(patches: Sequence[Patch], source: str, level: int) -> str:
    """Return patches as a JSON list."""
    listed = [
        {"title": patch.title, "reasoning": patch.reasoning, "edits": [edit_fields(edit) for edit in patch.edits]}
        for patch in patches
    ]
    return tagged("patches", json.dumps(listed, indent=1, ensure_ascii=False), source=source, level=level)


def edits_section(edits: Sequence[Edit]) -> str:
    """Return numbered edits as a JSON list."""
    listed = [{"number": number} | edit_fields(edit) for number, edit in enumerate(edits)]
    return tagged("edits", json.dumps(listed, indent=1, ensure_ascii=False))
