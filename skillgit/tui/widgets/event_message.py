"""The facts of an event as ``skillgit show`` tells them, and its commit message as git has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, Part, RenderedLines, app_of
from skillgit.tui.widgets.rendered import disarmed, rendered
from skillgit.view.screen import Style
from skillgit.view.text import inert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from skillgit.app.history.show import Shown


class EventMessage(RenderedLines):
    """An event in words."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._shown: Shown | None = None
        self._message = ""

    def show(self, shown: Shown) -> None:
        """Show ``shown``; its difference has a place of its own."""
        self._shown, self._message = disarmed(replace(shown, diff="", message="")), inert(shown.message)
        self.shown()
        self.lay_out()
        self.scroll_to(y=0, animate=False)

    def made(self) -> Sequence[Painted]:
        """Return the lines for the width that there is."""
        if self._shown is None:
            return ()
        from skillgit.view import show as full  # noqa: PLC0415 - slow to load, and the history is painted first

        ink = replace(self.ink, width=max(20, self.room - 2))
        facts = rendered(full.lines(self._shown, ink, app_of(self).now, ink))
        message = [(Part(line, Style.FAINT),) for line in self._message.splitlines()]
        return [(Part(" "), *line) for line in (*facts, (), *message)]
