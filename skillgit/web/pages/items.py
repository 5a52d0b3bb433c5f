"""Items over versions, and trajectories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from skillgit.app.history.requests import ItemOrder, ItemsRequest
from skillgit.domain.trajectory import Turn
from skillgit.errors import NotFoundError
from skillgit.verbs.items import (
    ITEM_SIDES,
    ITEM_TABLE,
    ITEM_TRAJECTORY,
    NEWEST,
    Attempt,
    ItemLine,
    ItemReply,
    ItemTable,
    SidesRequest,
    item_picture,
    item_replies,
    item_words,
)
from skillgit.view.item import CallingTurn, shared, steps, who_solves
from skillgit.view.items import all_asked, asked
from skillgit.web.pages.compare import chosen_items
from skillgit.web.rendering import Answer, Page, Visit, download, page

ROWS = 50  # items of a page
COLUMNS = 12  # versions of a page besides the first and the best one
TURNS = 40  # turns of a trajectory
TEXT = 20_000  # characters of a turn
SEARCHED = 2_000  # items whose questions are searched
_ORDERS: Final = {
    ItemOrder.ITEM: "id",
    ItemOrder.FIRST: "first solved",
    ItemOrder.FLIPS: "flips",
    ItemOrder.SHARE: "share",
}


class Facet(NamedTuple):
    """Some of the items, which an address chooses by the name; a request with ``values`` chooses the same."""

    name: str
    words: str
    group: str
    items: Sequence[ItemLine]
    values: Mapping[str, object] = MappingProxyType({})


class Selection(NamedTuple):
    """The items that an address asks for, in their order, and what else it could ask for."""

    request: ItemsRequest
    table: ItemTable
    facets: Sequence[Facet]
    facet: Facet
    rows: Sequence[ItemLine]
    query: dict[str, str]  # what links to single items carry, so that these know the next one


@page("/run/{run}/items")
def items_page(visit: Visit) -> Answer:
    request, table, facets, facet, lines, query = _selection(visit)
    group_names = dict.fromkeys(entry.group for entry in facets)
    first = max(0, visit.number("page", 1) - 1) * ROWS
    rows = lines[first : first + ROWS]
    names = [column.name for column in table.columns]
    # besides the first and the best version a page has a stretch of the others, the newest unless the address says
    start = max(1, names.index(visit.value("from")) if visit.value("from") in names else len(names) - COLUMNS)
    best = next((index for index, column in enumerate(table.columns) if column.is_best), None)
    indexes = sorted({0, *([] if best is None else [best]), *range(start, min(start + COLUMNS, len(names)))})
    versions = [names[indexes[-1] if best is None else best], "v0"]
    words = item_words(visit.workspace, [f"{table.run}/{name}" for name in versions], [row.item for row in rows])
    return Page(
        "run_items.html",
        "Items",
        ITEM_TABLE.words(request),
        table=table,
        run=table.run,
        facet=facet,
        groups={name: [entry for entry in facets if entry.group == name] for name in group_names},
        here=query,
        selected=lines,
        rows=rows,
        first=first,
        rows_per_page=ROWS,
        columns=[
            (index, table.columns[index], names[base]) for index, base in zip(indexes, (0, *indexes), strict=False)
        ],
        questions=dict(zip(words, all_asked(entry.question for entry in words.values()), strict=True)),
        orders=_ORDERS,
        order=request.order,
        older=names[max(1, start - COLUMNS)] if start > 1 else "",
        newer=names[start + COLUMNS] if start + COLUMNS < len(names) else "",
        start=visit.value("from"),
        shifts={line.item: [*table.shifts(line)] for line in rows},
    )


def _selection(visit: Visit) -> Selection:
    order = visit.value("sort", ItemOrder.ITEM)
    order = order if order in _ORDERS else ItemOrder.ITEM
    request = ItemsRequest(run=visit.parameters["run"], order=ItemOrder(order))
    table = ITEM_TABLE.ask(visit.workspace, request)
    facets = [facet for facet in _facets(table) if facet.items or facet.name == "all"]
    facet = next((facet for facet in facets if facet.name == visit.value("facet")), facets[0])
    rows, text = facet.items, visit.value("q").strip()
    if text:
        best = next((column.name for column in table.columns if column.is_best), "v0")
        revisions = [f"{table.run}/{best}", f"{table.run}/v0"]
        words = item_words(visit.workspace, revisions, [line.item for line in rows[:SEARCHED]])
        texts = ((line, words[line.item].question if line.item in words else "") for line in rows)
        phrase = text.casefold()
        rows = [
            line
            for line, question in texts
            if any(phrase in part.casefold() for part in (line.item, line.task_type, question))
        ]
    query = {"facet": "" if facet.name == "all" else facet.name, "q": text, "sort": "" if order == "item" else order}
    values: Any = {"run": table.run, **facet.values}
    return Selection(replace(request, **values), table, facets, facet, rows, query)


def _facets(table: ItemTable) -> Iterator[Facet]:
    lines = table.rows
    yield Facet("all", "all", "", lines)
    yield Facet("flaky", "flaky", "", [line for line in lines if line.doubts], {"flaky": True})
    yield Facet("never solved", "never solved", "", [line for line in lines if not line.solved], {"never_solved": True})
    always = [line for line in lines if line.measured and line.solved == line.measured]
    yield Facet("always solved", "always solved", "", always)
    partly = "not measured everywhere"
    yield Facet(partly, partly, "", [line for line in lines if None in line.cells])
    for kind in sorted({line.task_type for line in lines if line.task_type}):
        of_kind = [line for line in lines if line.task_type == kind]
        yield Facet(f"type:{kind}", kind, "Task type", of_kind, {"task_type": kind})
    # the items that a version solves and the one before did not, and those the other way round
    for change in ("fixed", "broken"):
        shifted: list[list[ItemLine]] = [[] for _ in table.columns]
        for line in lines:
            for of_version, shift in zip(shifted, table.shifts(line), strict=True):
                if shift == change:
                    of_version.append(line)
        for column, rows in zip(table.columns, shifted, strict=True):
            yield Facet(f"{change}:{column.name}", column.name, f"{change.capitalize()} by", rows)


class Side(NamedTuple):
    """One of two versions at work on an item."""

    attempt: Attempt
    reply: ItemReply
    turns: Sequence[Turn] | None
    hint: str = ""  # why there are none


class Way(NamedTuple):
    """The table that one came from: its items in their order, and what links have to keep of it."""

    words: str
    table: Sequence[str]  # the parts of its address
    items: Sequence[str]
    query: Mapping[str, Any]


def _way(visit: Visit) -> Way:
    if visit.value("rev"):
        choice = chosen_items(visit)
        state = {name: choice["state"].get(name, "") for name in ("items", "sort")}
        items = [row.item for row in choice["rows"]]
        words = f"Comparison of {' and '.join(choice['names'])}: {state['items']}"
        return Way(words, ("compare",), items, {"rev": visit.values("rev"), **state})
    selection = _selection(visit)
    words, items = f"Items: {selection.facet.words}", [line.item for line in selection.rows]
    return Way(words, ("run", selection.table.run, "items"), items, selection.query)


def _failing(visit: Visit, revision: str, items: Sequence[str]) -> set[str]:
    """Return those of ``items`` that a version or a candidate does not solve."""
    replies = item_replies(visit.workspace, [revision], items)
    return {item for item, (reply,) in replies.items() if reply.is_solved is False}


def _found(phrase: str) -> Callable[[str], Markup]:
    """Return what marks ``phrase`` in a text; upper and lower case are one."""
    pattern = re.compile(f"({re.escape(phrase)})", re.IGNORECASE)

    def marked(text: str) -> Markup:
        parts = pattern.split(text) if phrase else [text]
        return Markup("").join(
            Markup("<mark>{}</mark>").format(part) if at % 2 else part for at, part in enumerate(parts)
        )

    return marked


@page("/run/{run}/items/{item:path}")  # a starlette path is decoded, %2F with it
def item_page(visit: Visit) -> Answer:
    run, item = visit.parameters["run"], visit.parameters["item"]
    versions = [visit.value("a"), visit.value("b")]
    request = SidesRequest(run=run, item=item, sides=tuple(filter(None, versions)))
    story = ITEM_SIDES.ask(visit.workspace, request)
    attempts = {attempt.name: attempt for attempt in story.attempts}
    for name in filter(None, versions):
        if name not in attempts:
            hint = f"it has {', '.join([*attempts][:8])}"
            raise NotFoundError(f"run {story.run} has no {name} that was measured", hint=hint)
    # unless the address says, the first version and the newest one
    ends = [attempt.name for attempt in story.attempts if attempt.version is not None and attempt.outcome] or [
        *attempts
    ]
    a, b = (versions[0] or (ends or [*attempts])[0], versions[1] or (ends or [*attempts])[-1])
    way = _way(visit)
    order, failing = way.items, _failing(visit, f"{story.run}/{b}", way.items)
    number = order.index(item) if item in order else None
    before, behind = (order[:number], order[number + 1 :]) if number is not None else ((), order)
    first_solved, share = who_solves(story)
    sides = [_side(visit, story.run, item, attempts[name]) for name in dict.fromkeys((a, b))]
    both = shared([side.turns for side in sides if side.turns]) if len(sides) > 1 and all(s.turns for s in sides) else 0
    phrase = visit.value("find").strip()

    def tree(turns: Sequence[Turn]) -> list[CallingTurn]:
        return [step for step in steps(turns) if phrase.casefold() in step.text.casefold()]

    return Page(
        "run_item.html",
        item,
        ITEM_SIDES.words(request),
        story=story,
        run=story.run,
        strip=story.attempts[-NEWEST:],
        sides=sides,
        common=tree((sides[0].turns or ())[:both]),
        trees=[tree((side.turns or ())[both:]) for side in sides],
        phrase=phrase,
        marked=_found(phrase),
        a=a,
        b=b,
        names=[*attempts],
        first_solved=first_solved,
        share=share,
        here=way.query,
        way=way,
        place=number,
        ways={
            "previous": ("k", "prev", next(reversed(before), "")),
            "next": ("j", "next", next(iter(behind), "")),
            f"previous failure of {b}": ("p", "", next((own for own in reversed(before) if own in failing), "")),
            f"next failure of {b}": ("n", "", next((own for own in behind if own in failing), "")),
        },
        turns_at_most=TURNS,
        text_at_most=TEXT,
        question=asked(story.question),
    )


def _side(visit: Visit, run: str, item: str, attempt: Attempt) -> Side:
    revision = f"{run}/{attempt.name}"
    request = ItemsRequest(item=item, trajectory=revision)
    reply = item_replies(visit.workspace, [revision], [item])[item][0]
    try:
        return Side(attempt, reply, ITEM_TRAJECTORY.ask(visit.workspace, request).turns)
    except NotFoundError as error:
        return Side(attempt, reply, None, error.hint or str(error))


@page("/run/{run}/picture/{digest}")
def picture_page(visit: Visit) -> Answer:
    digest = visit.parameters["digest"]
    picture = item_picture(visit.workspace, visit.parameters["run"], visit.value("item"), digest)
    name = f"{digest[:8]}.{picture.media_type.removeprefix('image/')}"
    return download(name, picture.content, picture.media_type)
