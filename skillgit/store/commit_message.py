"""An event as a commit message, and back: ``decode(encode(event)) == event`` for every kind of event.

::

    skill: answer in the unit the question asks for (v7, +0.0250)

    Six of forty rollouts lost points on unit mismatch.

      + Verify units: answer in the unit the question asks for, and say it
      - Verify units: always answer in metres

    fixed: q17, q22, q31
    broken: q03

Above the trailers are the subject and the body. Titles, reasons and changes are text of models. It is indented where it
looks like a trailer, a divider, a comment or a line of this format, so that neither git nor skillgit mistakes it for
one.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypedDict

from skillgit.domain.address import Address, version_label
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    Gated,
    Inherited,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowProposed,
    event_address,
    event_origin,
)
from skillgit.domain.event_keys import OrderKey, event_order
from skillgit.domain.event_kinds import TRAITS, AddressKind
from skillgit.domain.proposal import Change, Origin
from skillgit.domain.untrusted.model_text import clean_paragraphs, storable, verbatim
from skillgit.errors import DataError, InvariantError, TrailerError
from skillgit.store.trailer_table import KINDS, TRAILERS, bearers
from skillgit.store.trailer_values import NEEDED, Record, read_cost
from skillgit.store.trailers import PREFIX, TrailerBlock, format_block, parse_block

_WIDTH = 72
_RISKY = re.compile(r"skillgit-|---|#|fixed:|broken:", re.IGNORECASE)
_SUBJECT = re.compile(r"[a-z-]+: (?:(?P<title>.*) )?\([^()]*\)")
_SIGNS = ("  +", "  -")
"""What a changed line begins with."""
_FLIPS = ("fixed: ", "broken: ")
_CHANGE = re.compile(r"^  ([+-])(?: (.*))?$", re.MULTILINE)
_UNSAFE_IN_ID = re.compile(r"[%\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
_ENCODED = re.compile(r"%([0-9a-f]{2,6});")


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    title: str = ""
    why: str = ""
    changes: tuple[Change, ...] = ()
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def subject(event: Event) -> str:
    return " ".join(filter(None, (f"{_prefix(event)}:", event.title, f"({_note(event)})")))


def _prefix(event: Event) -> str:
    origin = event_origin(event)
    return TRAITS[event.kind].prefix if isinstance(event, Skipped) or origin is Origin.STEP else origin.value


def _note(event: Event) -> str:
    label = event_address(event).label
    match event:
        case RunStarted():
            return label + (
                "" if isinstance(event.evaluation, Inherited) else f", {event.gauge.score(event.evaluation):.4f}"
            )
        case Reverted():
            return f"{label}, as {Address(AddressKind.VERSION, event.target)}{_gain(event)}"
        case Measured():
            version = Address(AddressKind.VERSION, event.version)
            return f"{version}, {event.evaluation.score(event.verdict.metric, event.verdict.soft_weight):.4f}"
        case RunFinished():
            return event.outcome.value
        case _:
            return label + (_gain(event) if isinstance(event, Gated) else "")


def _gain(event: Gated) -> str:
    verdict, evaluation = event.verdict, event.evaluation
    if verdict is None:
        return ""
    bound = "at most " if isinstance(evaluation, EvaluationSummary) and evaluation.stopped else ""
    return f", {bound}{verdict.score - verdict.current:+.4f}"


def body(event: Event) -> str:
    """Return the paragraphs between subject and trailers; empty if there are none."""
    paragraphs = [_wrapped(paragraph) for paragraph in event.why.split("\n\n") if paragraph]
    if isinstance(event, Accepted | Rejected) and event.changes:
        paragraphs.append("\n".join(f"  {change.sign} {change.text}".rstrip(" ") for change in event.changes))
    if isinstance(event, Accepted | Rejected | SlowProposed | Reverted | Measured):
        flips = [_flips(name, items) for name, items in (("fixed", event.fixed), ("broken", event.broken)) if items]
        if flips:
            paragraphs.append("\n".join(flips))
    return "\n\n".join(paragraphs)


def _wrapped(paragraph: str) -> str:
    lines = textwrap.wrap(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"    {line}" if _RISKY.match(line) else line for line in lines)


def _flips(name: str, items: Iterable[str]) -> str:
    ids = ", ".join(_UNSAFE_IN_ID.sub(lambda match: f"%{ord(match.group()):02x};", item) for item in items)
    return textwrap.fill(
        ids, _WIDTH, initial_indent=f"{name}: ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


class Prose(NamedTuple):
    title: str  # the commit's title without prefix and score
    why: str
    changes: list[tuple[Literal["+", "-"], str]]
    flips: str


def read_body(message: str) -> Body:
    """Return what is above the trailers of ``message``; a TrailerError if it has no subject of ours."""
    prose = read_prose(message)
    flips = read_flips(prose.flips)
    return Body(
        title=prose.title,
        why=prose.why,
        changes=tuple(Change(sign=sign, text=text) for sign, text in prose.changes),
        fixed=flips["fixed"],
        broken=flips["broken"],
    )


def read_prose(message: str) -> Prose:
    """Return the same, unparsed."""
    return read_head(message.rstrip("\n").rpartition("\n\n")[0])


def read_head(head: str) -> Prose:
    """Parse ``head``: a message without its last paragraph."""
    first, *paragraphs = head.rstrip("\n").split("\n\n")
    match = _SUBJECT.fullmatch(first)
    if match is None:
        raise TrailerError(f"'{first[:60]}' is not the subject of an event", hint="skillgit fsck")
    why: list[str] = []
    changes: list[tuple[Literal["+", "-"], str]] = []
    flips = ""
    for paragraph in paragraphs:
        if paragraph.startswith(_FLIPS):
            flips = paragraph
        elif paragraph.startswith(_SIGNS):
            changes = _read_changes(paragraph)
        else:
            why.append(_unwrapped(paragraph))
    return Prose(match["title"] or "", "\n\n".join(why), changes, flips)


def _unwrapped(paragraph: str) -> str:
    if "\n " in paragraph or " \n" in paragraph:
        return " ".join([line.strip(" ") for line in paragraph.split("\n")])
    return paragraph.replace("\n", " ").strip(" ")


def read_free_body(message: str) -> Body:
    """Return title and reasons of a message that a person wrote."""
    first, _, rest = message.strip().partition("\n")
    return Body(title=first, why=clean_paragraphs(rest))


def _read_changes(paragraph: str) -> list[tuple[Literal["+", "-"], str]]:
    changes: list[tuple[Literal["+", "-"], str]] = _CHANGE.findall(paragraph)
    if len(changes) <= paragraph.count("\n"):
        line = next(line for line in paragraph.split("\n") if _CHANGE.fullmatch(line) is None)
        raise TrailerError(f"'{line[:60]}' is not a changed line", hint="skillgit fsck")
    return changes


class EventFlips(TypedDict):
    fixed: tuple[str, ...]
    broken: tuple[str, ...]


def read_flips(paragraph: str) -> EventFlips:
    """Parse the paragraph of fixed and broken items, which may be empty."""
    if not paragraph:
        return EventFlips(fixed=(), broken=())
    entries: dict[str, str] = {}
    for line in paragraph.split("\n"):
        if line.startswith("  "):
            name = next(reversed(entries))
            entries[name] += line[1:]
        else:
            name, _, ids = line.partition(": ")
            entries[name] = ids
    for name, ids in entries.items():
        if not all(ids.split(", ")):
            raise TrailerError(f"'{name}: {ids[:60]}' is not a list of items", hint="skillgit fsck")
    flips = {name: tuple(_decoded(item) for item in ids.split(", ")) for name, ids in entries.items()}
    return EventFlips(fixed=flips.get("fixed", ()), broken=flips.get("broken", ()))


def _decoded(item: str) -> str:
    return _ENCODED.sub(_character, item) if "%" in item else item


def _character(code: re.Match[str]) -> str:
    number = int(code[1], 16)
    return chr(number) if number <= sys.maxunicode else code[0]


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
    parts = (subject(event), body(event), format_block(_trailers(event, evidence)))
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
        event = _event(block, read_body(text), read_slow)
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
    kind: [part.name for part in fields(Body) if part.name in {own.name for own in fields(kind)}]
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
