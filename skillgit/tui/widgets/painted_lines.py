"""Any number of lines of which only those on the screen are painted, with a search and, in lists, a cursor.

What renderers of the command line yield is shown here as well: their colours become meanings, and all else is text.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from itertools import pairwise
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as Paint
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from skillgit.domain.text_diff import Span
from skillgit.errors import SkillgitError
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import ReadingApp, app_of
from skillgit.view.surface import Screen, Style
from skillgit.view.text import broken, inert, one_line, width, wrap

AT_ONCE = 300
"""Lines that are laid out while the screen waits; more of them are laid out in a thread."""
_ABOVE = 3  # lines that stay above a hit that was not on the screen


class Part(NamedTuple):
    """A stretch of a line, in the style of a meaning or of a component of the widget."""

    text: str
    style: Style | str = ""


Painted = tuple[Part, ...]
Mark = tuple["Span", str]


def columns(parts: Iterable[Part]) -> int:
    return sum(cell_len(part.text) for part in parts)


def emphasised(text: str, start: int, end: int, style: Style | str, marks: Iterable[Mark]) -> Iterator[Part]:
    """Yield ``text[start:end]`` in ``style``, with ``marks`` in styles of their own; the last of several is seen."""
    inside = [((max(a, start), min(b, end)), own) for (a, b), own in marks if a < end and b > start]
    edges = sorted({start, end, *(edge for span, _ in inside for edge in span)})
    for low, high in pairwise(edges):
        own = [name for (a, b), name in inside if a <= low and high <= b]
        yield Part(text[low:high], own[-1] if own else style)


def on_one_line(text: str, screen: Screen) -> str:
    return screen.encodable(one_line(text))


_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_STYLES = {style.value: style for style in Style}


def rendered(lines: Iterable[str | bytes], screen: Screen) -> list[Painted]:
    """Return what a renderer yielded for ``screen`` as parts, each in the style that it was painted in.

    Colours that bear another seal than the screen's are a stranger's, and are shown as text.
    """
    parts: list[Painted] = []
    for line in lines:
        text = screen.shown(line.decode(errors="replace") if isinstance(line, bytes) else line)
        parts += [tuple(_parts(own)) for own in text.split("\n")]
    return parts


def _parts(line: str) -> Iterator[Part]:
    style: Style | str = ""
    for index, piece in enumerate(_CODE.split(line)):
        if index % 2:
            style = _STYLES.get(piece, "")
        elif piece:
            yield Part(piece, style)


class _PlainBar(ScrollBarRender):
    """A scroll bar whose ends are as coarse as a character."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


