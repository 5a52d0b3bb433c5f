"""What a command prints, as lines of which some open something; it is read in a thread, and as wide as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import events
from textual.message import Message

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import AT_ONCE, Painted, Part, RenderedLines, app_of
from skillgit.tui.widgets.paragraphs import disarmed, rendered
from skillgit.view.surface import Screen

if TYPE_CHECKING:
    from textual.binding import BindingType
    from textual.screen import Screen as Opened

    from skillgit.app.workspace.context import Context


class PrintRow(NamedTuple):
    """What a line opens, and what is said below while the cursor is on it."""

    opens: Callable[[], Opened[None]] | None = None
    note: str = ""


def _no_rows(_facts: Any) -> Mapping[int, PrintRow]:  # noqa: ANN401 - whatever was read
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """What the command of ``words`` reads and prints.

    ``rows`` are the lines that open something, by their number from 0, or from the last one back, which is -1.
    """

    name: str
    words: tuple[str, ...]
    read: Callable[[Context], Any]
    lines: Callable[[Any, Screen], Iterable[str]]
    rows: Callable[[Any], Mapping[int, PrintRow]] = _no_rows


class Printed(RenderedLines):
    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find", "wide")
    has_cursor: ClassVar[bool] = True

    @dataclass
    class NoteMoved(Message):
        """The cursor is on a line of which there is something to say, or nothing."""

        text: str

    shown_print: Print | None = None
    _facts: Any = None
    _rows: Mapping[int, PrintRow] = {}

    def show(self, view: Print) -> None:
        """Read and show ``view`` from its beginning; where it is shown already, the cursor stays."""
        is_same = self.shown_print is not None and self.shown_print.words == view.words
        self.shown_print = view
        if not is_same:
            self.cursor, self._facts, self._rows = 0, None, {}
            self.tell(f"reading {app_of(self).facts.glyphs.ellipsis}")
        app_of(self).read(view.read, then=self._take, on_error=self.fail, group=f"print-{self.id}")

    def _take(self, facts: object) -> None:
        if self.shown_print is None:
            return
        is_first = self._facts is None
        self._facts, self._rows = facts, self.shown_print.rows(facts)
        self.renew(scroll=is_first)
        self._say_note()

    @property
    def heavy(self) -> bool:
        return len(self._rows) > AT_ONCE

    def made(self) -> Sequence[Painted]:
        if self._facts is None or self.shown_print is None:
            return ()
        ink = replace(self.ink, width=self.room - 1)
        return [(Part(" "), *line) for line in rendered(self.shown_print.lines(disarmed(self._facts, ink), ink))]

    @property
    def _row(self) -> PrintRow:
        return self._rows.get(self.cursor) or self._rows.get(self.cursor - self.count, PrintRow())

    def _say_note(self) -> None:
        self.post_message(self.NoteMoved(self._row.note))

    def _go(self, line: int) -> None:
        before = self.cursor
        super()._go(line)
        if self.cursor != before:
            self._say_note()

    def action_list_open(self) -> None:
        opens = self._row.opens
        if opens is not None:
            self.app.push_screen(opens())

    def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.y
        if line < self.count:
            self._go(line)
            if event.chain > 1:
                self.action_list_open()
