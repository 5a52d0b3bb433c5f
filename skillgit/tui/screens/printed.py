"""What commands print of a run or a version, as a screen: its text, why a rule is there, items, cost, settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from skillgit.domain.cost import Grouping
from skillgit.lazy import loaded_on_use
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import Choice, SearchScreen
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine, TabBar
from skillgit.tui.widgets.painted_lines import PaintedLines, RenderedLines, on_one_line
from skillgit.view.surface import Style
from skillgit.view.text import broken, one_line

with loaded_on_use():
    from skillgit.tui import prints
    from skillgit.tui.screens import item as items

Prints = Mapping[str, str]
"""Names of tabs to the words of commands, in which ``{run}`` and ``{at}`` stand for the run and the event."""
TEXT: Final[Prints] = {"Text": "blame {at}"}
SUMMARY: Final[Prints] = {"In short": "report {run}"}
SETTINGS: Final[Prints] = {"Settings": "show {run}/v0 --settings"}
ITEMS: Final[Prints] = {
    "Items": "items {run}",
    "Noisy": "items {run} --flaky",
    "Never solved": "items {run} --never-solved",
    "With rejected": "items {run} --rejected",
    "Checks": "items {run} --checks",
    "Models": "items {run} --models",
}
COST: Final[Prints] = {"In all": "cost {run}", **{by.capitalize(): f"cost {{run}} --by {by}" for by in Grouping}}


class Printed(RenderedLines["prints.Printout"]):
    """What a command prints, as lines of which some open something."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("wide")
    has_cursor: ClassVar[bool] = True
    action_list_open = PaintedLines.open_row
    words: prints.Words = ()
    _printed_in = 0  # columns

    def show_print(self, words: prints.Words) -> None:
        """Read and show what the command of ``words`` prints; where it is shown already, the cursor stays."""
        if self.words != words:
            self.words, self.facts, self.cursor = words, None, 0
            self.tell_reading()
        self._printed_in = self.size.width
        if self._printed_in:  # else it is read once it is in sight
            then, fail = self._take_print, self.fail
            ink = replace(self.ink, width=self.room - 1)
            app_of(self).read(prints.read, words, ink, then=then, on_error=fail, group=f"print-{self.id}")

    def _take_print(self, printout: prints.Printout) -> None:
        self.show(printout, from_top=self.facts is None)
        self.post_message(self.Moved(self, self.cursor))

    def made(self, facts: prints.Printout) -> list[object]:
        return list(facts.lines)

    def on_resize(self) -> None:
        """Print it for the width that there is."""
        if self.words and self.size.width not in {0, self._printed_in}:
            self.show_print(self.words)

    @property
    def lead(self) -> prints.Lead | None:
        leads = self.facts.leads if self.facts is not None else {}
        return leads.get(self.cursor) or leads.get(self.cursor - self.count)

    @on(PaintedLines.Opened)
    def _open(self) -> None:
        lead = self.lead
        if lead is not None and lead.item:
            self.app.push_screen(items.ItemScreen(lead.item, lead.title))
        elif lead is not None and lead.words:
            self.app.push_screen(PrintedScreen(lead.title, {lead.words[0].capitalize(): lead.words}))


_NOTE = 2  # lines of what is said of the line under the cursor


class PrintedScreen(SearchScreen):
    """One print at a time; ``[`` and ``]`` turn to the others."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("printed", "tabs", "find")

    action_screen_close = SearchScreen.action_screen_back

    def __init__(self, title: str, prints: Mapping[str, prints.Words]) -> None:
        super().__init__()
        self._heading, self._names, self._words, self._at = title, list(prints), list(prints.values()), 0

    def compose(self) -> ComposeResult:
        yield OneLine(id="head")
        if len(self._names) > 1:
            with Horizontal(id="bar"):
                yield TabBar(self._names, id="tabs")
        yield Printed(id="lines")
        yield OneLine(id="note")
        yield OneLine(id="more")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.searched.focus()
        self.turn(0)

    def turn(self, by: int) -> None:
        self._at = (self._at + by) % len(self._words)
        for bar in self.query(TabBar):
            bar.open(self._at)
        facts = app_of(self).facts
        command = facts.paint(Style.FAINT, f"{one_line(self._command)} ")
        self.say("head", facts.paint(Style.STRONG, f" {one_line(self._heading)}"), command)
        self.query_one(Printed).show_print(self._words[self._at])

    def reload(self) -> None:
        self.turn(0)

    @property
    def _command(self) -> str:
        return shlex.join(("skillgit", *self._words[self._at]))

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self.turn(message.index - self._at)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Have no keys for tabs where there is one print."""
        del parameters
        return len(self._words) > 1 or not action.startswith("tab_")

    def action_tab_next(self) -> None:
        self.turn(1)

    def action_tab_prev(self) -> None:
        self.turn(-1)

    @on(PaintedLines.Moved)
    def _show_note(self) -> None:
        """Show the end of a note that is longer than there is room for: a prompt asks at its end as a rule."""
        facts, room = app_of(self).facts, max(20, self.size.width - 2)
        lead = self.query_one(Printed).lead
        text = on_one_line(lead.note, facts) if lead is not None else ""
        if len(text) > (most := _NOTE * room - room // 4):
            text = f"{facts.glyphs.ellipsis} {text[2 - most :].lstrip()}"
        lines = [text[start:end] for start, end in broken(text, room)]
        for name, line in zip(("note", "more"), (*lines, "", "")[:_NOTE], strict=True):
            self.say(name, f" {line}")

    def choices(self) -> list[Choice]:
        widget = self.query_one(Printed)
        line = widget.text_of(widget.cursor).strip() if widget.count else ""
        return [("c", "command", self._command), ("l", "line", line)]
