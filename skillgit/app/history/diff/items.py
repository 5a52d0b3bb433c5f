"""Two versions item by item: which were fixed, which broken, and whether that may be chance; and a summary of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, fsum
from typing import Literal, get_args

from skillgit.app.history.diff.rules import matches
from skillgit.app.history.diff.text import Sides, sides
from skillgit.app.recorded.item_history import absences
from skillgit.app.recorded.run_record import item_rows, recorded_outcomes
from skillgit.app.recorded.score_summary import CheckChange, check_changes, check_scores
from skillgit.app.setup.comparable_conditions import Difference, differences, matter, of_event
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import Resolved
from skillgit.app.workspace.workspace import Workspace, measure, open_workspace
from skillgit.domain.evaluation import Gauge, Metric, Scored, Split
from skillgit.domain.outcomes import exact, whole
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.statistics import sign_flip_test, sign_test, too_few_items
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.index import item_queries, queries
from skillgit.index.rows import ItemRow, LogRow
from skillgit.store import diff as store_diff
from skillgit.store import tree

Change = Literal["fixed", "broken", "gained", "lost", "not-measured", "missing", "fail", "pass"]
"""What happened to an item: its score rose or fell so that it is solved now or no longer (``fixed``, ``broken``), or
without that (``gained``, ``lost``); a side never measured it because the decision was settled, or has no score for
another reason; or the score stayed, not solved or solved."""

_SHIFTS: tuple[Change, ...] = ("fixed", "broken", "gained", "lost")
_CHARACTERS_PER_TOKEN = 4  # about, for English prose


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    item: str
    task_type: str
    before: float | None  # its score under the older version; absent if there is none
    after: float | None  # its score under the newer version; absent if there is none
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """The items of one task type under two versions, those with a score on both sides."""

    task_type: str  # the group; empty for items without one
    n: int
    before: float
    after: float
    fixed: int  # how many score higher and are solved now
    broken: int  # how many score lower and are not solved any more
    gained: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """About how many tokens ``SKILL.md`` has without its frontmatter, four characters each."""

    before: int | None  # under the older version; absent if it has no such file
    after: int | None  # under the newer version; absent if it has no such file


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDiff:
    a: LogRow
    b: LogRow
    differs: tuple[Difference, ...]  # besides the text; there is a test only where nothing that matters differs
    metric: str
    rows: tuple[ItemChange, ...]
    fixed: tuple[str, ...]  # items that score higher under `b` and are solved by it, as they were not under `a`
    broken: tuple[str, ...]  # items that score lower under `b` and are not solved by it, as they were under `a`
    stable_pass: tuple[str, ...]
    stable_fail: tuple[str, ...]  # items with the same score that are not solved
    not_measured: tuple[str, ...]  # items that one side never measured, because its decision was settled before
    missing: tuple[str, ...]  # items without a score on one side for another reason
    p: float | None  # one-sided, that b is better: sign test for hard scores, else sign-flip; absent if these differ
    p_worse: float | None  # the same that `b` is worse
    types: tuple[TypeChange, ...]
    length: Length
    notes: tuple[str, ...]  # what keeps the two sides from being compared like for like, as sentences
    gained: tuple[str, ...] = ()  # items that score higher under `b` otherwise
    lost: tuple[str, ...] = ()  # items that score lower under `b` otherwise
    checks: tuple[CheckChange, ...] = ()  # how single checks changed; none where items have one score only
    too_few: str = ""  # that no change on so few items is more than chance; empty where one is

    @property
    def moved(self) -> bool:
        return bool(self.fixed or self.broken or self.gained or self.lost)


def items(context: Context, a: str, b: str | None = None) -> ItemDiff:
    """Compare selection items under ``a`` and ``b``, or ``a`` and what it rests on, by the metric of the newer run."""
    with open_workspace(context) as workspace:
        both = sides(workspace, a, b)
        older, newer = _event(both.a), _event(both.b)
        gauge = queries.gauge(workspace.index, newer.run)
        (before, note), (after, noted_too) = (_outcomes(workspace, row) for row in (older, newer))
        rows = item_changes(before, after, gauge, unmeasured(workspace, older, newer))
        by_change = {change: tuple(row.item for row in rows if row.change == change) for change in get_args(Change)}
        differs = differing(workspace, older, newer)
        better, worse = (None, None) if matter(differs) else paired_test(rows, gauge.metric)
        return ItemDiff(
            a=older,
            b=newer,
            differs=differs,
            metric=str(gauge.metric),
            rows=rows,
            **{kind: by_change[kind] for kind in _SHIFTS},
            stable_pass=by_change["pass"],
            stable_fail=by_change["fail"],
            not_measured=by_change["not-measured"],
            missing=by_change["missing"],
            p=better,
            p_worse=worse,
            types=tuple(by_type(rows)),
            checks=check_changes(check_scores(workspace, older), check_scores(workspace, newer)),
            length=length(workspace, both),
            notes=(*notes(workspace, older, newer, rows), *note, *noted_too),
            too_few=too_few_items(sum(len(by_change[kind]) for kind in (*_SHIFTS, "pass", "fail"))),
        )


def differing(workspace: Workspace, a: LogRow, b: LogRow) -> tuple[Difference, ...]:
    """Return what differs between the measurements of two events besides the text; nothing within a run."""
    if a.run == b.run:
        return ()
    first, second = (of_event(workspace, row, Split.SELECTION) for row in (a, b))
    return () if first is None or second is None else differences(first, second)


def unmeasured(workspace: Workspace, *rows: LogRow) -> dict[str, str]:
    """Return item to task type where a run's decision was settled early: without an outcome, it was not measured."""
    runs = {row.run for row in rows if row.bound}
    return {item: kind for run in runs for item, kind in item_queries.task_types(workspace.index, run)}


