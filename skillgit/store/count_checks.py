"""Whether the counts of an event fit each other: what it cost and its parts, its edits and how many they are."""

from __future__ import annotations

from math import isclose, isfinite
from typing import TYPE_CHECKING

from skillgit.domain.event import EDITS_SHOWN, Accepted, Edited, Rejected, Skipped, SlowMerged
from skillgit.store.fields import AMOUNT
from skillgit.store.values import COST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.domain.cost import Cost
    from skillgit.domain.event import Event

_COUNTS = {field.key: field.attribute for field in COST.fields if field.kind is AMOUNT}
_ROUNDING = 1e-9


def count_problems(event: Event, *, imported: bool) -> Iterator[str]:
    """Yield which counts of ``event`` contradict each other.

    What was ``imported`` tells edits as far as they are of a kind that there is here, and counts all of them.
    """
    if not isinstance(event, SlowMerged | Edited):
        yield from _cost_problems(event.cost)
    if isinstance(event, Accepted | Rejected | Skipped):
        patch = event.patch
        if min(patch.merged, patch.ranked, patch.applied, patch.skipped, patch.budget or 0) < 0:
            yield "the commit counts fewer proposals or edits than none"
        edits = () if isinstance(event, Skipped) else event.edits
        if isinstance(event, Accepted | Rejected) and not imported and len(edits) != min(patch.applied, EDITS_SHOWN):
            yield f"the commit says that {patch.applied} edits were applied, and tells {len(edits)} of them"


def _cost_problems(cost: Cost) -> Iterator[str]:
    """Yield where parts do not add up to the whole; seconds do not, for calls are made side by side."""
    for one in (cost, *(part.cost for part in cost.parts)):
        amounts = (*(getattr(one, name) for name in _COUNTS.values()), one.usd, one.seconds)
        if not all(isfinite(amount) and amount >= 0 for amount in amounts):
            yield "the commit tells a cost that is below 0 or no number"
            return
    if not cost.parts:
        return
    for key, name in _COUNTS.items():
        whole, parts = getattr(cost, name), sum(getattr(part.cost, name) for part in cost.parts)
        if whole != parts:
            yield f"the commit says that it cost {key}={whole}, and its parts add up to {parts}"
    usd = sum(part.cost.usd for part in cost.parts)
    if not isclose(cost.usd, usd, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        yield f"the commit says that it cost usd={cost.usd!r}, and its parts add up to {usd!r}"
