"""The line in which one types what to look for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.actions import SkipAction
from textual.message import Message
from textual.widgets import Input

from skillgit.tui.keymap import bindings

if TYPE_CHECKING:
    from textual.binding import BindingType


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
        """Let the user type; the next key belongs here already, as in the filter.

        Raises:
            SkipAction: It is open, and its key is a sign like others.
        """
        if self.has_focus:
            raise SkipAction
        self.value = ""
        self.add_class("-open", update=False)
        self.app.stylesheet.update(self)
        self.screen.set_focus(self)

    async def action_submit(self) -> None:
        """Send what was typed."""
        self._close(self.value)

    def action_screen_back(self) -> None:
        """Leave the search."""
        self._close(None)

    def _close(self, text: str | None) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed(text))
