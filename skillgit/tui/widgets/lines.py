"""Widgets of a single line: a text that is cut, the keys of a screen, its tabs, and lines to type in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import on
from textual.actions import SkipAction
from textual.containers import Horizontal
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Footer, Input, Static

from skillgit.app.history.filter_language import TOKENS
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.screen import Screen


class OneLine(Widget):
    """A line that says where one is; without room for both, the text at the right end goes."""

    DEFAULT_CSS = """
    OneLine { height: 1; width: 1fr; background: $background; }
    """

    def __init__(self, *, fill: str = " ", id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._left: Painted = ()
        self._right: Painted = ()
        self._fill = fill

    @property
    def text(self) -> str:
        return "".join(part.text for part in (*self._left, *self._right))

    def say(self, parts: Iterable[Part], right: Iterable[Part] = ()) -> None:
        self._left, self._right = tuple(parts), tuple(right)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.rich_style
        if y:
            return Strip.blank(width, ground)
        left_width = sum(cell_len(part.text) for part in self._left)
        ends = sum(cell_len(part.text) for part in self._right)
        fill = self._fill if app_of(self).facts.unicode or self._fill.isascii() else "-"
        space = width - left_width - (ends if left_width + ends < width else 0)
        between = Part(fill * max(0, space), Style.FAINT)
        parts = (*self._left, between, *(self._right if left_width + ends < width else ()))
        paint = app_of(self).paint
        segments = [
            Segment(part.text, ground + paint(part.style) if isinstance(part.style, Style) else ground)
            for part in parts
        ]
        return Strip(segments).adjust_cell_length(width, ground)


_Shown = tuple[tuple[str, str, str, bool], ...]


class KeyLine(Footer):
    """Textual's footer, which makes its keys anew only where others are to be shown, since that takes long."""

    def __init__(self, *, compact: bool = False) -> None:
        super().__init__(show_command_palette=False, compact=compact)
        self._made: _Shown | None = None

    def compose(self) -> ComposeResult:
        self._made = self._shown(self.screen) if self._bindings_ready else None
        yield from super().compose()

    def bindings_changed(self, screen: Screen[Any]) -> None:
        if self._made is None or self._made != self._shown(screen):
            super().bindings_changed(screen)

    def _shown(self, screen: Screen[Any]) -> _Shown:
        return tuple(
            (entry.binding.action, self.app.get_key_display(entry.binding), entry.binding.description, entry.enabled)
            for entry in screen.active_bindings.values()
            if entry.binding.show
        )


_GAP = 2


class TabBar(OneLine):
    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        index: int

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.names = tuple(names)

    def open(self, index: int) -> None:
        sign = app_of(self).facts.glyphs.running
        parts = []
        for number, name in enumerate(self.names):
            here = number == index
            parts.append(Part(f"{sign if here else ' '}{name}{' ' * _GAP}", Style.REF if here else Style.FAINT))
        self.say(parts)

    def on_click(self, event: events.Click) -> None:
        at = 0
        for index, name in enumerate(self.names):
            at += 1 + len(name) + _GAP
            if event.x < at:
                self.post_message(self.Chosen(index))
                return


class FilterBar(Horizontal):
    """A filter; it is asked for while it is typed, and stays in sight as long as it narrows anything."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    @dataclass
    class Changed(Message):
        """The filter says something else."""

        text: str

    class Closed(Message):
        """The user goes on with the list."""

    def compose(self) -> ComposeResult:
        yield Static("/", id="slash", markup=False)
        yield Input(placeholder=TOKENS, compact=True)
        yield Static("", id="left", markup=False)

    @property
    def text(self) -> str:
        return self.query_one(Input).value

    def open(self) -> None:
        """Let the user type; the next key belongs here already, however soon it comes."""
        self.add_class("-open", update=False)
        # focus() waits until all messages before it are through, and only what is in sight can have the focus
        self.app.stylesheet.update(self)
        self.screen.set_focus(self.query_one(Input))

    def say(self, text: str, *, wrong: bool = False) -> None:
        label = self.query_one("#left", Static)
        label.update(text)
        label.set_class(wrong, "-wrong")

    def clear(self) -> None:
        self.query_one(Input).value = ""
        self.remove_class("-open")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.set_class(bool(event.value.strip()), "-open")
        self.post_message(self.Closed())

    def action_screen_back(self) -> None:
        self.clear()
        self.post_message(self.Closed())


class FindBar(Input):
    """A search that is being typed; it hides when it has been sent or left."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")
    DEFAULT_CSS = """
    FindBar { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    FindBar:focus { border: none; }
    FindBar.-open { display: block; }
    """

    @dataclass
    class Closed(Message):
        """The search was sent, or left without one."""

        text: str | None

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(placeholder="search", id=id, compact=True)

    def open(self) -> None:
        """Let the user type; the next key belongs here already. Where it is open, the key is a sign like others."""
        if self.has_focus:
            raise SkipAction
        self.value = ""
        self.add_class("-open", update=False)
        self.app.stylesheet.update(self)
        self.screen.set_focus(self)

    async def action_submit(self) -> None:
        self._close(self.value)

    def action_screen_back(self) -> None:
        self._close(None)

    def _close(self, text: str | None) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed(text))
