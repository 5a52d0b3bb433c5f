"""Which events a log shows, as a condition in SQL.

The condition is on the table of events alone, so that the newest few of a hundred thousand events are found by an
index and only their rows are joined with scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.score import Sign
from skillgit.index.refresh import Index
from skillgit.index.schema import KEY, SCORE, Key

_NEAR = (
    " AND rowid BETWEEN (SELECT MIN(id) FROM event WHERE run = :run) AND (SELECT MAX(id) FROM event WHERE run = :run)"
)
_ITEMS = "(SELECT value FROM json_each(:items))"
MOVES = f"""{SCORE.format("o")} > {SCORE.format("b")} AS rose
    FROM event e
    JOIN run r ON r.name = e.run
    LEFT JOIN version v ON v.run = e.run AND v.version = e.version
    JOIN version w ON w.run = e.run AND w.version = e.base
    JOIN item_outcome o ON o.event = COALESCE(v.measured_by, e.id)
    JOIN item_outcome b ON b.event = w.measured_by AND b.item = o.item
    WHERE {SCORE.format("o")} <> {SCORE.format("b")}"""
"""The end of a query for the items ``o`` of events ``e`` that score higher or lower than under their bases."""
_FLIPS = f"""
    SELECT e.id, e.oid, f.item, f.rose
    FROM flip f
    JOIN event e ON e.id = f.event
    WHERE f.item IN {_ITEMS} AND e.kind <> 'measured'
    UNION
    SELECT e.id, e.oid, f.item, f.rose
    FROM flip f
    JOIN version v ON v.measured_by = f.event AND v.inherited IS NULL
    JOIN event e ON e.id = v.event AND e.kind = 'slow-merged'
    WHERE f.item IN {_ITEMS}
    UNION
    SELECT e.id, e.oid, o.item, {MOVES} AND o.item IN {_ITEMS}"""  # noqa: S608 - names are ours
"""Events that fixed or broke an item: as commit messages list it, and as outcomes tell it where those list nothing."""
_UNTOLD = """
    SELECT e.id
    FROM event e
    JOIN version v ON v.run = e.run AND v.version = e.version
    JOIN version w ON w.run = e.run AND w.version = e.base
    JOIN event o ON o.id = v.measured_by
    JOIN event b ON b.id = w.measured_by
    LEFT JOIN candidate c ON c.event = e.id
    WHERE e.kind IN ('reverted', 'edited') AND c.decision IS NULL AND o.id <> b.id AND 0 IN (o.loaded, b.loaded)"""
"""Versions without a list of what they fixed and broke, whose outcomes or those of their base are not here."""


Number = Literal["score", "step", "epoch"]
"""What of an event can be compared with a number."""
SLOW = (EventKind.SLOW_PROPOSED, EventKind.SLOW_MERGED)
_COLUMNS: dict[Number, str] = {
    "score": "(SELECT l.score FROM log l WHERE l.id = e.id)",
    "step": "e.step",
    "epoch": "e.epoch",
}
_HIGHEST = "(SELECT COALESCE(l.score, l.bound) FROM log l WHERE l.id = e.id)"
"""A score, or the highest that it could have been: what is below a number with the latter is so with the former."""


_WORDS = {
    "text:": ("words",),
    "event:": ("kinds",),
    "item:": ("items",),
    "edit:": ("operation",),
    "skill:": ("skill",),
    "after:": ("since",),
    "before:": ("until",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberComparison:
    """A comparison with a number.

    A score of which only a bound is known passes where it is certain, whatever the score was: with ``<`` and ``<=``
    if the bound passes too, and never with the others.
    """

    number: Number
    sign: Sign
    value: float
    may_be: bool = False  # whether a bound passes wherever the score may

    @property
    def column(self) -> str:
        by_bound = self.number == "score" and (self.may_be or self.sign in {"<", "<="})
        return _HIGHEST if by_bound else _COLUMNS[self.number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which events are meant: those of a list, a log, a page."""

    run: str = ""  # those of this run; empty for all runs
    skill: str = ""  # those of runs that train this skill, by its name or its folder; empty for all skills
    with_rejected: bool = True
    kinds: frozenset[str] = frozenset()  # only these kinds; none for all
    words: str = ""  # only those whose title, reasons or text hold words that begin with each of these
    since: int | None = None  # only those of this time or later, in seconds since 1970
    until: int | None = None
    after: Key | None = None  # only those after this place in the run
    upto: Key | None = None
    items: tuple[str, ...] = ()  # only those that fixed or broke one of these items; none for all
    slow: bool = True
    operation: str = ""  # only those with an edit that does this
    comparisons: tuple[NumberComparison, ...] = ()  # only those whose numbers keep all of these for certain
    is_gathered: bool = False  # whether :func:`skillgit.index.event_pages.gather` has looked for them already

    @property
    def is_filtered(self) -> bool:
        """Whether it asks for more than kinds that can be hidden."""
        return self != replace(self.without_filter(), with_rejected=self.with_rejected, slow=self.slow)

    def without_filter(self) -> Selection:
        return Selection(run=self.run)

    def wider(self) -> Iterator[tuple[str, Selection]]:
        """Yield each of its parts by the word that people type, with the selection without that part."""
        whole = self.without_filter()
        for word, names in _WORDS.items():
            if any(getattr(self, name) != getattr(whole, name) for name in names):
                yield word, replace(self, **{name: getattr(whole, name) for name in names})
        for number in dict.fromkeys(comparison.number for comparison in self.comparisons):
            rest = tuple(comparison for comparison in self.comparisons if comparison.number != number)
            yield number, replace(self, comparisons=rest)

    @property
    def order(self) -> str:
        """The columns to sort by, newest first: all runs by time."""
        columns = KEY if self.run else ("time", "run", *KEY)
        return ", ".join(f"e.{column} DESC" for column in columns)


