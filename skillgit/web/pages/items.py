"""Items over versions, and trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillgit.app.history.item import (
    Attempt,
    ItemStory,
    ItemTrajectory,
    item_picture,
    item_story,
    item_trajectory,
    item_words,
)
from skillgit.app.history.items import ItemColumn, ItemLine, ItemOrder, ItemsRequest, ItemTable, items
from skillgit.errors import NotFoundError
from skillgit.view.item import asked, who_solves
from skillgit.web.rendering import Download, Page, PageRoute, Visit

ROWS = 50  # items of a page
COLUMNS = 12  # versions of a page besides the first and the best one
ATTEMPTS = 60  # versions and candidates in the strip of an item
TURNS = 40  # turns of a trajectory
TEXT = 20_000  # characters of a turn
SEARCHED = 2_000  # items whose questions are searched

_GROUPS = ("", "Task type", "Fixed by", "Broken by")
_ORDERS = {ItemOrder.ITEM: "id", ItemOrder.FIRST: "first solved", ItemOrder.FLIPS: "flips", ItemOrder.SHARE: "share"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """Some of the items, as a link with their number."""

    name: str
    words: str
    count: int
    group: str = ""
    options: tuple[str, ...] = ()  # of ``skillgit items``, which choose the same


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSelection:
    """The items that an address asks for, in their order, and what else it could ask for."""

    table: ItemTable
    facets: tuple[Facet, ...]
    facet: Facet
    rows: tuple[ItemLine, ...]
    query: Mapping[str, str]  # what links to single items carry, so that these know the next one


def items_page(visit: Visit) -> Page:
    selection = _selection(visit)
    table = selection.table
    first = max(0, visit.number("page", 1) - 1) * ROWS
    rows = selection.rows[first : first + ROWS]
    start, indexes = _window(table.columns, visit.value("from"))
    names = [table.columns[index].name for index in indexes]
    best = next((column.name for column in table.columns if column.is_best), names[-1])
    words = item_words(visit.context, [f"{table.run}/{best}", f"{table.run}/v0"], [row.item for row in rows])
    order = visit.value("sort", ItemOrder.ITEM)
    command = ("items", table.run, *selection.facet.options, *([] if order == "item" else ["--sort", order]))
    values = {
        "table": table,
        "selection": selection,
        "rows": rows,
        "first": first,
        "rows_per_page": ROWS,
        "columns": [
            (index, table.columns[index], indexes[position - 1] if position else None)
            for position, index in enumerate(indexes)
        ],
        "questions": {item: asked(entry.question) for item, entry in words.items()},
        "best": best,
        "groups": {group: [facet for facet in selection.facets if facet.group == group] for group in _GROUPS},
        "orders": _ORDERS,
        "order": order,
        "older": table.columns[max(1, start - COLUMNS)].name if start > 1 else "",
        "newer": table.columns[start + COLUMNS].name if start + COLUMNS < len(table.columns) else "",
        "start": visit.value("from"),
        "broken": _broken,
    }
    return Page(template="run_items.html", title="Items", command=command, values=values)


def _selection(visit: Visit) -> ItemSelection:
    run, order = visit.parameters["run"], visit.value("sort", ItemOrder.ITEM)
    order = order if order in _ORDERS else ItemOrder.ITEM
    table = items(visit.context, run, ItemsRequest(order=ItemOrder(order)))
    facets, members = _facets(table)
    by_name = {facet.name: facet for facet in facets}
    facet = by_name.get(visit.value("facet", "all"), facets[0])
    rows, text = members[facet.name], visit.value("q").strip()
    if text:
        rows = _matching(visit, table, rows, text.casefold())
    query = {"facet": "" if facet.name == "all" else facet.name, "q": text, "sort": "" if order == "item" else order}
    return ItemSelection(
        table=table,
        facets=tuple(facets),
        facet=facet,
        rows=tuple(rows),
        query=query,
    )


def _facets(table: ItemTable) -> tuple[list[Facet], dict[str, list[ItemLine]]]:
    """Return all facets that have items, and the items of each."""
    lines = table.rows
    plain: dict[str, tuple[str, list[ItemLine]]] = {
        "all": ("", [*lines]),
        "flaky": ("--flaky", [line for line in lines if line.doubts]),
        "never solved": ("--never-solved", [line for line in lines if not line.solved]),
        "always solved": ("", [line for line in lines if line.measured and line.solved == line.measured]),
        "not measured everywhere": ("", [line for line in lines if None in line.cells]),
    }
    facets = [
        Facet(name=name, words=name, count=len(rows), options=(option,) if option else ())
        for name, (option, rows) in plain.items()
    ]
    members = {name: rows for name, (_, rows) in plain.items()}
    for kind in sorted({line.task_type for line in lines if line.task_type}):
        members[f"type:{kind}"] = [line for line in lines if line.task_type == kind]
        count = len(members[f"type:{kind}"])
        facets.append(Facet(name=f"type:{kind}", words=kind, count=count, group="Task type", options=("--type", kind)))
    for (change, name), rows in sorted(
        _shifts(table).items(), key=lambda entry: (entry[0][0] == "broken", int(entry[0][1][1:]))
    ):
        members[f"{change}:{name}"] = rows
        facets.append(Facet(name=f"{change}:{name}", words=name, count=len(rows), group=f"{change.capitalize()} by"))
    return [facet for facet in facets if facet.count or facet.name == "all"], members


def _shifts(table: ItemTable) -> dict[tuple[str, str], list[ItemLine]]:
    """Return the items that a version solves and the one before did not, and those the other way round."""
    shifts: dict[tuple[str, str], list[ItemLine]] = {}
    for line in table.rows:
        past: bool | None = None
        for column, cell in zip(table.columns, line.cells, strict=True):
            is_solved = cell.solved if cell is not None else None
            if is_solved is None:
                past = None if column.absence else past
                continue
            if past is not None and is_solved != past:
                shifts.setdefault(("fixed" if is_solved else "broken", column.name), []).append(line)
            past = is_solved
    return shifts


def _broken(line: ItemLine, index: int) -> bool:
    """Say whether the version in column ``index`` does not solve an item that the last one before it did."""
    cell = line.cells[index]
    past = next(
        (cell.solved for cell in reversed(line.cells[:index]) if cell is not None and cell.solved is not None), None
    )
    return cell is not None and cell.solved is False and past is True


def _matching(visit: Visit, table: ItemTable, rows: Sequence[ItemLine], text: str) -> list[ItemLine]:
    names = [line.item for line in rows[:SEARCHED]]
    best = next((column.name for column in table.columns if column.is_best), "v0")
    words = item_words(visit.context, [f"{table.run}/{best}", f"{table.run}/v0"], names)
    return [
        line
        for line in rows
        if text in line.item.casefold()
        or text in line.task_type.casefold()
        or (line.item in words and text in words[line.item].question.casefold())
    ]


def _window(columns: Sequence[ItemColumn], start: str) -> tuple[int, list[int]]:
    """Return the first column of a page behind the first version, and all its columns: first, best and a stretch."""
    names = [column.name for column in columns]
    at = names.index(start) if start in names else max(1, len(columns) - COLUMNS)
    at = max(1, at)
    always = {0, *(index for index, column in enumerate(columns) if column.is_best)}
    return at, sorted({*always, *range(at, min(at + COLUMNS, len(columns)))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two versions at work on an item."""

    attempt: Attempt
    trajectory: ItemTrajectory | None
    hint: str = ""  # why there is no trajectory
    checks: tuple[tuple[str, float], ...] = ()


