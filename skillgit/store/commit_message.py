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
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from skillgit.domain.address import Address, version_label
from skillgit.domain.event import FACTS_OF, Event, OrderKey
from skillgit.domain.event_kinds import TRAITS, AddressKind, EventKind
from skillgit.domain.proposal import Change, Origin
from skillgit.domain.untrusted.model_text import clean_paragraphs, storable, verbatim
from skillgit.errors import DataError, InvariantError, TrailerError
from skillgit.store.trailer_table import KINDS, NEEDED, TRAILERS, read_cost
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


def subject(event: Event) -> str:
    return " ".join(filter(None, (f"{_prefix(event)}:", event.title, f"({_note(event)})")))


def _prefix(event: Event) -> str:
    is_usual = event.kind is EventKind.SKIPPED or event.origin is Origin.STEP
    return TRAITS[event.kind].prefix if is_usual else event.origin.value


def _note(event: Event) -> str:
    label = event.address.label
    match event.kind:
        case EventKind.RUN_STARTED:
            return label if event.summary is None else f"{label}, {event.gauge.score(event.summary):.4f}"
        case EventKind.REVERTED:
            return f"{label}, as {Address(AddressKind.VERSION, event.target)}{_gain(event)}"
        case EventKind.MEASURED:
            version = Address(AddressKind.VERSION, event.version)
            return f"{version}, {event.evaluation.score(event.verdict.metric, event.verdict.soft_weight):.4f}"
        case EventKind.RUN_FINISHED:
            return event.outcome.value
        case _:
            return label + _gain(event)


def _gain(event: Event) -> str:
    if event.verdict is None:
        return ""
    return f", {'at most ' if event.is_bound else ''}{event.verdict.score - event.verdict.current:+.4f}"


def body(event: Event) -> str:
    """Return the paragraphs between subject and trailers; empty if there are none."""
    paragraphs = [_wrapped(paragraph) for paragraph in event.why.split("\n\n") if paragraph]
    if event.changes:
        paragraphs.append("\n".join(f"  {change.sign} {change.text}".rstrip(" ") for change in event.changes))
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


def read_body(message: str) -> dict[str, Any]:
    """Return the facts above the trailers of ``message``; a TrailerError if it has no subject of ours."""
    first, *paragraphs = message.rstrip("\n").rpartition("\n\n")[0].rstrip("\n").split("\n\n")
    match = _SUBJECT.fullmatch(first)
    if match is None:
        raise TrailerError(f"'{first[:60]}' is not the subject of an event", hint="skillgit fsck")
    why: list[str] = []
    changes: tuple[Change, ...] = ()
    flips = ""
    for paragraph in paragraphs:
        if paragraph.startswith(_FLIPS):
            flips = paragraph
        elif paragraph.startswith(_SIGNS):
            changes = _read_changes(paragraph)
        else:
            why.append(_unwrapped(paragraph))
    return {"title": match["title"] or "", "why": "\n\n".join(why), "changes": changes, **_read_flips(flips)}


def _unwrapped(paragraph: str) -> str:
    if "\n " in paragraph or " \n" in paragraph:
        return " ".join([line.strip(" ") for line in paragraph.split("\n")])
    return paragraph.replace("\n", " ").strip(" ")


def read_free_body(message: str) -> dict[str, Any]:
    """Return title and reasons of a message that a person wrote."""
    first, _, rest = message.strip().partition("\n")
    return {"title": first, "why": clean_paragraphs(rest)}


def _read_changes(paragraph: str) -> tuple[Change, ...]:
    changes: list[tuple[Literal["+", "-"], str]] = _CHANGE.findall(paragraph)
    if len(changes) <= paragraph.count("\n"):
        line = next(line for line in paragraph.split("\n") if _CHANGE.fullmatch(line) is None)
        raise TrailerError(f"'{line[:60]}' is not a changed line", hint="skillgit fsck")
    return tuple(Change(sign=sign, text=text) for sign, text in changes)