def condition(selection: Selection) -> tuple[str, dict[str, object]]:
    """Return the condition on an event ``e`` and its parameters."""
    if selection.is_gathered:
        # the run is named once more, for the sake of the index that its events are sorted by
        run = "e.run = :run AND " if selection.run else ""
        return f"{run}e.id IN (SELECT id FROM temp.meant)", {"run": selection.run}  # noqa: S608 - names are ours
    clauses: list[str] = []
    values: dict[str, object] = {}
    for clause, parameters in _clauses(selection):
        clauses.append(clause)
        values |= parameters
    return " AND ".join(clauses) or "TRUE", values


def _clauses(selection: Selection) -> Iterator[tuple[str, dict[str, object]]]:
    if selection.run:
        yield "e.run = :run", {"run": selection.run}
    if selection.skill:
        of_skill = "skill = :skill OR substr(skill, -length(:skill) - 1) = '/' || :skill"
        yield f"e.run IN (SELECT name FROM run WHERE {of_skill})", {"skill": selection.skill}  # noqa: S608 - ours
    if not selection.with_rejected:
        yield "e.kind <> 'rejected'", {}
    if selection.kinds:
        names = {f"kind{position}": kind for position, kind in enumerate(sorted(selection.kinds))}
        yield f"e.kind IN ({', '.join(f':{name}' for name in names)})", dict(names)
    if selection.words.strip():
        query, parameters = hits(selection)
        yield f"e.id IN ({query})", parameters
    if selection.since is not None:
        yield "e.time >= :since", {"since": selection.since}
    if selection.until is not None:
        yield "e.time <= :until", {"until": selection.until}
    for name, sign, key in (("after", ">", selection.after), ("upto", "<=", selection.upto)):
        if key is not None:
            yield _compared(name, sign), {f"{name}{position}": value for position, value in enumerate(key)}
    if selection.items:
        yield f"e.id IN (SELECT id FROM ({_FLIPS}))", {"items": json.dumps(selection.items)}  # noqa: S608 - names are ours
    if not selection.slow:
        yield " AND ".join(f"e.kind <> '{kind}'" for kind in SLOW), {}
    if selection.operation:
        yield "e.id IN (SELECT event FROM edit WHERE op = :operation)", {"operation": selection.operation}
    for index, comparison in enumerate(selection.comparisons):
        yield f"{comparison.column} {comparison.sign} :number{index}", {f"number{index}": comparison.value}


def hits(selection: Selection) -> tuple[str, dict[str, object]]:
    """Return a query, with parameters, for the ids of events with the words, kept to the ids between the run's."""
    near = _NEAR if selection.run else ""
    query = f"SELECT rowid FROM search WHERE search MATCH :words{near}"  # noqa: S608 - names are ours
    return query, {"words": _match(selection.words), **({"run": selection.run} if selection.run else {})}


def commits(index: Index, selection: Selection, *, at_once: int) -> Iterator[str]:
    """Yield the commits of the events of one run, oldest first, ``at_once`` of them held at a time."""
    order = ", ".join(f"e.{column}" for column in KEY)
    after = selection.after
    while True:
        where, values = condition(replace(selection, after=after))
        rows = index.select(
            f"SELECT e.oid, {order} FROM event e WHERE {where} ORDER BY {order} LIMIT :limit",  # noqa: S608 - names are ours
            {**values, "limit": at_once},
        )
        yield from (row[0] for row in rows)
        if len(rows) < at_once:
            return
        after = tuple(rows[-1][1:])


def flips(index: Index, commits: list[str], items: Sequence[str]) -> dict[str, dict[str, bool]]:
    """Return commit to each of ``items`` that its event moved, with whether it fixed it or broke it."""
    oids = set(commits)
    moves: dict[str, dict[str, bool]] = {}
    for _, oid, item, rose in index.select(f"{_FLIPS} ORDER BY 3", {"items": json.dumps(items)}):
        if oid in oids:
            moves.setdefault(oid, {})[item] = bool(rose)
    return moves


def untold(index: Index, selection: Selection) -> tuple[str, ...]:
    """Return the commits of those events of which nothing here says whether they fixed or broke an item."""
    where, values = condition(replace(selection, items=()))
    return index.column(
        f"SELECT e.oid FROM event e WHERE {where} AND e.id IN (SELECT id FROM ({_UNTOLD}))"  # noqa: S608 - ours
        f" ORDER BY {selection.order}",
        values,
    )


def knows_item(index: Index, item: str) -> bool:
    query = "SELECT 1 FROM item_outcome WHERE item = :item UNION SELECT 1 FROM flip WHERE item = :item"
    return bool(index.select(query, {"item": item}))


def item_names(index: Index) -> tuple[str, ...]:
    return index.column("SELECT item FROM item_outcome UNION SELECT item FROM flip ORDER BY item")


def _compared(name: str, sign: str) -> str:
    columns = ", ".join(f"e.{column}" for column in KEY)
    marks = ", ".join(f":{name}{position}" for position in range(len(KEY)))
    return f"({columns}) {sign} ({marks})"


def _match(words: str) -> str:
    """Return an FTS5 query for text with words that begin with each of ``words``, with any characters."""
    return " ".join('"{}"*'.format(word.replace('"', '""')) for word in words.split())