def item_page(visit: Visit) -> Page:
    run, item = visit.parameters["run"], visit.parameters["item"]
    sides = [name for name in (visit.value("a"), visit.value("b")) if name]
    story = item_story(visit.context, run, item, limit=ATTEMPTS, sides=sides)
    names = [attempt.name for attempt in story.attempts]
    a, b = _pair(story, visit.value("a"), visit.value("b"))
    selection = _selection(visit)
    order = [line.item for line in selection.rows]
    at = order.index(item) if item in order else None
    first, share = who_solves(story)
    values = {
        "story": story,
        "strip": story.attempts[-ATTEMPTS:],
        "sides": [_side(visit, story, name) for name in dict.fromkeys((a, b))],
        "a": a,
        "b": b,
        "names": names,
        "first_solved": first,
        "share": share,
        "selection": selection,
        "place": at,
        "previous": order[at - 1] if at else "",
        "following": order[at + 1] if at is not None and at + 1 < len(order) else "",
        "turns_at_most": TURNS,
        "text_at_most": TEXT,
        "question": asked(story.question),
    }
    return Page(template="run_item.html", title=item, command=("items", run, "--item", item), values=values)


def _pair(story: ItemStory, a: str, b: str) -> tuple[str, str]:
    """Return the two attempts that an address names; without them the first version and the newest one."""
    names = [attempt.name for attempt in story.attempts]
    versions = [attempt.name for attempt in story.attempts if attempt.version is not None and attempt.outcome]
    for name in filter(None, (a, b)):
        if name not in names:
            raise NotFoundError(
                f"run {story.run} has no {name} that was measured", hint=f"it has {', '.join(names[:8])}"
            )
    ends = (versions or names)[0], (versions or names)[-1]
    return a or ends[0], b or ends[1]


def _side(visit: Visit, story: ItemStory, name: str) -> Side:
    attempt = next(attempt for attempt in story.attempts if attempt.name == name)
    revision = f"{story.run}/{name}"
    checks = item_words(visit.context, [revision], [story.item])[story.item].replies[0].checks
    try:
        trajectory = item_trajectory(visit.context, story.item, revision)
    except NotFoundError as error:
        return Side(attempt=attempt, trajectory=None, hint=error.hint or str(error), checks=checks)
    return Side(attempt=attempt, trajectory=trajectory, checks=checks)


def picture_page(visit: Visit) -> Download:
    digest = visit.parameters["digest"]
    picture = item_picture(visit.context, visit.parameters["run"], visit.value("item"), digest)
    name = f"{digest[:8]}.{picture.media_type.removeprefix('image/')}"
    return Download(name=name, content=picture.content, media_type=picture.media_type)


ROUTES = (
    PageRoute(path="/run/{run}/picture/{digest}", page=picture_page),
    PageRoute(path="/run/{run}/items", page=items_page),
    PageRoute(path="/run/{run}/items/{item:path}", page=item_page),  # a starlette path is decoded, %2F with it
)
