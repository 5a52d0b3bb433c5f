"""What people said about versions of the run, for the analysts of a step, and for the evidence of what they were told.

Feedback teaches; it is no term of the gate, and no target model sees it. Each step takes what there is when it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.engine import artifacts
from skillgit.engine.elision import elide
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN, tagged
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    told, room = [_INTRODUCTION], FEEDBACK_TOKENS * CHARACTERS_PER_TOKEN
    for place, one in enumerate(reversed(feedback)):
        text = elide(one.text.strip(), room) if place == 0 else one.text.strip()
        if place and len(text) > room:
            left = len(feedback) - place
            told.append(f"[... {left} earlier {'note' if left == 1 else 'notes'} left out ...]")
            break
        room -= len(text)
        told.append(tagged("note", text, date=one.time.date().isoformat()))
    return tagged("feedback", "\n".join(told))


def feedback_file(feedback: Sequence[Feedback]) -> artifacts.Evidence:
    """Return ``feedback.json``, what people had said when the step began; no file if they had said nothing."""
    if not feedback:
        return {}
    rows = [
        {
            "id": one.id,
            "commit": one.commit,
            "author": one.author,
            "time": one.time.isoformat().replace("+00:00", "Z"),
            "text": redact(one.text),
        }
        for one in feedback
    ]
    return {"feedback.json": artifacts.json_file(rows)}
