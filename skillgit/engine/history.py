"""What was tried before, for prompts: the steps of all epochs, newest first, within a budget of tokens.

It is made of the run's state alone, so that a resumed run tells the same. What does not fit is left out in the open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Origin
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN, tagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.state import StepMemory

HISTORY_TOKENS = 3000
"""The budget where the settings name none."""
CHANGES_SHOWN = 24
"""Changed lines of one step that are told; a rewrite may have many."""
ITEMS_SHOWN = 24
"""Items of one step that are named."""


def history_section(steps: Sequence[StepMemory], max_tokens: int = HISTORY_TOKENS) -> str:
    """Return what was tried before, newest first, or nothing.

    Args:
        steps: The steps, oldest first.
        max_tokens: About how long the section may be; the newest step is told whatever its length.
    """
    return tagged("history", _told(steps, max_tokens, in_full=False)) if steps else ""


def record_section(steps: Sequence[StepMemory], max_tokens: int) -> str:
    """Return the steps of an epoch with their reasons and with all that they fixed and broke, newest first."""
    return tagged("record", _told(steps, max_tokens, in_full=True), steps=len(steps))


def _told(steps: Sequence[StepMemory], max_tokens: int, *, in_full: bool) -> str:
    """Return the newest steps in full, then older ones by their titles, as far as they fit."""
    lines: list[str] = []
    room = max_tokens * CHARACTERS_PER_TOKEN
    for step in reversed(steps):
        text = _step(step, in_full=in_full)
        if lines and len(text) + 1 > room:
            text = _head(step)
        if lines and len(text) + 1 > room:
            rest = len(steps) - len(lines)
            lines.append(f"[... {rest} earlier {'step' if rest == 1 else 'steps'} left out ...]")
            break
        room -= len(text) + 1
        lines.append(text)
    return "\n".join(lines)


def _head(step: StepMemory) -> str:
    if step.author:
        return f"a person edited the skill by hand after step {step.step} (epoch {step.epoch}): {step.title}"
    meta = step.origin is Origin.META
    name = f"epoch {step.epoch} reflection" if meta else f"step {step.step} (epoch {step.epoch})"
    if step.by_hand:
        name = f"{step.origin} that a person asked for after step {step.step} (epoch {step.epoch})"
    if step.decision is None:
        return f"{name} skipped: {step.title}"
    bound = "at most " if step.bound else ""
    return f"{name} {step.decision} {bound}{step.score:.4f} against {step.current:.4f}: {step.title}"


def _step(step: StepMemory, *, in_full: bool) -> str:
    lines = [_head(step)]
    if in_full:
        lines += [f"  because: {paragraph}" for paragraph in step.why.split("\n\n") if paragraph]
    lines += [f"  {change.sign} {change.text}" for change in step.changes[:CHANGES_SHOWN]]
    if len(step.changes) > CHANGES_SHOWN:
        lines.append(f"  [... {len(step.changes) - CHANGES_SHOWN} changed lines left out ...]")
    if in_full and step.fixed:
        lines.append(f"  fixed: {_items(step.fixed)}")
    if step.broken:
        lines.append(f"  broke: {_items(step.broken)}")
    return "\n".join(lines)


def _items(items: Sequence[str]) -> str:
    more = f" and {len(items) - ITEMS_SHOWN} more" if len(items) > ITEMS_SHOWN else ""
    return ", ".join(items[:ITEMS_SHOWN]) + more