def _read_flips(paragraph: str) -> dict[str, tuple[str, ...]]:
    """Parse the paragraph of fixed and broken items, which may be empty."""
    entries: dict[str, str] = {}
    for line in paragraph.split("\n") if paragraph else ():
        if line.startswith("  "):
            name = next(reversed(entries))
            entries[name] += line[1:]
        else:
            name, _, ids = line.partition(": ")
            entries[name] = ids
    for name, ids in entries.items():
        if not all(ids.split(", ")):
            raise TrailerError(f"'{name}: {ids[:60]}' is not a list of items", hint="skillgit fsck")
    names = ("fixed", "broken")
    rows = {name: entries[name].split(", ") if name in entries else () for name in names}
    return {name: tuple(_ENCODED.sub(_character, item) for item in items) for name, items in rows.items()}


def _character(code: re.Match[str]) -> str:
    number = int(code[1], 16)
    return chr(number) if number <= sys.maxunicode else code[0]


_TREE = re.compile(r"[0-9a-f]{40}")
_COSTS = ("Cost", "Spent")
_FEW = 1 << 10
"""Values that are kept of those that events repeat."""


class SlowText(NamedTuple):
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
    if event.kind is EventKind.EDITED:
        raise InvariantError(
            f"{version_label(event.version)} is an edit, which only its author can commit", hint="git commit"
        )
    for trailer, _, absent in _BORNE[event.kind]:
        value: Any = attrgetter(trailer.attribute)(event) if trailer.attribute else event
        if trailer.many:
            yield from ((trailer.key, trailer.form.write(part)) for part in value)
        elif value != absent:
            yield trailer.key, trailer.form.write(value)
    yield "Evidence", evidence


def decode(text: str, read_slow: Callable[[str], SlowText] | None = None) -> Decoded:
    """Return what the commit message ``text`` says; a TrailerError if it is not that of an event.

    ``read_slow`` reads the texts of a slow update from the commit's tree by skill path.
    """
    block = parse_block(text)
    try:
        event = _event(block, read_body(text), read_slow)
    except DataError as error:
        raise TrailerError(f"the commit's trailers cannot be read: {error}", hint="skillgit fsck") from error
    evidence = block.one("Evidence")
    if evidence and _TREE.fullmatch(evidence) is None:
        raise TrailerError(f"'{evidence}' is not the id of an evidence tree", hint="skillgit fsck")
    return Decoded(event=event, evidence=evidence)


def _event(block: TrailerBlock, body: dict[str, Any], read_slow: Callable[[str], SlowText] | None) -> Event:
    kind = _KINDS.get(name := block.one("Event"))
    if kind is None:
        raise TrailerError(f"there is no event '{name}'", hint="install a newer skillgit")
    values = {name: value for name, value in body.items() if name in FACTS_OF[kind].names}
    for trailer, read, absent in _BORNE[kind]:
        if trailer.key in _COSTS:
            continue  # which are read together
        if trailer.many:
            values[trailer.attribute] = tuple(map(read, block.all(trailer.key)))
            continue
        text = block.one(trailer.key)
        value = absent
        if text:
            try:
                value = read(text)
            except (ValueError, KeyError):
                sentence = f"{PREFIX}{trailer.key} is {text!r}, not {trailer.form.name}"
                raise TrailerError(sentence, hint="skillgit fsck") from None
        elif value is NEEDED:
            raise TrailerError(f"the commit has no trailer {PREFIX}{trailer.key}", hint="skillgit fsck")
        if trailer.attribute:
            values[trailer.attribute] = value
        else:
            values.update(value)
    if "cost" in FACTS_OF[kind].names:
        values["cost"] = read_cost(block.one("Cost"), block.all("Spent"))
    if kind is EventKind.SLOW_PROPOSED:
        if read_slow is None:
            sentence = f"the slow update of {values['skill']} was read without the texts of its tree"
            raise TrailerError(sentence, hint="skillgit fsck")
        slow = read_slow(values["skill"])
        values |= {"guidance": verbatim(slow.guidance), "memory": slow.memory}
    return Event(kind=kind, **values)


_KINDS = {str(kind): kind for kind in KINDS}
_READERS = {id(trailer): lru_cache(_FEW)(trailer.form.read) for trailer in TRAILERS if trailer.repeats}
_BORNE = {
    kind: [
        (trailer, _READERS.get(id(trailer), trailer.form.read), trailer.said_by_absence(kind))
        for trailer in TRAILERS
        if kind in trailer.kinds
    ]
    for kind in KINDS
}
"""The trailers of a kind, how each is read, and what its absence says."""


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
        return self.event.order(self.at)
