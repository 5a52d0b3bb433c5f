"""The files of an event's evidence: what they are called in the tree that is kept next to the commit."""

from __future__ import annotations

PATCH = "patch.json"  # the edits of a candidate and what happened to each
ROLLOUT = "rollout.json"  # what the target did on the train items of a step
SCREENING = "screening.json"  # what it did on some of them with the candidate
LOOKS = "looks.json"  # what single drafts did on a few of them
FINDINGS = "findings.json"  # what analysts saw in the trajectories
COMPARISON = "comparison.json"  # what a slow update compared
SALVAGE = "salvage.json"  # what parts of a refused patch did alone
