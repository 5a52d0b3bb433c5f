"""Versions or runs next to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from skillgit.app.history.requests import ItemsRequest
from skillgit.domain.address import version_label
from skillgit.domain.text_diff import DiffAllowance, DiffExcerpt
from skillgit.errors import NotFoundError, UsageError
from skillgit.index.rows import RunRow
from skillgit.verbs.cost import COST, CostRequest
from skillgit.verbs.diff import ITEM_DIFF, RULE_DIFF, TEXT_DIFF, DiffRequest, ItemDiff, RulesDiffed
from skillgit.verbs.items import ITEM_TABLE, item_replies, question_of
from skillgit.verbs.runs import RUNS, RunsRequest
from skillgit.view.items import (
    FACETS,
    OutputRow,
    all_asked,
    asked,
    chance_words,
    output_table,
    outputs,
    solved,
    unchanged,
)
from skillgit.view.rules import CHANGES as RULE_CHANGES
from skillgit.view.surface import Screen
from skillgit.view.table import Cell
from skillgit.web.pages.version import LAYOUTS, costs_by
from skillgit.web.rendering import Answer, Page, Visit, download, page

MOST: Final = 4  # sides of a comparison
LISTED: Final = 100  # items of a page
RULES: Final = 60
OPTIONAL: Final = {"task_type": "type", "question": "question", "change": "change"}  # columns, with their headings
SPENDING: Final = costs_by("run")


class Pair(NamedTuple):
    """The first side of a comparison and another one."""

    a: str
    b: str
    items: ItemDiff | None  # absent where a side has no outcomes here
    counts: tuple[str, str]  # solved items of both sides, where these are all measured
    sums: str  # of the items that did not change, or why they are absent
    text: DiffExcerpt
    rules: RulesDiffed


@page("/compare")
def compare_page(visit: Visit) -> Answer:
    choice = chosen_items(visit)
    runs, names, own_runs = choice["sides"]
    pairs = [*_pairs(visit, names)] if len(names) > 1 else []
    first = visit.number("from")
    rows = _asking(visit, choice, slice(first, first + LISTED))
    asked_for = [rev for rev in visit.values("rev") if rev.strip()]
    return Page(
        "compare.html",
        " and ".join((", ".join(names[:-1]), names[-1])) if pairs else "Compare",
        ITEM_DIFF.words(DiffRequest(a=names[0], b=names[1], items=True)) if pairs else (),
        names=names,
        runs=runs,
        own_runs=own_runs,
        most=MOST,
        pairs=pairs,
        same=names[0] if len(names) == 1 and len(asked_for) > 1 else "",
        is_text_only=all(pair.items and not pair.items.differs for pair in pairs),
        chosen=choice,
        rows=[
            replace(row, question=question)
            for row, question in zip(rows, all_asked(row.question for row in rows), strict=True)
        ],
        first=first,
        spending=[
            (Cell(run, link=("run", run, "cost")), COST.ask(visit.workspace, CostRequest(run=run)).total)
            for run in own_runs
        ],
        SPENDING=SPENDING,
        layout=visit.value("view") if visit.value("view") in LAYOUTS else LAYOUTS[0],
        layouts=LAYOUTS,
        listed=LISTED,
        rules_listed=RULES,
        RULE_CHANGES=RULE_CHANGES,
        OPTIONAL=OPTIONAL,
    )


@page("/compare/items.csv")
def compared_items(visit: Visit) -> Answer:
    """Return the items of a comparison that its page shows, with all columns."""
    choice = chosen_items(visit)
    _, names, _ = choice["sides"]
    for name in names[1:] if not choice["counts"] else ():
        ITEM_DIFF.ask(visit.workspace, DiffRequest(a=names[0], b=name))  # which says why there are none
    rows = [replace(row, question=asked(row.question)) for row in _asking(visit, choice, slice(None))]
    return download("items.csv", output_table(choice["names"]).csv(rows).encode(), "text/csv; charset=utf-8")


def _sides(visit: Visit) -> tuple[Mapping[str, RunRow], tuple[str, ...], list[str]]:
    """Return the runs by name, the versions that an address names, and the runs of these."""
    rows = {row.name: row for row in RUNS.ask(visit.workspace, RunsRequest()).rows}
    best = {name: f"{name}/{version_label(row.best_version)}" for name, row in rows.items()}  # what a run means
    names = tuple(dict.fromkeys(best.get(rev.strip(), rev.strip()) for rev in visit.values("rev") if rev.strip()))
    if len(names) > MOST:
        raise UsageError(f"{len(names)} versions are too many to compare", hint=f"name 2 to {MOST}")
    return rows, names, [run for run in dict.fromkeys(name.rpartition("/")[0] for name in names) if run in rows]


def _pairs(visit: Visit, names: Sequence[str]) -> Iterator[Pair]:
    room = DiffAllowance()
    for name in names[1:]:
        request = DiffRequest(a=names[0], b=name, lines=3)
        diff, missing = _item_diff(visit, names[0], name)
        text = room.take(TEXT_DIFF.ask(visit.workspace, request).files)
        sums = Screen().dotted((*unchanged(diff, Screen()), chance_words(diff))) if diff else missing
        counts = solved(diff) if diff else ("", "")
        yield Pair(names[0], name, diff, counts, sums, text, RULE_DIFF.ask(visit.workspace, request))


def _item_diff(visit: Visit, a: str, b: str) -> tuple[ItemDiff | None, str]:
    """Return how two versions differ item by item, or None and why that is not known."""

    def read() -> tuple[ItemDiff | None, str]:
        try:
            return ITEM_DIFF.ask(visit.workspace, DiffRequest(a=a, b=b, lines=3)), ""
        except NotFoundError as error:
            return None, f"{error}; {error.hint}" if error.hint else str(error)

    return visit.workspace.once(("item diff", a, b), read)  # for the pairs of the page and for the table of items


def _measured(visit: Visit, names: Sequence[str]) -> tuple[tuple[str, ...], list[ItemDiff]]:
    """Return those of ``names`` whose outcomes are here, and how the first of these differs from each of the others."""
    for number, base in enumerate(names):
        diffs = {name: diff for name in names[number + 1 :] if (diff := _item_diff(visit, base, name)[0])}
        if diffs:
            return (base, *diffs), [*diffs.values()]
    return (), []


def chosen_items(visit: Visit) -> dict[str, Any]:
    """Return the items of a comparison that an address chooses, in their order, with what the page says of them.

    ``sides`` are the runs by name, the versions that are compared, and the runs of these. ``names`` are the versions
    with outcomes, ``counts`` says how many items each group has, and ``state`` is what links have to keep.
    """
    sides = _sides(visit)
    _, every_name, runs = sides
    names, diffs = _measured(visit, every_name)
    items = list(dict.fromkeys(row.item for diff in diffs for row in diff.rows))
    if not items:
        nothing = {"names": (), "rows": (), "replies": {}, "counts": {}, "state": {"view": visit.value("view")}}
        return {"sides": sides, **nothing}
    flaky = {
        line.item for run in runs for line in ITEM_TABLE.ask(visit.workspace, ItemsRequest(run=run, flaky=True)).rows
    }
    replies = item_replies(visit.workspace, names, items)
    every = [*outputs([diff.rows for diff in diffs], replies, flaky)]
    groups = {name: [row for row in every if fits(row)] for name, fits in FACETS.items()}
    facet = visit.value("items")
    facet = facet if facet in groups else "different" if groups["different"] else "all"
    heads, sort = visit.values("column"), visit.value("sort")
    hidden = OPTIONAL.keys() - heads if heads else ()
    way = {"rev": every_name, "items": facet, "sort": sort}
    table = output_table(names, lambda row, number: _leading(names, way, row, number))
    table = replace(
        table, columns=tuple(column for column in table.columns if column.name.rpartition(" ")[2] not in hidden)
    )
    state = {"items": facet, "sort": sort, "column": heads, "view": visit.value("view")}
    counts = {name: len(rows) for name, rows in groups.items() if rows}
    rows = table.chosen(groups[facet], sort=sort)
    choice = {"names": names, "table": table, "rows": rows, "replies": replies, "counts": counts, "state": state}
    return {"sides": sides, **choice}


def _leading(names: Sequence[str], way: Mapping[str, Any], row: OutputRow, number: int) -> Cell:
    """Return a cell that leads to the item under a version, next to the first one, and knows the ``way`` back."""
    run, _, version = names[number].rpartition("/")
    base = names[1 if number == 0 else 0].rpartition("/")
    sides = (base[2] if base[0] == run else version, version)
    a, b = sides if number else sides[::-1]
    return Cell("", link=("run", run, "items", row.item) if run else (), query={"a": a, "b": b, **way})


def _asking(visit: Visit, choice: Mapping[str, Any], part: slice) -> list[OutputRow]:
    """Return a part of the chosen rows with the prompts, for which a file of the evidence is read each."""
    replies = choice["replies"]
    return [replace(row, question=question_of(visit.workspace, replies[row.item])) for row in choice["rows"][part]]
