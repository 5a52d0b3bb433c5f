"""What others tried on the text that a run began with: for the analysts, and as a file in the run's first evidence.

A run takes it in once, when it begins, and reads it from there ever after. So what is fetched later changes nothing in
a run that has begun, and a run that was killed goes on with the same prompts.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from skillgit.domain.event import Change
from skillgit.domain.tried import Tried
from skillgit.domain.untrusted.documents import loads
from skillgit.engine import artifacts
from skillgit.engine.history import CHANGES_SHOWN
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN, tagged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRIED_FILE = "tried.json"
TRIED_TOKENS = 1000
"""About how long the section may be; the newest candidate is told first, and whatever its length."""
_INTRODUCTION = (
    "Before this run began, the following changes were tried on its first version or on one of those before, and a gate"
    " rejected each of them. Propose none of them again unless the trajectories show that it fits now."
)


def tried_section(tried: Sequence[Tried]) -> str:
    """Return what was tried, newest first, or nothing; what does not fit is left out in the open."""
    if not tried:
        return ""
    told, room = [_INTRODUCTION], TRIED_TOKENS * CHARACTERS_PER_TOKEN
    for place, one in enumerate(reversed(tried)):
        text = _told(one)
        if place and len(text) > room:
            left = len(tried) - place
            told.append(f"[... {left} earlier {'candidate' if left == 1 else 'candidates'} left out ...]")
            break
        room -= len(text)
        told.append(text)
    return tagged("tried_before", "\n".join(told))


def tried_file(tried: Sequence[Tried]) -> artifacts.Evidence:
    """Return ``tried.json``, what had been tried when the run began; no file if there is nothing."""
    return {TRIED_FILE: artifacts.json_file([asdict(one) for one in tried])} if tried else {}


def read_tried(files: Mapping[str, bytes] | None) -> tuple[Tried, ...]:
    """Return what :func:`tried_file` wrote; nothing without the file."""
    content = (files or {}).get(TRIED_FILE)
    rows = loads(content) if content else []
    return tuple(Tried(**row | {"changes": tuple(Change(**change) for change in row["changes"])}) for row in rows)


def _told(one: Tried) -> str:
    bound = "at most " if one.bound else ""
    lines = [f"run {one.run}, step {one.step}: {one.title}; scored {bound}{one.score:.4f} against {one.current:.4f}"]
    lines += [f"  {change.sign} {change.text}" for change in one.changes[:CHANGES_SHOWN]]
    if len(one.changes) > CHANGES_SHOWN:
        lines.append(f"  [... {len(one.changes) - CHANGES_SHOWN} changed lines left out ...]")
    return "\n".join(lines)
