"""The names of the tabs of a pane on one line; the mouse chooses one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from skillgit.tui.widgets.one_line import OneLine
from skillgit.tui.widgets.painted_lines import Part, app_of
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

_GAP = 2


class TabBar(OneLine):
    """Tabs, one of them open."""

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.names = tuple(names)

    def open(self, place: int) -> None:
        """Mark the tab at ``place`` as the open one."""
        sign = app_of(self).facts.glyphs.running
        parts = []
        for number, name in enumerate(self.names):
            here = number == place
            parts.append(Part(f"{sign if here else ' '}{name}{' ' * _GAP}", Style.REF if here else Style.FAINT))
        self.say(parts)

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the mouse."""
        at = 0
        for place, name in enumerate(self.names):
            at += 1 + len(name) + _GAP
            if event.x < at:
                self.post_message(self.Chosen(place))
                return
