"""``skillgit diff``: how two versions differ, in their text and item by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from skillgit.app.revision import Resolved, event_in, resolve_in
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Scored
from skillgit.domain.statistics import sign_test
from skillgit.errors import NotFoundError
from skillgit.index import queries
from skillgit.store import diff as store_diff

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.index.queries import Gauge
    from skillgit.index.rows import ItemRow, LogRow

Change = Literal["fixed", "broken", "pass", "fail", "missing"]
"""What became of an item: its score rose, fell or stayed, solved or not; or a side has no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffed:
    """The difference of two texts.

    Attributes:
        a: The older side's event; absent for a commit that is no event.
        b: The newer side's event; absent for a commit that is no event.
        text: The bytes that ``git diff A B`` prints for the skill folder.
    """

    a: LogRow | None
    b: LogRow | None
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStat:
    """The summary of a difference.

    Attributes:
        text: What ``git diff --stat A B`` prints.
        a: The older side's event; absent for a commit that is no event.
        b: The newer side's event; absent for a commit that is no event.
    """

    text: str
    a: LogRow | None
    b: LogRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """One item under two versions.

    Attributes:
        item: The item.
        task_type: The group that it is reported under.
        before: Its score under the older version; absent if there is none.
        after: Its score under the newer version; absent if there is none.
        change: ``fixed`` or ``broken`` if the score rose or fell, ``pass`` or ``fail`` if it stayed, ``missing`` if a
            side has no score.
    """

    item: str
    task_type: str
    before: float | None
    after: float | None
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDiff:
    """Two versions item by item.

    Attributes:
        a: The older side.
        b: The newer side.
        metric: The metric of the scores.
        rows: One row per item, in the order of their names.
        fixed: Items that score higher under ``b``.
        broken: Items that score lower under ``b``.
        stable_pass: Items that are solved under both.
        stable_fail: Items with the same score that are not solved.
        missing: Items without a score on one side.
        p: One-sided exact sign test of fixed against broken.
    """

    a: LogRow
    b: LogRow
    metric: str
    rows: tuple[ItemChange, ...]
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    stable_pass: tuple[str, ...]
    stable_fail: tuple[str, ...]
    missing: tuple[str, ...]
    p: float


def diff(context: Context, a: str, b: str) -> Diffed:
    """Return how the skill's text differs between the revisions ``a`` and ``b``.

    Raises:
        RevisionNotFoundError: One of them names nothing.
    """
    with open_workspace(context) as workspace:
        older, newer = resolve_in(workspace, a), resolve_in(workspace, b)
        text = store_diff.diff(workspace.repo, older.commit, newer.commit, skill_path(workspace, older, newer))
        return Diffed(a=older.row, b=newer.row, text=text)


def stat(context: Context, a: str, b: str) -> DiffStat:
    """Return how many lines differ per file between the revisions ``a`` and ``b``.

    Raises:
        RevisionNotFoundError: One of them names nothing.
    """
    with open_workspace(context) as workspace:
        older, newer = resolve_in(workspace, a), resolve_in(workspace, b)
        text = store_diff.stat(workspace.repo, older.commit, newer.commit, skill_path(workspace, older, newer))
        return DiffStat(text=text, a=older.row, b=newer.row)


def items(context: Context, a: str, b: str) -> ItemDiff:
    """Return which items the revisions ``a`` and ``b`` solve, and which only one of them does.

    Scores are those of the selection split under the metric of the run of ``b``.

    Raises:
        RevisionNotFoundError: One of them names nothing, or no event of a run.
        NotFoundError: The outcomes of one of them are not known here.
    """
    with open_workspace(context) as workspace:
        older, newer = event_in(workspace, a), event_in(workspace, b)
        gauge = queries.gauge(workspace.index, newer.run)
        rows = item_changes(_outcomes(workspace, older, a), _outcomes(workspace, newer, b), gauge)
        named = {change: tuple(row.item for row in rows if row.change == change) for change in get_args(Change)}
        return ItemDiff(
            a=older,
            b=newer,
            metric=str(gauge.metric),
            rows=rows,
            fixed=named["fixed"],
            broken=named["broken"],
            stable_pass=named["pass"],
            stable_fail=named["fail"],
            missing=named["missing"],
            p=sign_test(len(named["fixed"]), len(named["broken"])),
        )


def _outcomes(workspace: Workspace, row: LogRow, name: str) -> tuple[ItemRow, ...]:
    found = queries.item_rows(workspace.index, row)
    if not found:
        raise NotFoundError(
            f"the outcomes of {name} on single items are not known here",
            hint="if this is a clone, fetch the evidence: git fetch origin 'refs/skillgit/*:refs/skillgit/*'",
        )
    return found


def item_changes(before: tuple[ItemRow, ...], after: tuple[ItemRow, ...], gauge: Gauge) -> tuple[ItemChange, ...]:
    """Compare the outcomes of items under two versions, by the items' names."""
    older, newer = ({row.item: row for row in rows} for rows in (before, after))
    return tuple(
        _item_change(item, older.get(item), newer.get(item), gauge) for item in sorted(older.keys() | newer.keys())
    )


def skill_path(workspace: Workspace, *revisions: Resolved) -> str:
    """Return the skill folder that ``revisions`` are about; empty, for the whole tree, if no run tells."""
    run = next((revision.run for revision in revisions if revision.run), None)
    row = queries.run_row(workspace.index, run, {}) if run else None
    return row.skill if row else ""


def _item_change(item: str, before: ItemRow | None, after: ItemRow | None, gauge: Gauge) -> ItemChange:
    old, new = _value(before, gauge), _value(after, gauge)
    known = after or before
    return ItemChange(
        item=item, task_type=known.task_type if known else "", before=old, after=new, change=_change(old, new, after)
    )


def _change(old: float | None, new: float | None, after: ItemRow | None) -> Change:
    if old is None or new is None or after is None:
        return "missing"
    if new != old:
        return "fixed" if new > old else "broken"
    return "pass" if after.hard is not None and after.hard >= 1.0 else "fail"


def _value(row: ItemRow | None, gauge: Gauge) -> float | None:
    if row is None or row.hard is None or row.soft is None:
        return None
    return Scored(row.hard, row.soft).value(gauge.metric, gauge.soft_weight)
