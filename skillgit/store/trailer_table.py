"""Every trailer, derived from the facts of events: which kinds bear it, how often, what its value is, what it says.

Reading and writing of events (``commit_message``), the check for trailers out of place (``run_checks``) and the
reference in ``docs/scripting.md`` use this table. A new trailer is a fact of :class:`skillgit.domain.event.Event`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, get_args, get_origin, get_type_hints

from skillgit.domain.event import CANDIDATES, START, Event, Fact, facts_of
from skillgit.domain.event_kinds import EventKind
from skillgit.store.trailer_values import (
    APPENDIX,
    COST,
    EDIT,
    GATE,
    GAUGE,
    INTEGER,
    MEASUREMENT,
    MODELS,
    NEEDED,
    ORIGIN,
    PATCH,
    PLACEBO,
    SCREENING,
    SERVED,
    SPENT,
    SUMMARY,
    TEXT,
    Record,
    TokenKind,
    ValueForm,
    member,
)

KINDS: Final = tuple(kind for kind in EventKind if kind is not EventKind.EDITED)
"""The kinds of events that have trailers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    key: str  # its key without prefix
    form: ValueForm | TokenKind | Record[Any]
    # the attribute that its value is; empty if the value is written from the whole event and read as a mapping of
    # attributes
    attribute: str = ""
    kinds: frozenset[EventKind]
    meaning: str
    absent: Any  # what its absence says
    needed: frozenset[EventKind] = frozenset()  # the kinds on which it cannot be absent
    many: bool = False  # whether there is one for each element of the attribute
    # whether the events of a run have few different ones, so that it is worth while to keep what was read
    repeats: bool = False

    def said_by_absence(self, kind: EventKind) -> Any:  # noqa: ANN401 - attributes have types of their own
        """Return what its absence means for an event of ``kind``; ``NEEDED`` if it cannot be absent."""
        return NEEDED if kind in self.needed else self.absent


_RECORDS = (EDIT, PATCH, APPENDIX, SUMMARY, GATE, SCREENING, GAUGE, PLACEBO, MODELS, SERVED, COST)
_FORMS: dict[object, ValueForm | TokenKind | Record[Any]] = {
    int: INTEGER,
    str: TEXT,
    **{record.make: record for record in _RECORDS},
}
"""The form of a value, by the type of the fact."""
_REPEATING = (PATCH, MODELS)
_INHERITING = frozenset({EventKind.RUN_STARTED, EventKind.SLOW_MERGED, EventKind.REVERTED})
_SEED = ValueForm("`0`", lambda _: {}, lambda _: "0")
_BARE = {
    "origin": Trailer(
        key="Origin",
        form=ORIGIN,
        kinds=CANDIDATES,
        meaning="Where the candidate comes from, if not from a step's rollouts",
        absent={},
    ),
    "version": Trailer(key="Version", form=_SEED, kinds=START, meaning="The seed skill is version 0", absent={}),
    "base": Trailer(key="Base", form=_SEED, kinds=START, meaning="The seed skill is its own base", absent={}),
}
"""Trailers that are not just a fact, before those of the facts of these names."""


def trailers_of(event_class: type[Event]) -> tuple[Trailer, ...]:
    """Return the trailers of the facts of ``event_class``, in the order in which they are written."""
    name = ValueForm(" ".join(f"`{kind}`" for kind in KINDS), lambda _: {}, attrgetter("kind"))
    every = frozenset(KINDS)
    first = Trailer(key="Event", form=name, kinds=every, meaning="What happened", absent=NEEDED)
    hints, defaults = get_type_hints(event_class), {entry.name: entry.default for entry in fields(event_class)}
    rest = (
        trailer
        for attribute, declared in facts_of(event_class).items()
        if declared.trailer
        for trailer in _of_fact(attribute, declared, hints[attribute], defaults[attribute])
    )
    return (first, *rest)


def _of_fact(attribute: str, declared: Fact, hint: object, default: object) -> Iterator[Trailer]:
    kinds = declared.kinds & frozenset(KINDS)
    if (bare := _BARE.get(attribute)) is not None:
        yield bare
        kinds -= bare.kinds
    many = get_origin(hint) is tuple
    value_type = hint if isinstance(hint, type) and not many else get_args(hint)[0]
    form = member(value_type) if issubclass(value_type, StrEnum) else _FORMS[value_type]
    plain = Trailer(
        key=declared.trailer,
        form=form,
        attribute=attribute,
        kinds=kinds,
        meaning=declared.meaning,
        absent="" if default is MISSING else default,
        needed=declared.needed,
        many=many,
        repeats=form in _REPEATING,
    )
    if attribute == "evaluation":
        yield replace(plain, kinds=kinds - _INHERITING)
        yield replace(plain, kinds=kinds & _INHERITING, form=MEASUREMENT)
        return
    yield plain
    if attribute == "cost":
        meaning = "What one role cost in one stage"
        yield replace(plain, key="Spent", form=SPENT, attribute="cost.parts", meaning=meaning, absent=(), many=True)


TRAILERS: Final = trailers_of(Event)
"""In the order in which they are written, between the format and the evidence."""


def bearers(key: str) -> frozenset[EventKind]:
    return frozenset().union(*(trailer.kinds for trailer in TRAILERS if trailer.key == key))
