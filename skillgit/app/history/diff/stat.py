"""How much differs between two versions: lines, rules, items, scores and length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from skillgit.app.history.diff.items import SHIFTS, Length, differing, item_changes, length, noted_rows, unmeasured
from skillgit.app.history.diff.rules import matches
from skillgit.app.history.diff.text import sides
from skillgit.app.recorded.run_record import item_rows
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.conditions import Difference
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store import diff as store_diff


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStat:
    text: str  # what `git diff --stat A B` prints
    a: LogRow | None  # the older side's event; absent if the commit is not an event
    b: LogRow | None  # the newer side's event; absent if the commit is not an event
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


def stat(workspace: Workspace, a: str, b: str | None = None, paths: Sequence[str] = ()) -> DiffStat:
    """Return how much differs between two revisions; :func:`sides` says what is refused."""
    both = sides(workspace, a, b, paths)
    rules = [diff for _, diff in matches(workspace, both)]
    events = [row for row in (both.a.row, both.b.row) if row is not None]
    outcomes = [item_rows(workspace, row) or noted_rows(workspace, row) for row in events]
    counts: Counter[str] | None = None  # None where the outcomes of a side are not known
    if len(events) == 2 and all(outcomes):  # noqa: PLR2004 - both sides
        gauge = queries.gauge(workspace.index, events[1].run)
        changes = item_changes(outcomes[0], outcomes[1], gauge, unmeasured(workspace, *events))
        counts = Counter(row.change.replace("-", "_") for row in changes)
    return DiffStat(
        text=store_diff.stat(workspace.repo, both.a.commit, both.b.commit, *both.paths),
        a=both.a.row,
        b=both.b.row,
        rules_added=sum(len(diff.additions) for diff in rules),
        rules_removed=sum(len(diff.removals) for diff in rules),
        rules_changed=sum(len(diff.changes) for diff in rules),
        rules_moved=sum(len(diff.moves) for diff in rules),
        **{name: None if counts is None else counts[name] for name in (*SHIFTS, "not_measured", "missing")},
        compared=None if counts is None else counts.total() - counts["missing"] - counts["not_measured"],
        differs=differing(workspace, *events) if len(events) == 2 else (),  # noqa: PLR2004 - both sides
        length=length(workspace, both),
    )
