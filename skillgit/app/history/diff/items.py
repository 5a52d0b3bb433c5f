"""Two versions item by item: which were fixed, which broken, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, fsum
from typing import Final, Literal

from skillgit.app.history.diff.text import Sides, sides
from skillgit.app.recorded.outcomes import CheckChange, absences, check_changes, check_scores
from skillgit.app.recorded.run_record import item_rows, recorded_outcomes
from skillgit.app.workspace.workspace import Workspace, measure
from skillgit.domain.conditions import Difference
from skillgit.domain.evaluation import Gauge, Metric, Split, solved_count
from skillgit.domain.outcomes import exact, whole
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.statistics import sign_flip_test, sign_test, too_few_items
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.index import item_queries, queries
from skillgit.index.rows import ItemRow, LogRow
from skillgit.lazy import loaded_on_use
from skillgit.store import tree

with loaded_on_use():  # it reads configurations, which takes as long as all else that a diff does
    from skillgit.app.setup import comparable_conditions

Change = Literal["fixed", "broken", "gained", "lost", "not-measured", "missing", "fail", "pass"]
"""What happened to an item: its score rose or fell so that it is solved now or no longer (``fixed``, ``broken``), or
without that (``gained``, ``lost``); a side never measured it because the decision was settled, or has no score for
another reason; or the score stayed, not solved or solved."""

SHIFTS: Final[tuple[Change, ...]] = ("fixed", "broken", "gained", "lost")
_FIELDS: Final[dict[str, Change]] = {
    **{change: change for change in SHIFTS},
    "stable_pass": "pass",
    "stable_fail": "fail",
    "not_measured": "not-measured",
    "missing": "missing",
}
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

    @property
    def solved(self) -> tuple[int, int] | None:
        """How many items both sides solve; None unless both measured all of them and the score is strict."""
        before = solved_count(row.before for row in self.rows)
        after = solved_count(row.after for row in self.rows)
        return None if self.metric != Metric.HARD or before is None or after is None else (before, after)


def items(workspace: Workspace, a: str, b: str | None = None) -> ItemDiff:
    """Compare selection items under ``a`` and ``b``, or ``a`` and what it rests on, by the metric of the newer run."""
    both = sides(workspace, a, b)
    for side in (both.a, both.b):
        if side.row is None:
            commit = side.commit[:12]
            raise RevisionNotFoundError(f"commit {commit} belongs to no run", hint=f"git show {commit}")
    older, newer = both.a.row, both.b.row
    assert older is not None and newer is not None  # noqa: PT018, S101 - looked at above
    gauge = queries.gauge(workspace.index, newer.run)
    (before, note), (after, second_note) = (_outcomes(workspace, row) for row in (older, newer))
    rows = item_changes(before, after, gauge, unmeasured(workspace, older, newer))
    groups = {name: tuple(row.item for row in rows if row.change == change) for name, change in _FIELDS.items()}
    differs = differing(workspace, older, newer)
    better, worse = (
        (None, None) if any(difference.matters for difference in differs) else paired_test(rows, gauge.metric)
    )
    measured_items = sum(len(groups[name]) for name in (*SHIFTS, "stable_pass", "stable_fail"))
    return ItemDiff(
        a=older,
        b=newer,
        differs=differs,
        metric=str(gauge.metric),
        rows=rows,
        **groups,
        p=better,
        p_worse=worse,
        types=tuple(_by_type(rows)),
        checks=check_changes(check_scores(workspace, older), check_scores(workspace, newer)),
        length=length(workspace, both),
        notes=(*_notes(workspace, older, newer, rows), *note, *second_note),
        too_few=too_few_items(measured_items),
    )


def differing(workspace: Workspace, a: LogRow, b: LogRow) -> tuple[Difference, ...]:
    """Return what differs between the measurements of two events besides the text; nothing within a run."""
    if a.run == b.run:
        return ()
    first, second = (comparable_conditions.of_event(workspace, row, Split.SELECTION) for row in (a, b))
    return () if first is None or second is None else comparable_conditions.differences(first, second)


def unmeasured(workspace: Workspace, *rows: LogRow) -> dict[str, str]:
    """Return item to task type where a run's decision was settled early: without an outcome, it was not measured."""
    runs = {row.run for row in rows if row.bound}
    return {item: kind for run in runs for item, kind in item_queries.task_types(workspace.index, run)}