def item_changes(
    before: Sequence[ItemRow], after: Sequence[ItemRow], gauge: Gauge, absences: Mapping[str, str] | None = None
) -> tuple[ItemChange, ...]:
    """Compare two versions item by item; ``absences``, item to task type, were left out as the decision was settled."""
    older, newer = ({row.item: row for row in rows} for rows in (before, after))
    kinds = absences or {}
    return tuple(
        _item_change(item, older.get(item), newer.get(item), gauge, kinds)
        for item in sorted(older.keys() | newer.keys() | kinds.keys())
    )


def paired_test(rows: Sequence[ItemChange], metric: Metric) -> tuple[float, float]:
    """Return the one-sided p-values that the newer version is better, and that it is worse, as the gate tests it."""
    gains = [exact(row.after) - exact(row.before) for row in rows if row.before is not None and row.after is not None]
    if metric is Metric.HARD:
        fixes, breaks = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        return sign_test(fixes, breaks), sign_test(breaks, fixes)
    return sign_flip_test(whole(gains)), sign_flip_test(whole([-gain for gain in gains]))


def by_type(rows: Sequence[ItemChange]) -> Iterator[TypeChange]:
    for kind in sorted({row.task_type for row in rows}):
        pairs = [
            (row.before, row.after, row.change)
            for row in rows
            if row.task_type == kind and row.before is not None and row.after is not None
        ]
        changes = Counter(change for *_, change in pairs)
        if pairs:
            yield TypeChange(
                task_type=kind,
                n=len(pairs),
                before=fsum(old for old, *_ in pairs) / len(pairs),
                after=fsum(new for _, new, _ in pairs) / len(pairs),
                **{kind: changes[kind] for kind in _SHIFTS},
            )


def length(workspace: Workspace, both: Sides) -> Length:
    before, after = (
        tree.read_file(
            workspace.repo, workspace.repo.commit(side.commit).tree, f"{skill}/{DOCUMENT}" if skill else DOCUMENT
        )
        for side, skill in zip((both.a, both.b), both.skills, strict=True)
    )
    return Length(before=None if before is None else _tokens(before), after=None if after is None else _tokens(after))


def notes(workspace: Workspace, a: LogRow, b: LogRow, rows: Sequence[ItemChange]) -> Iterator[str]:
    """Yield what keeps the scores of two events from being compared like for like."""
    if a.run == b.run:
        return
    first, second = (queries.run_row(workspace.index, row.run, {}) for row in (a, b))
    if first and second and first.metric != second.metric:
        yield f"{a.run} compares {first.metric} scores and {b.run} {second.metric} ones; items by the latter"
    if not any(row.before is not None and row.after is not None for row in rows):
        yield "the two runs have no item in common"


