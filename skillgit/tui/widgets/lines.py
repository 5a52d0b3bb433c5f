"""Widgets of a single line: a text that is cut, the keys of a screen, its tabs, and lines to type in.

Textual's own Footer and Tabs are made of a widget for each key and tab: the first picture takes 13 ms longer with
either, and every other focus 30 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from skillgit.tui.keymap import FIRST, KEYS, PINNED, WAYS_OUT, bindings, shown
from skillgit.tui.reading import app_of
from skillgit.tui.widgets.painted_lines import Painted, Part, as_text, columns, rendered
from skillgit.verbs.filter_language import TOKENS
from skillgit.view.surface import Style


class OneLine(Widget):
    """A line that says where one is; without room for both, the text at the right end goes, and the left is cut."""

    def __init__(self, *, fill: str = " ", id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._left: Painted = ()
        self._right: Painted = ()
        self._fill = fill

    @property
    def text(self) -> str:
        return "".join(part.text for part in (*self._left, *self._right))

    def say(self, text: str | Iterable[Part], right: str | Iterable[Part] = "") -> None:
        """Show parts, or what a renderer painted."""
        facts = app_of(self).facts
        self._left, self._right = (
            rendered([side], facts)[0] if isinstance(side, str) else tuple(side) for side in (text, right)
        )
        self.refresh()

    def render(self) -> Text:
        app, room = app_of(self), self.size.width - columns(self._left)
        right = self._right if columns(self._right) < room else ()
        fill = self._fill if app.facts.unicode or self._fill.isascii() else "-"
        between = Part(fill * max(0, room - columns(right)), Style.FAINT)
        text, mark = as_text((*self._left, between, *right), app), app.facts.glyphs.ellipsis
        if room < 0:
            text.truncate(max(0, self.size.width - len(mark)))
            text.append(mark)
        return text


class TabBar(OneLine):
    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        index: int

    _GAP = 2

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.names = tuple(names)

    def open(self, index: int) -> None:
        signs = [app_of(self).facts.glyphs.running if index == number else " " for number in range(len(self.names))]
        tabs = [f"{sign}{name}{' ' * self._GAP}" for sign, name in zip(signs, self.names, strict=True)]
        self.say(Part(tab, Style.REF if number == index else Style.FAINT) for number, tab in enumerate(tabs))

    def on_click(self, event: events.Click) -> None:
        for index in range(len(self.names)):
            if event.x < columns(self._left[: index + 1]):
                self.post_message(self.Chosen(index))
                return


Keys = tuple[tuple[Binding, bool], ...]
"""Bindings, and whether what they do is possible now."""


class KeyLine(Widget):
    """The keys that hold where the focus is, as many as fit; those that hold everywhere stay at the right end."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key"}

    def __init__(self, *, compact: bool = False) -> None:
        super().__init__()
        self._gap = 1 if compact else 2
        self.keys: tuple[Keys, Keys] = ((), ())

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        if not (self.is_attached and screen is self.screen and screen.app.app_focus):
            return
        active = dict[str | None, tuple[Binding, bool]]()
        for entry in reversed(screen.active_bindings.values()):
            binding = entry.binding
            if binding.key_display not in {None, shown(binding.key)}:
                if binding.id in active:
                    continue
                # something nearer has the key that is written as a rule, or a text is typed: another one does it
                binding = replace(binding, key_display=shown(binding.key))
            active[binding.id] = (binding, entry.enabled)
        focus = screen.focused.ancestors_with_self if screen.focused is not None else ()
        near = next((FIRST[node.id] for node in focus if node.id is not None and node.id in FIRST), None)
        ids = near or [key.id for key in KEYS if key.footer and key.id not in {*PINNED, *WAYS_OUT}]
        fixtures = (*PINNED, *[name for name in WAYS_OUT if name in active][:1])
        keys = (
            tuple(active[name] for name in ids if name in active),
            tuple(active[name] for name in fixtures if name in active),
        )
        if keys != self.keys:
            self.keys = keys
            self.refresh()

    def placed(self) -> Iterator[tuple[int, Binding, str]]:
        """Yield the keys that fit with their columns, and how they are written."""
        write = self.app.get_key_display
        near, fixtures = ([(key, f"{write(key)} {key.description}") for key, _ in keys] for keys in self.keys)
        end = self.size.width - sum(len(text) + self._gap for _, text in fixtures)
        at = self._gap
        for key, text in near:
            if at + len(text) + self._gap <= end:
                yield at, key, text
                at += len(text) + self._gap
        for key, text in fixtures:
            yield end, key, text
            end += len(text) + self._gap

    def render(self) -> Text:
        line, bold = Text(no_wrap=True, end=""), self.get_component_rich_style("keys--key")
        for column, _, text in self.placed():
            key, _, label = text.partition(" ")
            line.append(" " * (column - len(line))).append(key, bold).append(f" {label}")
        return line

    def on_click(self, event: events.Click) -> None:
        key = next((key for column, key, _ in reversed([*self.placed()]) if column <= event.x), None)
        if key is not None and dict((*self.keys[0], *self.keys[1]))[key]:
            self.app.simulate_key(key.key)


class FilterBar(Horizontal):
    """A filter; it is asked for while it is typed, and stays in sight as long as it narrows anything."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    @dataclass
    class Filtered(Message):
        """The filter says something else."""

        text: str

    class Left(Message):
        """The user goes on with the list."""

    def compose(self) -> ComposeResult:
        yield Static("/", id="slash", markup=False)
        yield Input(placeholder=TOKENS, compact=True)
        yield Static("", id="left", markup=False)

    @property
    def text(self) -> str:
        return self.query_one(Input).value

    def open(self, example: str = TOKENS) -> None:
        self.query_one(Input).placeholder = example
        _let_type(self, self.query_one(Input))

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
        self.post_message(self.Filtered(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.set_class(bool(event.value.strip()), "-open")
        self.post_message(self.Left())

    def action_screen_back(self) -> None:
        self.clear()
        self.post_message(self.Left())


class FindBar(Input):
    """A search that is being typed; it hides when it has been sent or left."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    @dataclass
    class Closed(Message):
        """The search was sent, or left without one."""

        text: str | None

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(placeholder="search", id=id, compact=True)

    def open(self) -> None:
        """Let the user type; where the bar is open, the key is a sign like others."""
        if self.has_focus:
            raise SkipAction
        self.value = ""
        _let_type(self, self)

    async def action_submit(self) -> None:
        self._close(self.value)

    def action_screen_back(self) -> None:
        self._close(None)

    def _close(self, text: str | None) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed(text))


def _let_type(bar: Widget, line: Input) -> None:
    """Show a bar and give it the keys; the next one belongs to it already, however soon it comes."""
    bar.add_class("-open", update=False)
    # focus() waits until all messages before it are through, and only what is in sight can have the focus
    bar.app.stylesheet.update(bar)
    bar.screen.set_focus(line)