def item_changes(
    before: Sequence[ItemRow], after: Sequence[ItemRow], gauge: Gauge, settled_types: Mapping[str, str] | None = None
) -> tuple[ItemChange, ...]:
    """Compare two versions item by item; ``settled_types``, by item, were left out as the decision was settled."""
    older, newer = ({row.item: row for row in rows} for rows in (before, after))
    settled_types = settled_types or {}

    def of_item(item: str) -> ItemChange:
        sides = older.get(item), newer.get(item)
        old, new = (
            None if row is None or row.hard is None or row.soft is None else gauge.of(row.hard, row.soft)
            for row in sides
        )
        was_solved, is_solved = (row is not None and row.hard is not None and row.hard >= 1.0 for row in sides)
        change: Change = "pass" if is_solved else "fail"
        if item in settled_types and None in sides:
            change = "not-measured"
        elif old is None or new is None:
            change = "missing"
        elif new > old:
            change = "fixed" if is_solved and not was_solved else "gained"
        elif new < old:
            change = "broken" if was_solved and not is_solved else "lost"
        either = sides[1] or sides[0]
        kind = either.task_type if either else settled_types.get(item, "")
        return ItemChange(item=item, task_type=kind, before=old, after=new, change=change)

    return tuple(map(of_item, sorted({*older, *newer, *settled_types})))


def paired_test(rows: Sequence[ItemChange], metric: Metric) -> tuple[float, float]:
    """Return the one-sided p-values that the newer version is better, and that it is worse, as the gate tests it."""
    gains = [exact(row.after) - exact(row.before) for row in rows if row.before is not None and row.after is not None]
    if metric is Metric.HARD:
        fixes, breaks = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        return sign_test(fixes, breaks), sign_test(breaks, fixes)
    return sign_flip_test(whole(gains)), sign_flip_test(whole([-gain for gain in gains]))


def _by_type(rows: Sequence[ItemChange]) -> Iterator[TypeChange]:
    for kind in sorted({row.task_type for row in rows}):
        own = [row for row in rows if row.task_type == kind]
        before, after = (
            [getattr(row, side) for row in own if None not in {row.before, row.after}] for side in ("before", "after")
        )
        changes = Counter(row.change for row in own)
        if n := len(before):
            flips = {change: changes[change] for change in SHIFTS}
            yield TypeChange(task_type=kind, n=n, before=fsum(before) / n, after=fsum(after) / n, **flips)


def length(workspace: Workspace, both: Sides) -> Length:
    def tokens(commit: str, skill: str) -> int | None:
        path = f"{skill}/{DOCUMENT}" if skill else DOCUMENT
        document = tree.read_file(workspace.repo, workspace.repo.commit(commit).tree, path)
        text = None if document is None else document.decode(errors="replace")
        return None if text is None else ceil(len(text.removeprefix(frontmatter(text))) / _CHARACTERS_PER_TOKEN)

    return Length(before=tokens(both.a.commit, both.skills[0]), after=tokens(both.b.commit, both.skills[1]))


def _notes(workspace: Workspace, a: LogRow, b: LogRow, rows: Sequence[ItemChange]) -> Iterator[str]:
    """Yield what keeps the scores of two events from being compared like for like."""
    if a.run == b.run:
        return
    first, second = (queries.run_row(workspace.index, row.run, {}) for row in (a, b))
    if first and second and first.metric != second.metric:
        yield f"{a.run} compares {first.metric} scores and {b.run} {second.metric} ones; items by the latter"
    if not any(row.before is not None and row.after is not None for row in rows):
        yield "the two runs have no item in common"


def _outcomes(workspace: Workspace, row: LogRow) -> tuple[tuple[ItemRow, ...], tuple[str, ...]]:
    """Return the outcomes of ``row``, and a sentence where they are not those of its run."""
    if outcomes := item_rows(workspace, row):
        return outcomes, ()
    if outcomes := noted_rows(workspace, row):
        return outcomes, (f"{row.label} was measured after the run; a note tells it",)
    again = measure(str(row.address))
    event = item_queries.measured_by(workspace.index, row.run, row.version, row.commit)
    absence = None if event is None else absences(workspace, row.run).get(event)
    if absence is None:
        raise NotFoundError(f"{row.label} was not measured on single items", hint=again)
    raise NotFoundError(
        f"the outcomes of {row.label} on single items are not known here: {absence.sentence(row.label)}",
        hint=absence.remedy(again),
    )


def noted_rows(workspace: Workspace, row: LogRow) -> tuple[ItemRow, ...]:
    """Return the outcomes of items that a note has of an event whose run's own are not here; none without one."""
    outcomes = recorded_outcomes(workspace, row, Split.SELECTION)
    types = {} if outcomes is None else dict(item_queries.task_types(workspace.index, row.run))
    return tuple(
        ItemRow(item=item, task_type=types.get(item, ""), hard=score.hard, soft=score.soft, failed="")
        for item, score in sorted(outcomes.scored.items() if outcomes is not None else ())
    )
