"""What to do where evidence is not here: clones bring history, and evidence only on request."""

from __future__ import annotations

from typing import Final

BRING: Final = "skillgit pull --evidence"
"""The command that brings it."""
IF_CLONED: Final = f"if this is a clone, bring the evidence: {BRING}"
