"""What a commit message says above its trailers: the subject and the body, written and read.

::

    skill: answer in the unit the question asks for (v7, +0.0250)

    Six of forty rollouts lost points on unit mismatch.

      + Verify units: answer in the unit the question asks for, and say it
      - Verify units: always answer in metres

    fixed: q17, q22, q31
    broken: q03

Titles, reasons and changes are text of models. It is indented where it looks like a trailer, a divider, a comment or a
line of this format, so that neither git nor skillgit mistakes it for one.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from skillgit.domain.address import Address
from skillgit.domain.evaluation import EvaluationSummary, Gauge
from skillgit.domain.event import (
    Accepted,
    Event,
    Gated,
    Inherited,
    Measured,
    Measurement,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowProposed,
    event_address,
    event_origin,
)
from skillgit.domain.event_kinds import TRAITS, AddressKind
from skillgit.domain.proposal import Change, Origin
from skillgit.domain.untrusted.model_text import clean_paragraphs
from skillgit.errors import TrailerError

if TYPE_CHECKING:
    from collections.abc import Iterable


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
            return label + _score(event.evaluation, event.gauge)
        case Reverted():
            return f"{label}, as {Address(AddressKind.VERSION, event.target)}{_gain(event)}"
        case Measured():
            version = Address(AddressKind.VERSION, event.version)
            return f"{version}, {event.evaluation.score(event.verdict.metric, event.verdict.soft_weight):.4f}"
        case RunFinished():
            return event.outcome.value
        case _:
            return label + (_gain(event) if isinstance(event, Gated) else "")


def _score(measurement: Measurement, gauge: Gauge) -> str:
    return "" if isinstance(measurement, Inherited) else f", {gauge.score(measurement):.4f}"


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
