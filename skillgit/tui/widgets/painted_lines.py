"""Any number of lines of which only those on the screen are painted, with a search and, in lists, a cursor."""

from __future__ import annotations

import asyncio
import re
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from itertools import islice, pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import _MessagePumpMeta
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from skillgit.domain.text_diff import Span
from skillgit.errors import SkillgitError
from skillgit.tui.widgets.shown_text import broken, on_one_line
from skillgit.view.surface import Screen, Style

if TYPE_CHECKING:
    from rich.style import Style as Paint
    from textual.dom import DOMNode

    from skillgit.tui.app import SkillgitApp


class AbstractNode(_MessagePumpMeta, ABCMeta):
    """The metaclass of abstract widgets and screens."""


AT_ONCE = 300
"""Lines that are laid out while the screen waits; more of them are laid out beside it."""
_ABOVE = 3  # lines that stay above a hit that was not on the screen


class Part(NamedTuple):
    """A stretch of a line, in the style of a meaning or of a component of the widget."""

    text: str
    style: Style | str = ""


Painted = tuple[Part, ...]
Mark = tuple["Span", str]


class _PlainBar(ScrollBarRender):
    """A scroll bar whose ends are as coarse as a character."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


def app_of(node: DOMNode) -> SkillgitApp:
    return cast("SkillgitApp", node.app)


def emphasised(text: str, start: int, end: int, style: Style | str, marks: Iterable[Mark]) -> Iterator[Part]:
    """Yield ``text[start:end]`` in ``style``, with ``marks`` in styles of their own; the last of several is seen."""
    inside = [((max(a, start), min(b, end)), own) for (a, b), own in marks if a < end and b > start]
    edges = sorted({start, end, *(edge for span, _ in inside for edge in span)})
    for low, high in pairwise(edges):
        own = [name for (a, b), name in inside if a <= low and high <= b]
        yield Part(text[low:high], own[-1] if own else style)


class PaintedLines(ScrollView, can_focus=True, metaclass=AbstractNode):
    """Lines that are painted when they are looked at; a subclass lays them out for a width and paints one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--found", "lines--hit", "lines--cursor"}
    DEFAULT_CSS = """
    PaintedLines {
        height: 1fr;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        background: $background;
        & > .lines--found { background: $warning-muted; color: $text; text-style: underline; }
        & > .lines--hit { background: $warning; color: $background; text-style: bold; }
        & > .lines--cursor { background: $chosen; text-style: bold; }
    }
    """
    has_cursor: ClassVar[bool] = False
    """Whether keys move a cursor, and the screen after it; otherwise they move the screen."""

    @dataclass
    class Sought(Message):
        """A search has another hit, or none."""

        text: str
        hit: int
        hits: int

    cursor = count = hit = beside = 0
    sought = ""
    hits: Sequence[int] = ()
    _pattern = re.compile("")
    _message_parts: Painted = ()

    def on_mount(self) -> None:
        """Draw the scroll bar with spaces alone where nothing else can be shown."""
        if not app_of(self).facts.unicode:
            self.vertical_scrollbar.renderer = _PlainBar  # type: ignore[misc]

    def tell(self, text: str, hint: str = "", style: Style = Style.FAINT) -> None:
        """Say ``text`` instead of showing lines: that they are not there yet, that there are none, or why not."""
        parts = (Part(text, style), Part(f"hint: {hint}" if hint else "", Style.FAINT))
        self._message_parts = tuple(part for part in parts if part.text)
        self.show_count(0)

    def fail(self, error: SkillgitError, style: Style = Style.REJECTED) -> None:
        self.tell(str(error), error.hint, style)

    def _told_lines(self) -> Iterator[Painted]:
        for text, style in self._message_parts:
            line = on_one_line(text, self.ink)
            yield from ((Part(f" {line[start:end]}", style),) for start, end in broken(line, self.room - 1))

    def shown(self) -> None:
        self._message_parts = ()

    @abstractmethod
    def lay_out(self) -> None:
        """Lay the lines out, since there are others or another width, and say how many with :meth:`show_count`."""

    @abstractmethod
    def painted(self, line: int) -> Painted: ...

    def show_count(self, count: int) -> None:
        self.count = count
        self.cursor = max(0, min(self.cursor, count - 1))
        self.virtual_size = Size(self.room, count)
        self.refresh()

    @property
    def room(self) -> int:
        """Columns of a line; the scroll bar's are never among them, so that lines stay as they are when it comes."""
        return max(1, self.size.width - self.styles.scrollbar_size_vertical)

    @property
    def ink(self) -> Screen:
        """What the terminal can show, for renderers."""
        return replace(app_of(self).facts, colour=True, width=self.room)

    def on_resize(self, event: events.Resize) -> None:
        del event
        self.lay_out()

    def render_line(self, y: int) -> Strip:
        width, line, ground = self.size.width, self.scroll_offset.y + y, self.rich_style
        if self._message_parts:
            message = next(islice(self._told_lines(), y, None), None)
            return Strip.blank(width, ground) if message is None else self._strip(message, ground)
        if line >= self.count:
            return Strip.blank(width, ground)
        if self.has_cursor and self.has_focus and line == self.cursor:
            return self._strip(self.painted(line), self.get_component_rich_style("lines--cursor"))
        return self._strip(self.painted(line), ground)

    def _strip(self, parts: Painted, ground: Paint) -> Strip:
        segments = [Segment(text, self._paint(style, ground)) for text, style in parts]
        strip = Strip(segments)
        if self.beside:
            strip = strip.crop(min(self.beside, strip.cell_length))
        return strip.adjust_cell_length(self.size.width, ground)

    def _slide(self, by: int) -> None:
        widest = max((cell_len(self.text_of(line)) for line in range(self.count)), default=0)
        self.beside = max(0, min(self.beside + by * (self.room // 2), widest - self.room))
        self.refresh()

    action_wide_left = partialmethod(_slide, -1)
    action_wide_right = partialmethod(_slide, 1)

    def _paint(self, style: Style | str, ground: Paint) -> Paint:
        if not style:
            return ground
        if isinstance(style, Style):
            return ground + app_of(self).paint(style)
        return self.get_component_rich_style(style)

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
            self.reveal(self.hits[self.hit])
        self.refresh()
        self.post_message(self.Sought(self.sought, self.hit + 1 if self.hits else 0, len(self.hits)))

    def reveal(self, line: int) -> None:
        """Bring ``line`` to the screen, and the cursor to it."""
        if self.has_cursor:
            self._go(line)
        elif not self.scroll_offset.y <= line < self.scroll_offset.y + self.size.height:
            self._go(line - _ABOVE)

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
        top, height = self.scroll_offset.y, self.size.height
        self.cursor = line
        self.bring_to_top(min(max(top, line - height + 1), line))
        self.refresh()

    def bring_to_top(self, line: int) -> None:
        """Scroll to ``line`` at once."""
        # without force Textual ignores it until the scroll bar of new lines was drawn, and keys would be lost
        self.scroll_to(y=line, animate=False, force=True)

    def _move(self, by: int) -> None:
        self._go(self._at + by)

    action_list_down = partialmethod(_move, 1)
    action_list_up = partialmethod(_move, -1)

    def action_list_top(self) -> None:
        self._go(0)

    def action_list_bottom(self) -> None:
        self._go(self.count - 1)

    def action_list_page_down(self) -> None:
        self._move(max(1, self.size.height // 2))

    def action_list_page_up(self) -> None:
        self._move(-max(1, self.size.height // 2))


class RenderedLines(PaintedLines):
    """Lines that are all laid out at once; beside the screen if that takes long, and what is shown stays until then."""

    lines: Sequence[Painted] = ()

    @property
    def heavy(self) -> bool:
        """Whether to make the lines takes so long that keys would wait."""
        return False

    @abstractmethod
    def made(self) -> Sequence[Painted]: ...

    def renew(self, *, scroll: bool = False) -> None:
        """Make the lines, since there are others, and ``scroll`` to the first one."""
        self.shown()
        self.lay_out()
        if scroll:
            self.beside = 0
            self.bring_to_top(0)

    def lay_out(self) -> None:
        if not (self.is_mounted and self.size.width):
            return
        if self.heavy:
            self.run_worker(self._make_beside(), group="layout", exclusive=True)
        else:
            self._take_lines(self.made())

    async def _make_beside(self) -> None:
        self._take_lines(await asyncio.to_thread(self.made))

    def _take_lines(self, lines: Sequence[Painted]) -> None:
        self.lines = lines
        self.show_count(len(lines))
        self._find_again()

    def text_of(self, line: int) -> str:
        return "".join(part.text for part in self.lines[line])

    def painted(self, line: int) -> Painted:
        marks = self.marks(line, self.text_of(line)) if self.sought else []
        if not marks:
            return self.lines[line]
        return tuple(_marked(self.lines[line], marks))


def _marked(parts: Painted, marks: Sequence[Mark]) -> Iterator[Part]:
    at = 0
    for text, style in parts:
        own = [((a - at, b - at), name) for (a, b), name in marks]
        yield from emphasised(text, 0, len(text), style, own)
        at += len(text)
