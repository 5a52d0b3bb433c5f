"""What people said about versions of the run and what other runs tried on its first text, as analysts read them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from skillgit.domain.event import Change
from skillgit.domain.tried import Tried
from skillgit.domain.untrusted.documents import loads
from skillgit.engine import artifacts
from skillgit.engine.elision import elide
from skillgit.engine.history import CHANGES_SHOWN
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN, tagged
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.feedback import Feedback


FEEDBACK_TOKENS = 1000
"""About how long the section may be; the newest feedback is told first."""
_INTRODUCTION = (
    "People who read or used versions of this skill wrote the following, the newest first. Take it as advice on what"
    " matters and what to look for; propose only what the trajectories support."
)


def feedback_section(feedback: Sequence[Feedback]) -> str:
    """Return what people said, newest first, or nothing; what does not fit is left out in the open."""
    if not feedback:
        return ""
    lines, room = [_INTRODUCTION], FEEDBACK_TOKENS * CHARACTERS_PER_TOKEN
    for index, note in enumerate(reversed(feedback)):
        text = elide(note.text.strip(), room) if index == 0 else note.text.strip()
        if index and len(text) > room:
            rest = len(feedback) - index
            lines.append(f"[... {rest} earlier {'note' if rest == 1 else 'notes'} left out ...]")
            break
        room -= len(text)
        lines.append(tagged("note", text, date=note.time.date().isoformat()))
    return tagged("feedback", "\n".join(lines))


def feedback_file(feedback: Sequence[Feedback]) -> artifacts.Evidence:
    """Return ``feedback.json``, what people had said when the step began; no file if they had said nothing."""
    if not feedback:
        return {}
    rows = [
        {
            "id": note.id,
            "commit": note.commit,
            "author": note.author,
            "time": note.time.isoformat().replace("+00:00", "Z"),
            "text": redact(note.text),
        }
        for note in feedback
    ]
    return {"feedback.json": artifacts.json_file(rows)}


TRIED_FILE = "tried.json"
TRIED_TOKENS = 1000
"""About how long the section may be; the newest candidate is told first, and whatever its length."""
_INTRODUCTION_OF_OTHERS = (
    "Before this run began, the following changes were tried on its first version or on one of those before, and a gate"
    " rejected each of them. Propose none of them again unless the trajectories show that it fits now."
)


def tried_section(attempts: Sequence[Tried]) -> str:
    """Return what was tried, newest first, or nothing; what does not fit is left out in the open."""
    if not attempts:
        return ""
    lines, room = [_INTRODUCTION_OF_OTHERS], TRIED_TOKENS * CHARACTERS_PER_TOKEN
    for index, attempt in enumerate(reversed(attempts)):
        text = _told(attempt)
        if index and len(text) > room:
            rest = len(attempts) - index
            lines.append(f"[... {rest} earlier {'candidate' if rest == 1 else 'candidates'} left out ...]")
            break
        room -= len(text)
        lines.append(text)
    return tagged("tried_before", "\n".join(lines))


def tried_file(attempts: Sequence[Tried]) -> artifacts.Evidence:
    """Return ``tried.json``, what had been tried when the run began; no file if there is nothing."""
    return {TRIED_FILE: artifacts.json_file([asdict(attempt) for attempt in attempts])} if attempts else {}


def read_tried(files: Mapping[str, bytes] | None) -> tuple[Tried, ...]:
    """Return what :func:`tried_file` wrote; nothing without the file."""
    content = (files or {}).get(TRIED_FILE)
    rows = loads(content) if content else []
    return tuple(Tried(**row | {"changes": tuple(Change(**change) for change in row["changes"])}) for row in rows)


def _told(row: Tried) -> str:
    bound = "at most " if row.bound else ""
    lines = [f"run {row.run}, step {row.step}: {row.title}; scored {bound}{row.score:.4f} against {row.current:.4f}"]
    lines += [f"  {change.sign} {change.text}" for change in row.changes[:CHANGES_SHOWN]]
    if len(row.changes) > CHANGES_SHOWN:
        lines.append(f"  [... {len(row.changes) - CHANGES_SHOWN} changed lines left out ...]")
    return "\n".join(lines)
