"""How many changes a step should carry out: few that are well supported, fewer after a rejection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised

if TYPE_CHECKING:
    from skillgit_backends.offline.briefing import Briefing

_FEW = 2
_MOST = 4


def decide(briefing: Briefing) -> dict[str, Any]:
    """Return the number of proposals that several trajectories support, one less after a rejection."""
    proposals = [*briefing.edits, *briefing.suggestions]
    rejected = briefing.rejected_lines
    fresh = [entry for entry in proposals if normalised(str(entry.get("content", ""))) not in rejected]
    common = [entry for entry in fresh if entry.get("support", 1) >= _FEW]
    wanted = min(max(len(common), 1 if fresh else 0), _MOST)
    cautious = bool(briefing.steps) and not briefing.steps[0].accepted
    if cautious and wanted > 1:
        wanted -= 1
    return {
        "edits": wanted,
        "reasoning": f"{len(common)} of {len(proposals)} proposals rest on several tasks"
        f"{'; the step before was rejected' if cautious else ''}.",
        "confidence": "medium" if common else "low",
        "risks": [],
    }
