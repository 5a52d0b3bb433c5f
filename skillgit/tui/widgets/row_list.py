"""A list in which a row is chosen: it says where its cursor stands, also to the mouse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Part, app_of
from skillgit.view import numbers
from skillgit.view.runs import steps
from skillgit.view.surface import Style
from skillgit.view.text import fit, one_line, pad, width, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.binding import BindingType
    from textual.strip import Strip

    from skillgit.index.rows import RunRow


_NARROWEST = 20  # columns of a message, however narrow the list is


class RowList(PaintedLines):
    BINDINGS: ClassVar[list[BindingType]] = bindings("list")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--chosen", "rows--chosen-blurred"}
    DEFAULT_CSS = """
    RowList {
        & > .rows--chosen { background: $chosen; text-style: bold; }
        & > .rows--chosen-blurred { background: $panel; }
    }
    """
    has_cursor: ClassVar[bool] = True

    _message: tuple[str, str, Style] = ("", "", Style.FAINT)

    @dataclass
    class Moved(Message):
        """The cursor stands on another row."""

        rows: RowList
        index: int

        @property
        def control(self) -> RowList:
            return self.rows

    class Opened(Moved):
        """A row is to be opened."""

    def tell(self, text: str, hint: str = "", style: Style = Style.FAINT) -> None:
        self._message = text, hint, style
        room = max(_NARROWEST, self.room - 2)
        super().tell("\n".join(wrap(text, room)), "\n ".join(wrap(hint, room - 6)), style)

    def lay_out(self) -> None:
        """Rows are painted for the width that there is; only their number is told again."""
        if self._message_parts and not self.count:
            self.tell(*self._message)
            return
        self.show_count(self.count)
        if self.count:
            self._go(self.cursor)

    def choose(self, index: int) -> None:
        """Put the cursor on a row, and tell even if it is there already: the row may be another one."""
        before, self.cursor = self.cursor, max(0, index)
        if self.count:
            self._go(index)
            if self.cursor == before:
                self.post_message(self.Moved(self, self.cursor))

    def _go(self, line: int) -> None:
        before = self.cursor
        super()._go(line)
        if self.count and self.cursor != before:
            self.post_message(self.Moved(self, self.cursor))

    def render_line(self, y: int) -> Strip:
        line = self.scroll_offset.y + y
        if self._message_parts or line != self.cursor or line >= self.count:
            return super().render_line(y)
        over = "rows--chosen" if self.has_focus else "rows--chosen-blurred"
        return self._strip(self.painted(line), self.get_component_rich_style(over))

    def on_focus(self) -> None:
        """Show whether keys move the cursor."""
        self.refresh()

    on_blur = on_focus

    def on_click(self, event: events.Click) -> None:
        index = self.scroll_offset.y + event.get_content_offset_capture(self).y
        if 0 <= index < self.count:
            self._go(index)
            if event.chain > 1:
                self.action_list_open()

    def action_list_open(self) -> None:
        if self.count:
            self.post_message(self.Opened(self, self.cursor))


_LEAST = 6
_TEST_FROM = 40  # columns from which on there is room for the score on the test split
_OUTCOME_FROM = 60  # columns from which on there is room for how a run ended


class RunList(RowList):
    """Runs, the one with the newest event first."""

    all: tuple[RunRow, ...] = ()
    default = ""

    @property
    def current(self) -> RunRow | None:
        return self.all[self.cursor] if self.all else None

    def show(self, runs: Sequence[RunRow], default: str, name: str) -> None:
        self.all, self.default = tuple(runs), default
        self.shown()
        self.show_count(len(self.all))
        self.choose(next((index for index, run in enumerate(self.all) if run.name == name), self.cursor))

    def painted(self, line: int) -> Painted:
        app, ink, run = app_of(self), self.ink, self.all[line]
        running = run.running_pid is not None
        back = f" {steps(run):>6}  {numbers.score(run.best_score)} "
        if ink.width >= _TEST_FROM and any(row.best_test is not None for row in self.all):
            back += f" {'' if run.best_test is None else f'test {numbers.score(run.best_test)}':<10} "
        if ink.width >= _OUTCOME_FROM:
            status = "running" if running else run.outcome or "unfinished"
            back += f" {status:<14}{numbers.age(run.updated, app.now):>4} "
        room = max(_LEAST, ink.width - width(back) - 2)
        name = pad(fit(one_line(run.name), room, ink.glyphs.ellipsis), room)
        return (
            Part(f"{ink.glyphs.running if running else ' '} ", Style.RUNNING),
            Part(name, Style.STRONG if run.name == self.default else ""),
            Part(back, Style.FAINT),
        )
