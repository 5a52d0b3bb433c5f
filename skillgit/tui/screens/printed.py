"""What commands print of a run or a version, as a screen: its text, why a rule is there, items, cost, settings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from skillgit.tui.actions import SearchScreen
from skillgit.tui.keymap import bindings
from skillgit.tui.screens.dialogs import CopyScreen
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine, TabBar
from skillgit.tui.widgets.painted_lines import PaintedLines, Part, app_of
from skillgit.tui.widgets.printed import Print, Printed
from skillgit.tui.widgets.shown_text import broken, on_one_line
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from textual.binding import BindingType

_NOTE = 2  # lines of what is said of the line under the cursor


class PrintedScreen(SearchScreen):
    """One print at a time; ``[`` and ``]`` turn to the others."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("printed", "tabs", "find")
    DEFAULT_CSS = """
    PrintedScreen {
        #bar { height: 1; }
        #bar OneLine { background: $panel; }
        #note, #more { background: $panel; }
    }
    """

    def __init__(self, title: str, prints: Sequence[Print]) -> None:
        super().__init__()
        self._heading, self._prints, self._at = title, prints, 0

    def compose(self) -> ComposeResult:
        yield OneLine(id="head")
        if len(self._prints) > 1:
            with Horizontal(id="bar"):
                yield TabBar([view.name for view in self._prints], id="tabs")
        yield Printed(id="lines")
        yield OneLine(id="note")
        yield OneLine(id="more")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.searched.focus()
        self._turn_to(0)

    def reload(self) -> None:
        self._turn_to(self._at)

    def _turn_to(self, index: int) -> None:
        self._at = index % len(self._prints)
        facts, view = app_of(self).facts, self._prints[self._at]
        for bar in self.query(TabBar):
            bar.open(self._at)
        command = [Part(f"{on_one_line(self._command, facts)} ", Style.FAINT)]
        self.query_one("#head", OneLine).say([Part(f" {on_one_line(self._heading, facts)}", Style.STRONG)], command)
        self.query_one(Printed).show(view)

    @property
    def _command(self) -> str:
        return shlex.join(("skillgit", *self._prints[self._at].words))

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self._turn_to(message.index)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Have no keys for tabs where there is one print."""
        del parameters
        return len(self._prints) > 1 or not action.startswith("tab_")

    def action_tab_next(self) -> None:
        self._turn_to(self._at + 1)

    def action_tab_prev(self) -> None:
        self._turn_to(self._at - 1)

    def on_printed_note_moved(self, message: Printed.NoteMoved) -> None:
        """Show the end of a note that is longer than there is room for: a prompt asks at its end as a rule."""
        facts, columns = app_of(self).facts, max(20, self.size.width - 2)
        text = on_one_line(message.text, facts)
        if len(text) > (room := _NOTE * columns - columns // 4):
            text = f"{facts.glyphs.ellipsis} {text[2 - room :].lstrip()}"
        lines = [text[start:end] for start, end in broken(text, columns)]
        for name, line in zip(("note", "more"), (*lines, "", "")[:_NOTE], strict=True):
            self.query_one(f"#{name}", OneLine).say([Part(f" {line}")])

    @property
    def searched(self) -> PaintedLines:
        return self.query_one(Printed)

    def action_copy_menu(self) -> None:
        widget = self.query_one(Printed)
        line = widget.text_of(widget.cursor).strip() if widget.count else ""
        choices = [("c", "command", self._command), ("l", "line", line)]
        self.app.push_screen(CopyScreen([choice for choice in choices if choice[2]]), self.copy)