class PaintedLines(ScrollView, can_focus=True):
    """Lines that are painted when they are looked at: a subclass says how many there are and paints one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--found", "lines--hit", "lines--cursor", "lines--cursor-blurred"}
    has_cursor: ClassVar[bool] = False
    """Whether keys move a cursor, and the screen after it; otherwise they move the screen."""

    @dataclass
    class Sought(Message):
        """A search has another hit, or none."""

        text: str
        hit: int
        hits: int

    @dataclass
    class Moved(Message):
        """The cursor is on another line."""

        lines: PaintedLines
        index: int

        @property
        def control(self) -> PaintedLines:
            return self.lines

    class Opened(Moved):
        """What is under the cursor is to be opened."""

    cursor = count = hit = beside = 0
    sought = ""
    hits: Sequence[int] = ()
    _pattern = re.compile("")
    _message: Painted = ()

    def on_mount(self) -> None:
        """Draw the scroll bar with spaces alone where nothing else can be shown."""
        if not app_of(self).facts.unicode:
            self.vertical_scrollbar.renderer = _PlainBar  # type: ignore[misc]

    def tell(self, text: str, hint: str = "", style: Style = Style.FAINT) -> None:
        """Say ``text`` instead of showing lines: that they are not there yet, that there are none, or why not."""
        parts = (Part(text, style), Part(f"hint: {hint}" if hint else "", Style.FAINT))
        self._message = tuple(part for part in parts if part.text)
        self.show_count(0)

    def tell_reading(self) -> None:
        self.tell(f"reading {app_of(self).facts.glyphs.ellipsis}")

    def fail(self, error: SkillgitError, style: Style = Style.REJECTED) -> None:
        self.tell(str(error), error.hint, style)

    def painted(self, line: int) -> Painted:
        raise NotImplementedError

    def lay_out(self) -> None:
        """Lay the lines out for the width that there is; the cursor stays in sight."""
        self.show_count(self.count)
        if self.count and self.has_cursor:
            self._go(self.cursor)

    def show_count(self, count: int) -> None:
        self.count = count
        self.cursor = max(0, min(self.cursor, count - 1))
        self.virtual_size = Size(self.room, count)
        if count:
            self._message = ()
        self.refresh()

    @property
    def room(self) -> int:
        """Columns of a line; the scroll bar's are never among them, so that lines stay as they are when it comes."""
        return max(1, self.size.width - self.styles.scrollbar_size_vertical)

    @property
    def ink(self) -> Screen:
        """What the terminal can show, for renderers."""
        return replace(app_of(self).facts, width=self.room)

    def on_resize(self) -> None:
        self.lay_out()

    def on_focus(self) -> None:
        """Show whether keys move the cursor."""
        self.refresh()

    on_blur = on_focus

    def render_line(self, y: int) -> Strip:
        columns_, line, ground = self.size.width, self.scroll_offset.y + y, self.rich_style
        if self._message:
            lines = [
                Part(f" {text[start:end]}", style)
                for text, style in ((on_one_line(part.text, self.ink), part.style) for part in self._message)
                for start, end in broken(text, self.room - 1)
            ]
            return self._strip((lines[y],), ground) if y < len(lines) else Strip.blank(columns_, ground)
        if line >= self.count:
            return Strip.blank(columns_, ground)
        if self.has_cursor and line == self.cursor:
            name = "lines--cursor" if self.has_focus else "lines--cursor-blurred"
            ground = self.get_component_rich_style(name)
        return self._strip(self.painted(line), ground)

    def _strip(self, parts: Painted, ground: Paint) -> Strip:
        strip = Strip([Segment(text, self._paint(style, ground)) for text, style in parts])
        if self.beside:
            strip = strip.crop(min(self.beside, strip.cell_length))
        if strip.cell_length > self.size.width:  # that the line goes on is said where it is cut
            mark = self.ink.glyphs.ellipsis
            strip = Strip([*strip.crop(0, self.size.width - len(mark)), Segment(mark, ground)])
        return strip.adjust_cell_length(self.size.width, ground)

    def _paint(self, style: Style | str, ground: Paint) -> Paint:
        if not style:
            return ground
        return ground + app_of(self).paint(style) if isinstance(style, Style) else self.get_component_rich_style(style)

    def _slide(self, by: int) -> None:
        widest = max((cell_len(self.text_of(line)) for line in range(self.count)), default=0)
        self.beside = max(0, min(self.beside + by * (self.room // 2), widest - self.room))
        self.refresh()

    action_wide_left = partialmethod(_slide, -1)
    action_wide_right = partialmethod(_slide, 1)

    def text_of(self, line: int) -> str:
        return "".join(part.text for part in self.painted(line))

    def matches(self, text: str) -> list[Span]:
        return [match.span() for match in self._pattern.finditer(text)] if self.sought else []

    def lines_with(self) -> Iterator[int]:
        yield from (line for line in range(self.count) if self.matches(self.text_of(line)))

    def marks(self, line: int, text: str) -> list[Mark]:
        """Return the hits in ``text`` of ``line``, those of the present hit in a style of their own."""
        present = bool(self.hits) and self.hits[self.hit] == line
        return [(span, "lines--hit" if present else "lines--found") for span in self.matches(text)]

    def seek(self, text: str) -> None:
        """Look for ``text`` and go to its first hit from the top of the screen on; an empty one ends the search."""
        self.sought = text
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self._find_again()
        top = self._at
        self.hit = next((index for index, line in enumerate(self.hits) if line >= top), 0)
        self._go_to_hit(0)

    def _find_again(self) -> None:
        self.hits = tuple(self.lines_with()) if self.sought else ()
        self.hit = min(self.hit, max(0, len(self.hits) - 1))
        self.refresh()

    def _go_to_hit(self, by: int) -> None:
        if self.hits:
            self.hit = (self.hit + by) % len(self.hits)
            line, top = self.hits[self.hit], self.scroll_offset.y
            if self.has_cursor:
                self._go(line)
            elif not top <= line < top + self.size.height:
                self._go(line - _ABOVE)
        self.refresh()
        self.post_message(self.Sought(self.sought, self.hit + 1 if self.hits else 0, len(self.hits)))

    action_find_next = partialmethod(_go_to_hit, 1)
    action_find_prev = partialmethod(_go_to_hit, -1)

    @property
    def _at(self) -> int:
        return self.cursor if self.has_cursor else self.scroll_offset.y

    def _go(self, line: int) -> None:
        line = max(0, min(line, self.count - 1))
        if not self.has_cursor:
            self.bring_to_top(line)
            return
        before, self.cursor = self.cursor, line
        self.bring_to_top(min(max(self.scroll_offset.y, line - self.size.height + 1), line))
        self.refresh()
        if self.count and line != before:
            self.post_message(self.Moved(self, line))

    def bring_to_top(self, line: int) -> None:
        """Scroll to ``line`` at once."""
        # without force Textual ignores it until the scroll bar of new lines was drawn, and keys would be lost
        self.scroll_to(y=line, animate=False, force=True)

    def _move(self, by: int, pages: float = 0) -> None:
        self._go(self._at + by * (max(1, int(self.size.height * pages)) if pages else 1))

    action_list_down = partialmethod(_move, 1)
    action_list_up = partialmethod(_move, -1)
    action_list_page_down = partialmethod(_move, 1, 0.5)
    action_list_page_up = partialmethod(_move, -1, 0.5)

    def action_list_top(self) -> None:
        self._go(0)

    def action_list_bottom(self) -> None:
        self._go(self.count - 1)

    def open_row(self) -> None:
        """What ``action_list_open`` of a list is."""
        if self.count:
            self.post_message(self.Opened(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.get_content_offset_capture(self).y
        if self.has_cursor and 0 <= line < self.count:
            self._go(line)
            if event.chain > 1:
                self.open_row()


class RowList(PaintedLines):
    """Rows of which one is chosen, also while keys go elsewhere."""

    has_cursor: ClassVar[bool] = True
    action_list_open = PaintedLines.open_row

    def choose(self, index: int) -> None:
        """Put the cursor on a row, and tell even if it is there already: the row may be another one."""
        before, self.cursor = self.cursor, max(0, index)
        if self.count:
            self._go(index)
            if self.cursor == before:
                self.post_message(self.Moved(self, self.cursor))


F = TypeVar("F")


class RenderedLines(PaintedLines, Generic[F]):
    """Lines that are all made of some facts at once, in a thread if that takes long; what is shown stays until then.

    Attributes:
        facts: What the lines are made of; None before there is anything.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("find")
    facts: F | None = None
    lines: Sequence[Any] = ()

    def made(self, facts: F) -> Sequence[Any]:
        """Return the lines; a subclass that makes other values than painted ones paints them itself."""
        raise NotImplementedError

    def weight(self, facts: F) -> int:
        """Return how many lines ``facts`` are about; above :data:`AT_ONCE` keys would wait for them."""
        del facts
        return 0

    def show(self, facts: F, *, from_top: bool = False) -> None:
        """Show ``facts``, from the first line on or where the screen is."""
        self.facts = facts
        self._message = ()
        self.lay_out()
        if from_top:
            self.beside = 0
            self.bring_to_top(0)

    def lay_out(self) -> None:
        if not (self.is_mounted and self.size.width) or self._message or self.facts is None:
            return
        if self.weight(self.facts) > AT_ONCE:
            self.run_worker(self._make_in_thread(self.facts), group="layout", exclusive=True)
        else:
            self.take(self.made(self.facts))

    async def _make_in_thread(self, facts: F) -> None:
        self.take(await asyncio.to_thread(self.made, facts))

    def take(self, lines: Sequence[Any]) -> None:
        self.lines = lines
        self.show_count(len(lines))
        self._find_again()

    def text_of(self, line: int) -> str:
        return "".join(part.text for part in self.lines[line])

    def painted(self, line: int) -> Painted:
        whole: Painted = self.lines[line]
        marks = self.marks(line, self.text_of(line)) if self.sought else []
        if not marks:
            return whole
        parts, at = list[Part](), 0
        for text, style in whole:
            parts += emphasised(text, 0, len(text), style, [((a - at, b - at), name) for (a, b), name in marks])
            at += len(text)
        return tuple(parts)


class Paragraph(NamedTuple):
    """Some lines of text in one style, and what is before its first line, inside the indent."""

    text: str
    style: Style | str = ""
    indent: int = 1
    lead: str = ""


class Paragraphs(RenderedLines[Sequence[Paragraph]]):
    """Paragraphs that one can scroll and search; without ``wraps`` long lines go on outside the screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("wide")

    def __init__(self, *, wraps: bool = True, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._wraps = wraps

    def made(self, facts: Sequence[Paragraph]) -> Sequence[Painted]:
        lines: list[Painted] = []
        for text, style, indent, front in facts:
            room, lead = max(8, self.room - indent - 1), front
            for own in inert(self.ink.encodable(text)).split("\n"):
                # what fits stays as it is: output of commands has columns
                for piece in [own] if width(own) <= room or not self._wraps else wrap(own, room):
                    lines.append((Part(f"{lead:<{indent}}"), Part(piece, style)))
                    lead = ""
        return lines


def as_text(parts: Iterable[Part], app: ReadingApp, ground: Paint | None = None) -> Text:
    """Return ``parts`` for Textual's own widgets."""
    text = Text(no_wrap=True, end="", style=ground or "")
    for part in parts:
        text.append(part.text, app.paint(part.style) if isinstance(part.style, Style) else None)
    return text
