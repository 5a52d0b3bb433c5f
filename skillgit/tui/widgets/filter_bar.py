"""The line in which one types what narrows the history, with how much of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from skillgit.tui.filter_language import TOKENS
from skillgit.tui.keymap import bindings

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class FilterBar(Horizontal):
    """A filter; it is asked for while it is typed, and stays in sight as long as it narrows anything."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    class Changed(Message):
        """The filter says something else."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Closed(Message):
        """The user goes on with the list."""

    def compose(self) -> ComposeResult:
        """Return the line and the count."""
        yield Static("/", id="slash", markup=False)
        yield Input(placeholder=TOKENS, compact=True)
        yield Static("", id="left", markup=False)

    @property
    def text(self) -> str:
        """What is typed."""
        return self.query_one(Input).value

    def open(self) -> None:
        """Let the user type; the next key belongs here already, however soon it comes."""
        self.add_class("-open", update=False)
        # focus() waits until all messages before it are through, and only what is in sight can have the focus
        self.app.stylesheet.update(self)
        self.screen.set_focus(self.query_one(Input))

    def say(self, told: str, *, wrong: bool = False) -> None:
        """Tell how much is left, or what is wrong with the filter."""
        left = self.query_one("#left", Static)
        left.update(told)
        left.set_class(wrong, "-wrong")

    def clear(self) -> None:
        """Narrow nothing any more, and hide."""
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
        """Drop the filter."""
        self.clear()
        self.post_message(self.Closed())
