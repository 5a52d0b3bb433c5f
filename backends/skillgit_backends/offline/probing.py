"""What the analyst asks for before an experiment: that the reader shows its work.

The reader follows rules and knows no such request, so that a probe changes none of its answers. That is what a
rehearsal can honestly offer: every call of a real experiment is made, and nothing is claimed to have come of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from skillgit_backends.offline.diagnosis import causes
from skillgit_backends.offline.proposals import LABELS, draw

if TYPE_CHECKING:
    from skillgit_backends.offline.briefing import Briefing

PROBES = (
    "Before the final line, copy the passage that you relied on.",
    "First list what you considered and what spoke against each, then finish as usual.",
    "Show which instruction above decided the form of your reply, then reply as usual.",
)
"""Requests that teach nothing."""


def probe(briefing: Briefing) -> dict[str, Any]:
    """Ask the reader to show its work; where no failure is shown there is nothing to find out."""
    failing = Counter(habit for attempt in briefing.attempts for habit in causes(attempt)[:1])
    if not briefing.attempts:
        return {"reasoning": "No failure is shown.", "probe": ""}
    told = [LABELS[habit] for habit, _ in sorted(failing.items(), key=lambda entry: (-entry[1], entry[0]))[:2]]
    open_question = " or ".join(told) if told else "something that the answers do not show"
    return {
        "reasoning": f"The failures may have to do with: {open_question}.",
        "probe": PROBES[draw(briefing.text, "probe", len(PROBES))],
    }
