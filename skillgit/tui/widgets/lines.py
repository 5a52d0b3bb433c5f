"""Widgets of a single line: a text that is cut, the keys of a screen, its tabs, and lines to type in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events, on
from textual.actions import SkipAction
from textual.containers import Horizontal
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from skillgit.app.history.filter_language import TOKENS
from skillgit.tui.keymap import FIRST, KEYS, PINNED, bindings
from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import ActiveBinding, BindingType
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


class ShownKey(NamedTuple):
    display: str
    label: str
    press: str
    is_enabled: bool


class KeyLine(Widget):
    """The keys that hold where the focus is, as many as fit; those that hold everywhere stay at the right end."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key"}
    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; color: $text-muted; }
    KeyLine > .keys--key { color: $footer-key-foreground; background: $panel; text-style: bold; }
    """

    def __init__(self, *, compact: bool = False) -> None:
        super().__init__()
        self._gap = 1 if compact else 2
        self.keys: tuple[tuple[ShownKey, ...], tuple[ShownKey, ...]] = ((), ())

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        if not (self.is_attached and screen is self.screen and screen.app.app_focus):
            return
        active = {entry.binding.id or "": entry for entry in reversed(screen.active_bindings.values())}
        focus = screen.focused.ancestors_with_self if screen.focused is not None else ()
        first_ids = next((FIRST[node.id] for node in focus if node.id is not None and node.id in FIRST), None)
        ids = first_ids or [key.id for key in KEYS if key.footer and key.id not in PINNED]
        keys = (self._of(ids, active), self._of(PINNED, active))
        if keys != self.keys:
            self.keys = keys
            self.refresh()

    def _of(self, ids: Iterable[str], active: Mapping[str, ActiveBinding]) -> tuple[ShownKey, ...]:
        entries = [(entry.binding, entry.enabled) for name in ids if (entry := active.get(name)) is not None]
        display = self.app.get_key_display
        return tuple(ShownKey(display(own), own.description, own.key, is_enabled) for own, is_enabled in entries)

    def placed(self) -> Iterator[tuple[int, ShownKey]]:
        """Yield the keys that fit, with their columns."""
        near, fixtures = ([(key, cell_len(f"{key.display} {key.label}")) for key in keys] for keys in self.keys)
        end = self.size.width - sum(columns + self._gap for _, columns in fixtures)
        at = self._gap
        for key, columns in near:
            if at + columns + self._gap <= end:
                yield at, key
                at += columns + self._gap
        for key, columns in fixtures:
            yield end, key
            end += columns + self._gap

    def render_line(self, y: int) -> Strip:
        ground, bold = self.rich_style, self.get_component_rich_style("keys--key")
        segments, at = [], 0
        for column, key in self.placed() if not y else ():
            label = f" {key.label}"
            segments += [Segment(" " * (column - at), ground), Segment(key.display, bold), Segment(label, ground)]
            at = column + cell_len(key.display + label)
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def on_click(self, event: events.Click) -> None:
        key = next((key for column, key in reversed([*self.placed()]) if column <= event.x), None)
        if key is not None and key.is_enabled:
            self.app.simulate_key(key.press)


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

    def open(self, example: str = TOKENS) -> None:
        """Let the user type; the next key belongs here already, however soon it comes."""
        self.query_one(Input).placeholder = example
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
