"""What to do where evidence is not here: clones bring it on request only, and gc drops what is old."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

BRING: Final = "skillgit pull --evidence"
"""The command that brings it."""
IF_CLONED: Final = f"if this is a clone, bring the evidence: {BRING}"


class Absence(StrEnum):
    """Why outcomes that were measured are not known here."""

    DROPPED = "dropped"
    """gc dropped the evidence that they stood in."""
    AWAY = "away"
    """Their evidence was never brought here."""

    def sentence(self, what: str) -> str:
        """Say what became of the evidence of ``what``."""
        return f"the evidence of {what} {'was dropped' if self is Absence.DROPPED else 'is not here'}"

    def remedy(self, revision: str) -> str:
        """Return the hint that helps where the outcomes of ``revision`` are wanted."""
        return measure(revision) if self is Absence.DROPPED else IF_CLONED


def measure(revision: str) -> str:
    """Return the hint that ``revision`` can be measured, item by item."""
    return f"measure it here: skillgit eval {revision} --split selection"
