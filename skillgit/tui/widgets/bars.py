"""The lines in which one types: a filter, or what to find."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.actions import SkipAction
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

    class Closed(Message):
        """The search was sent, or left without one."""

        def __init__(self, text: str | None) -> None:
            super().__init__()
            self.text = text

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
