"""Text to read: paragraphs broken to the width that there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, Part, RenderedLines
from skillgit.view.text import inert, width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.binding import BindingType

    from skillgit.view.screen import Style


class Paragraph(NamedTuple):
    """Some lines of text in one style.

    Attributes:
        text: What it says; control characters are written out when it is shown.
        style: How it looks.
        indent: Columns in front of each line.
        lead: What stands in front of its first line, inside the indent.
    """

    text: str
    style: Style | str = ""
    indent: int = 1
    lead: str = ""


class Paragraphs(RenderedLines):
    """Paragraphs of any number that one can scroll and search."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._paragraphs: Sequence[Paragraph] = ()

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show ``paragraphs`` from the beginning."""
        self._paragraphs = paragraphs
        self.shown()
        self.lay_out()
        self.scroll_to(y=0, animate=False)

    def made(self) -> Sequence[Painted]:
        """Return the lines for the width that there is."""
        return [line for paragraph in self._paragraphs for line in self._lines(paragraph)]

    def _lines(self, paragraph: Paragraph) -> Iterator[Painted]:
        room = max(8, self.room - paragraph.indent - 1)
        lead = paragraph.lead
        for own in inert(self.ink.encodable(paragraph.text)).split("\n"):
            # what fits stays as it is: output of commands has columns
            for text in [own] if width(own) <= room else wrap(own, room):
                yield (Part(f"{lead:<{paragraph.indent}}"), Part(text, paragraph.style))
                lead = ""