def _event(side: Resolved) -> LogRow:
    if side.row is None:
        raise RevisionNotFoundError(
            f"commit {side.commit[:12]} is no event of a run", hint=f"git show {side.commit[:12]}"
        )
    return side.row


def _outcomes(workspace: Workspace, row: LogRow) -> tuple[tuple[ItemRow, ...], tuple[str, ...]]:
    """Return the outcomes of ``row``, and a sentence where they are not those of its run."""
    if outcome_rows := item_rows(workspace, row):
        return outcome_rows, ()
    if outcome_rows := noted_rows(workspace, row):
        return outcome_rows, (f"{row.label} was measured after the run; a note tells it",)
    raise _unknown(workspace, row)


def noted_rows(workspace: Workspace, row: LogRow) -> tuple[ItemRow, ...]:
    """Return the outcomes of items that a note tells of an event whose run's own are not here; none without one."""
    outcomes = recorded_outcomes(workspace, row, Split.SELECTION)
    if outcomes is None:
        return ()
    types = dict(item_queries.task_types(workspace.index, row.run))
    return tuple(
        ItemRow(item=item, task_type=types.get(item, ""), hard=score.hard, soft=score.soft, failed="")
        for item, score in sorted(outcomes.scored.items())
    )


def _unknown(workspace: Workspace, row: LogRow) -> NotFoundError:
    revision = str(row.address)
    event = item_queries.measured_by(workspace.index, row.run, row.version, row.commit)
    absence = None if event is None else absences(workspace, row.run).get(event)
    if absence is not None:
        reason = absence.sentence(row.label)
        return NotFoundError(
            f"the outcomes of {row.label} on single items are not known here: {reason}",
            hint=absence.remedy(measure(revision)),
        )
    return NotFoundError(f"{row.label} was not measured on single items", hint=measure(revision))


def _tokens(document: bytes) -> int:
    text = document.decode(errors="replace")
    return ceil(len(text.removeprefix(frontmatter(text))) / _CHARACTERS_PER_TOKEN)


def _item_change(
    item: str, before: ItemRow | None, after: ItemRow | None, gauge: Gauge, absences: Mapping[str, str]
) -> ItemChange:
    old, new = _value(before, gauge), _value(after, gauge)
    either = after or before
    kind = either.task_type if either else absences.get(item, "")
    was, is_now = _solved(before), _solved(after)
    change: Change = "pass" if is_now else "fail"
    if item in absences and (before is None or after is None):
        change = "not-measured"
    elif old is None or new is None:
        change = "missing"
    elif new > old:
        change = "fixed" if is_now and not was else "gained"
    elif new < old:
        change = "broken" if was and not is_now else "lost"
    return ItemChange(item=item, task_type=kind, before=old, after=new, change=change)


def _solved(row: ItemRow | None) -> bool:
    return row is not None and row.hard is not None and row.hard >= 1.0


def _value(row: ItemRow | None, gauge: Gauge) -> float | None:
    if row is None or row.hard is None or row.soft is None:
        return None
    return Scored(row.hard, row.soft).value(gauge.metric, gauge.soft_weight)


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
    """Return how much differs between two revisions; :func:`sides` says what is refused."""
    with open_workspace(context) as workspace:
        both = sides(workspace, a, b, paths)
        diffs = [diff for _, diff in matches(workspace, both)]
        changes = _changes(workspace, both.a.row, both.b.row)
        return DiffStat(
            text=store_diff.stat(workspace.repo, both.a.commit, both.b.commit, *both.paths),
            a=both.a.row,
            b=both.b.row,
            rules_added=sum(len(diff.additions) for diff in diffs),
            rules_removed=sum(len(diff.removals) for diff in diffs),
            rules_changed=sum(len(diff.changes) for diff in diffs),
            rules_moved=sum(len(diff.moves) for diff in diffs),
            **{kind: None if changes is None else changes[kind] for kind in _SHIFTS},
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
