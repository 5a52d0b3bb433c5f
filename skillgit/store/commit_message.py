"""An event as a commit message, and back: ``decode(encode(event)) == event`` for every kind of event."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from skillgit.domain.address import version_label
from skillgit.domain.event import Edited, Event, SlowProposed
from skillgit.domain.event_keys import OrderKey, event_order
from skillgit.domain.untrusted.model_text import storable, verbatim
from skillgit.errors import DataError, InvariantError, TrailerError
from skillgit.store import commit_prose
from skillgit.store.trailer_table import KINDS, TRAILERS, bearers
from skillgit.store.trailer_values import NEEDED, Record, read_cost
from skillgit.store.trailers import PREFIX, TrailerBlock, format_block, parse_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from skillgit.store.commit_prose import Body

_TREE = re.compile(r"[0-9a-f]{40}")
_COSTS = ("Cost", "Spent")
_FEW = 1 << 10
"""Values that are kept of those that events repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowText:
    guidance: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    event: Event
    evidence: str


def encode(event: Event, evidence: str) -> str:
    """Return the commit message of ``event``, whose evidence is the tree ``evidence``."""
    parts = (commit_prose.subject(event), commit_prose.body(event), format_block(_trailers(event, evidence)))
    text = "\n\n".join(filter(None, parts)) + "\n"
    # A model's JSON may hold half of a surrogate pair, which no commit can.
    return storable(text)


def _trailers(event: Event, evidence: str) -> Iterator[tuple[str, str]]:
    if isinstance(event, Edited):
        raise InvariantError(
            f"{version_label(event.version)} is an edit, which only its author can commit", hint="git commit"
        )
    for trailer, absent in _WRITTEN[type(event)]:
        value: Any = attrgetter(trailer.attribute)(event) if trailer.attribute else event
        if trailer.many:
            yield from ((trailer.key, trailer.form.write(part)) for part in value)
        elif value != absent:
            yield trailer.key, trailer.form.write(value)
    yield "Evidence", evidence


def decode(text: str, slow: SlowText | None = None) -> Decoded:
    """Return what the commit message ``text`` says; a TrailerError if it is not that of an event."""

    def given(skill: str) -> SlowText:
        if slow is None:
            raise TrailerError(
                f"the slow update of {skill} was read without the texts of its tree", hint="skillgit fsck"
            )
        return slow

    return decode_with(text, given)


def decode_with(text: str, read_slow: Callable[[str], SlowText]) -> Decoded:
    """Like :func:`decode`; ``read_slow`` reads the texts of a slow update from the commit's tree by skill path."""
    block = parse_block(text)
    try:
        event = _event(block, commit_prose.read_body(text), read_slow)
    except DataError as error:
        raise TrailerError(f"the commit's trailers cannot be read: {error}", hint="skillgit fsck") from error
    evidence = block.one("Evidence")
    if evidence and _TREE.fullmatch(evidence) is None:
        raise TrailerError(f"'{evidence}' is not the id of an evidence tree", hint="skillgit fsck")
    return Decoded(event=event, evidence=evidence)


def _event(block: TrailerBlock, body: Body, read_slow: Callable[[str], SlowText]) -> Event:
    name = block.one("Event")
    kind = KINDS.get(name)
    if kind is None:
        raise TrailerError(f"there is no event '{name}'", hint="install a newer skillgit")
    values = {part: getattr(body, part) for part in _BODY[kind]}
    for trailer in _PLANS[kind]:
        if trailer.many:
            values[trailer.attribute] = tuple(map(trailer.read, block.all(trailer.key)))
            continue
        text = block.one(trailer.key)
        value = trailer.absent
        if text:
            try:
                value = trailer.read(text)
            except (ValueError, KeyError):
                sentence = f"{PREFIX}{trailer.key} is {text!r}, not {trailer.name}"
                raise TrailerError(sentence, hint="skillgit fsck") from None
        elif value is NEEDED:
            raise TrailerError(f"the commit has no trailer {PREFIX}{trailer.key}", hint="skillgit fsck")
        if trailer.attribute:
            values[trailer.attribute] = value
        else:
            values.update(value)
    if kind in _PAID:
        values["cost"] = read_cost(block.one("Cost"), block.all("Spent"))
    if kind is SlowProposed:
        slow = read_slow(values["skill"])
        values |= {"guidance": verbatim(slow.guidance), "memory": slow.memory}
    return kind(**values)


class _Reading(NamedTuple):
    """How a trailer of events of one kind is read; see ``trailer_table``."""

    key: str
    name: str
    attribute: str
    read: Callable[[str], Any]
    absent: Any
    many: bool


def _plan(kind: type[Event]) -> list[_Reading]:
    """Return how the trailers of ``kind`` are read, except for its cost, which is read together with its parts."""
    return [
        _Reading(
            trailer.key,
            "a value" if isinstance(trailer.form, Record) else trailer.form.name,
            trailer.attribute,
            lru_cache(_FEW)(trailer.form.read) if trailer.repeats else trailer.form.read,
            trailer.said_by_absence(kind),
            trailer.many,
        )
        for trailer in TRAILERS
        if kind in trailer.kinds and trailer.key not in _COSTS
    ]


_WRITTEN = {
    kind: [(trailer, trailer.said_by_absence(kind)) for trailer in TRAILERS if kind in trailer.kinds]
    for kind in KINDS.values()
}
_PLANS = {kind: _plan(kind) for kind in KINDS.values()}
_PAID = bearers("Cost")
_BODY = {
    kind: [part.name for part in fields(commit_prose.Body) if part.name in {own.name for own in fields(kind)}]
    for kind in KINDS.values()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    event: Event
    commit: str  # the commit's id, 40 hexadecimal characters
    parents: tuple[str, ...]
    time: datetime  # when it was committed, in UTC
    evidence: str  # id of the evidence tree; empty if the event has none
    tree: str
    branch: str  # full name of the branch that it belongs to in the repository of its writer
    at: int  # the version that the run is at with it

    @property
    def order(self) -> OrderKey:
        return event_order(self.event, self.at)
