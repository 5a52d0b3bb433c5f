"""The summary of a difference: lines, rules, items and length."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.history.diff.items import Change, Length, differing, item_changes, length, noted_rows, unmeasured
from skillgit.app.history.diff.rules import matches
from skillgit.app.history.diff.text import sides
from skillgit.app.recorded.run_record import item_rows
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.index import queries
from skillgit.store import diff as store_diff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.setup.comparable_conditions import Difference
    from skillgit.app.workspace.context import Context
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStat:
    text: str  # what `git diff --stat A B` prints
    a: LogRow | None  # the older side's event; absent for a commit that is no event
    b: LogRow | None  # the newer side's event; absent for a commit that is no event
    rules_added: int
    rules_removed: int
    rules_changed: int
    rules_moved: int  # rules with the same words in another place
    fixed: int | None  # items that score higher under the newer side and are solved now; absent without outcomes
    broken: int | None  # items that score lower and are no longer solved; likewise
    compared: int | None  # items with a score on both sides; likewise
    not_measured: int | None  # by one side, because its decision was settled before; likewise
    missing: int | None  # items without a score on one side for another reason; likewise
    differs: tuple[Difference, ...]  # what differs between the two measurements besides the text
    length: Length
    gained: int | None = None  # items that score higher otherwise; likewise
    lost: int | None = None  # items that score lower otherwise; likewise


def stat(context: Context, a: str, b: str | None = None, paths: Sequence[str] = ()) -> DiffStat:
    """Return how much differs between the revisions ``a`` and ``b``.

    What may be compared, and what is refused, :func:`skillgit.app.history.diff.text.sides` says.
    """
    with open_workspace(context) as workspace:
        both = sides(workspace, a, b, paths)
        diffs = [diff for _, diff in matches(workspace, both)]
        changes = _changes(workspace, both.a.row, both.b.row)
        return DiffStat(
            text=store_diff.stat(workspace.repo, both.a.commit, both.b.commit, *both.paths),
            a=both.a.row,
            b=both.b.row,
            rules_added=sum(len(diff.added) for diff in diffs),
            rules_removed=sum(len(diff.removed) for diff in diffs),
            rules_changed=sum(len(diff.changed) for diff in diffs),
            rules_moved=sum(len(diff.moved) for diff in diffs),
            fixed=None if changes is None else changes["fixed"],
            broken=None if changes is None else changes["broken"],
            gained=None if changes is None else changes["gained"],
            lost=None if changes is None else changes["lost"],
            compared=None if changes is None else changes.total() - changes["missing"] - changes["not-measured"],
            not_measured=None if changes is None else changes["not-measured"],
            missing=None if changes is None else changes["missing"],
            differs=differing(workspace, both.a.row, both.b.row) if both.a.row and both.b.row else (),
            length=length(workspace, both),
        )


def _changes(workspace: Workspace, a: LogRow | None, b: LogRow | None) -> Counter[Change] | None:
    """Return how many items were fixed, broken and so on; None where the outcomes of a side are not known."""
    if a is None or b is None:
        return None
    before, after = (item_rows(workspace, row) or noted_rows(workspace, row) for row in (a, b))
    if not before or not after:
        return None
    rows = item_changes(before, after, queries.gauge(workspace.index, b.run), unmeasured(workspace, a, b))
    return Counter(row.change for row in rows)
