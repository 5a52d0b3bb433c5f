"""Text to read: paragraphs broken to the width that there is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar, cast

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, Part, RenderedLines
from skillgit.tui.widgets.shown_text import shown
from skillgit.view.surface import Screen, Style
from skillgit.view.text import inert, width, wrap

if TYPE_CHECKING:
    from textual.binding import BindingType


class Paragraph(NamedTuple):
    """Some lines of text in one style, and what is before its first line, inside the indent."""

    text: str
    style: Style | str = ""
    indent: int = 1
    lead: str = ""


class Paragraphs(RenderedLines):
    """Paragraphs that one can scroll and search; without ``wraps`` long lines go on beside the screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find", "wide")

    def __init__(self, *, wraps: bool = True, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._wraps = wraps

    _paragraphs: Sequence[Paragraph] = ()

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        self._paragraphs = paragraphs
        self.renew(scroll=True)

    def made(self) -> Sequence[Painted]:
        return [line for paragraph in self._paragraphs for line in self._lines(paragraph)]

    def _lines(self, paragraph: Paragraph) -> Iterator[Painted]:
        room = max(8, self.room - paragraph.indent - 1)
        lead = paragraph.lead
        for own in inert(self.ink.encodable(paragraph.text)).split("\n"):
            # what fits stays as it is: output of commands has columns
            for text in [own] if width(own) <= room or not self._wraps else wrap(own, room):
                yield (Part(f"{lead:<{paragraph.indent}}"), Part(text, paragraph.style))
                lead = ""


T = TypeVar("T")

_PAINTED = re.compile(r"\x1b\[(?P<style>[0-9;]+)m(?P<text>.*?)\x1b\[m")
UNICODE = Screen()
"""A screen that shows all signs."""

_STYLES = {style.value: style for style in Style}


def disarmed(facts: T, screen: Screen = UNICODE) -> T:
    """Return facts with every text as ``screen`` may show it, so that none can look like a renderer's colours."""
    return cast("T", _disarmed(facts, screen))


def _disarmed(facts: object, screen: Screen) -> object:
    if isinstance(facts, str) and not isinstance(facts, Enum):
        return "\n".join(shown(line, screen).text for line in facts.split("\n"))
    if isinstance(facts, tuple):
        parts = tuple(_disarmed(part, screen) for part in facts)
        return facts if all(new is old for new, old in zip(parts, facts, strict=True)) else parts
    if is_dataclass(facts) and not isinstance(facts, type):
        own = {field.name: getattr(facts, field.name) for field in fields(facts) if field.init}
        clean = {name: _disarmed(value, screen) for name, value in own.items()}
        changes = {name: value for name, value in clean.items() if value != own[name]}
        return replace(facts, **changes) if changes else facts
    return facts


def rendered(lines: Iterable[str]) -> list[Painted]:
    """Return what a renderer yielded as parts, each in the style that it was painted in."""
    return [tuple(_parts(line)) for line in lines]


def _parts(line: str) -> Iterator[Part]:
    at = 0
    for match in _PAINTED.finditer(line):
        if match.start() > at:
            yield Part(line[at : match.start()])
        yield Part(match["text"], _STYLES[match["style"]])
        at = match.end()
    if at < len(line):
        yield Part(line[at:])
