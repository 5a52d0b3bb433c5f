"""What the renderers of the command line write, as lines that a widget paints in the colours of the theme."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

from skillgit.tui.widgets.painted_lines import Painted, Part
from skillgit.tui.widgets.shown_text import shown
from skillgit.view.screen import Screen, Style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

_PAINTED = re.compile(r"\x1b\[(?P<style>[0-9;]+)m(?P<text>.*?)\x1b\[m")
UNICODE = Screen()
"""A screen that shows all signs."""

_STYLES = {style.value: style for style in Style}


def disarmed(facts: T, screen: Screen = UNICODE) -> T:
    """Return facts of the use cases with every text in them as ``screen`` may show it, line by line.

    A renderer paints around texts. What is disarmed first can neither paint itself nor look like a renderer's colour.
    """
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
