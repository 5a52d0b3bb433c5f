"""Scores of single checks, criteria or metrics, which an environment may report of an item besides the item's own."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.outcomes import SELECTION, read_outcomes
from skillgit.index import item_queries, queries
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.workspace.workspace import Workspace
    from skillgit.index.rows import LogRow

CheckScores = dict[str, dict[str, float]]
"""Check to the score of each item that has it."""
_PASSED = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckChange:
    """One check under two versions, over the items that have it on both sides."""

    check: str
    n: int
    before: float | None  # its mean score; absent without an older version
    after: float
    fixes: int = 0  # items on which it passes now, and did not
    breaks: int = 0  # items on which it passed, and does not now


def check_scores(workspace: Workspace, row: LogRow) -> CheckScores:
    """Return the scores of checks on selection items; none without evidence, or where items have one score only."""
    event = item_queries.measured_by(workspace.index, row.run, row.version, row.commit)
    tree = "" if event is None else item_queries.evidence_of_event(workspace.index, event)
    files = read_evidence(workspace.repo, tree, (SELECTION,)) or {}
    scores: CheckScores = {}
    for item, outcome in (read_outcomes(files.get(SELECTION)) or {}).items():
        for check, score in outcome.parts if isinstance(outcome, Scored) else ():
            scores.setdefault(check, {})[item] = score
    return scores


def changes_from_base(workspace: Workspace, row: LogRow) -> tuple[CheckChange, ...]:
    """Return how checks fare under ``row`` and its base; none if it was not measured, or items have one score only."""
    base = None if row.base is None else queries.row_of_version(workspace.index, row.run, row.base)
    before = None if base is None else check_scores(workspace, base)
    return check_changes(before, check_scores(workspace, row)) if row.measured else ()


def check_changes(before: CheckScores | None, after: CheckScores) -> tuple[CheckChange, ...]:
    """Return how each check fares after and, where there is an older version, before; by their names."""
    changes = [
        _change(check, None if before is None else before.get(check, {}), after[check]) for check in sorted(after)
    ]
    return tuple(change for change in changes if change is not None)


def _change(check: str, before: Mapping[str, float] | None, after: Mapping[str, float]) -> CheckChange | None:
    items = sorted(after) if before is None else sorted(before.keys() & after.keys())
    if not items:
        return None
    new = fmean(after[item] for item in items)
    if before is None:
        return CheckChange(check=check, n=len(items), before=None, after=new)
    return CheckChange(
        check=check,
        n=len(items),
        before=fmean(before[item] for item in items),
        after=new,
        fixes=sum(before[item] < _PASSED <= after[item] for item in items),
        breaks=sum(after[item] < _PASSED <= before[item] for item in items),
    )
