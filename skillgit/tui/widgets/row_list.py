"""Lists in which a row is chosen: of runs, and of events page by page as they are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.message import Message
from textual.strip import Strip

from skillgit.app.history.browse import EventPage, EventStretch
from skillgit.domain.event_kinds import EventKind
from skillgit.index.rows import LogRow, RunRow
from skillgit.tui.keymap import bindings
from skillgit.tui.start import PAGE
from skillgit.tui.widgets.curve import run_look
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Part, app_of
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.runs import RUNS
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Cell, Column, Surface
from skillgit.view.text import fit, one_line, pad, width, wrap

if TYPE_CHECKING:
    from textual.binding import BindingType


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


_NAME_LEAST = 14  # columns of a run's name before another column gives way to it


@dataclass(frozen=True, slots=True)
class _ShownColumn:
    """A column of a list as a screen shows it: the text of every row, and how wide it is."""

    texts: tuple[str, ...]
    width: int
    is_right: bool
    rank: int


class RunList(RowList):
    """Runs, the one with the newest event first."""

    all: tuple[RunRow, ...] = ()
    default = ""
    marked: tuple[str, ...] = ()  # runs whose curves are drawn over each other, in that order
    _columns: Sequence[_ShownColumn] = ()

    @property
    def current(self) -> RunRow | None:
        return self.all[self.cursor] if self.cursor < len(self.all) else None

    def toggle_mark(self) -> None:
        run = self.current
        if run is not None:
            names = tuple(name for name in self.marked if name != run.name)
            self.marked = names if run.name in self.marked else (*names, run.name)
            self.refresh()

    def show(self, runs: Sequence[RunRow], default: str, name: str) -> None:
        self.all, self.default = tuple(runs), default
        columns, cells = RUNS.drawn(runs, Surface.SCREEN, now=app_of(self).now)
        self._columns = list(map(_shown_column, columns, zip(*cells, strict=True)))
        self.shown()
        self.show_count(len(self.all))
        self.choose(next((index for index, run in enumerate(self.all) if run.name == name), self.cursor))

    def painted(self, line: int) -> Painted:
        ink, run = self.ink, self.all[line]
        running = run.running_pid is not None
        names, *rest = self._columns
        visible = set[int]()
        room = ink.width - 2
        for column in sorted(rest, key=lambda column: column.rank):
            if room - column.width - 2 < min(names.width, _NAME_LEAST):
                break
            visible.add(id(column))
            room -= column.width + 2
        back = "".join(
            f"  {pad(column.texts[line], column.width, right=column.is_right)}"
            for column in rest
            if id(column) in visible
        )
        name = pad(fit(names.texts[line], room, ink.glyphs.ellipsis), room)
        sign, style = (ink.glyphs.running if running else " "), Style.RUNNING
        if run.name in self.marked:
            sign, style = run_look(self.marked.index(run.name), ink)
        return (
            Part(f"{sign} ", style),
            Part(name, Style.STRONG if run.name == self.default else ""),
            Part(back, Style.FAINT),
        )


def _shown_column(column: Column[RunRow], cells: Sequence[Cell]) -> _ShownColumn:
    caption = f"{column.head} " if column.caption else ""
    texts = tuple(f"{caption}{one_line(cell.text)}" if cell.text else "" for cell in cells)
    return _ShownColumn(texts, max(map(width, texts), default=0), column.right, column.rank)


_KEPT: Final = 25  # pages that are kept


class EventList(RowList):
    """Events, newest first, one ``mark`` for comparison; ``want`` gets the offset of a page that is needed."""

    graph, runs = True, False
    mark = checkout = ""

    def __init__(self, want: Callable[[int], None], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._want = want
        self._pages: dict[int, tuple[LogRow, ...]] = {}
        self._asked: set[int] = set()

    def event_at(self, index: int) -> LogRow | None:
        """Return the event at ``index``; None while it is being read."""
        offset = index // PAGE * PAGE
        page = self._pages.get(offset)
        if page is None:
            if offset not in self._asked:
                self._asked.add(offset)
                self.call_later(self._want, offset)
            return None
        return page[index - offset] if 0 <= index - offset < len(page) else None

    @property
    def current(self) -> LogRow | None:
        return self.event_at(self.cursor) if self.count else None

    def begin(self, page: EventPage, *, cursor: int) -> None:
        self._pages = {page.offset: page.rows}
        self._asked.clear()
        self.shown()
        self.show_count(page.total)
        self.choose(min(cursor, max(0, page.total - 1)))

    def add(self, stretch: EventStretch) -> None:
        self._pages[stretch.offset] = stretch.rows
        self._asked.discard(stretch.offset)
        while len(self._pages) > _KEPT:
            del self._pages[max(self._pages, key=lambda offset: abs(offset - self.cursor))]
        self.refresh()
        if stretch.offset <= self.cursor < stretch.offset + len(stretch.rows):
            self.post_message(self.Moved(self, self.cursor))

    def painted(self, line: int) -> Painted:
        event, app = self.event_at(line), app_of(self)
        if event is None:
            return (Part(f" {app.facts.glyphs.ellipsis}"),)
        setting = Setting(
            ink=self.ink, now=app.now, graph=self.graph, mark=self.mark, checkout=self.checkout, runs=self.runs
        )
        return event_row(event, self.event_at(line - 1) if line else None, setting)


_DIM = frozenset({EventKind.REJECTED, EventKind.SKIPPED, EventKind.RUN_FINISHED, EventKind.MEASURED})
_DELTA_FROM = 58
"""Columns from which on there is room for the difference of scores, and for more than one word on the state."""
_OID_FROM = 76  # columns from which on there is room for the commit
_TITLE_LEAST = 8  # columns of a title, however narrow the list is


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What rows look like besides what they tell; ``mark`` and ``checkout`` are commits."""

    ink: Screen
    now: datetime
    graph: bool = True
    mark: str = ""
    checkout: str = ""
    runs: bool = False


def event_row(row: LogRow, above: LogRow | None, setting: Setting) -> Painted:
    """Return the parts of an event's row; ``above`` is the event in the row above it."""
    entry, ink = Entry.of_row(row), setting.ink
    front = (
        Part(ink.glyphs.running if row.commit == setting.mark else " ", Style.REVERTED),
        *_sign(row, above, setting),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(f"{ink.encodable(cells.score(entry)):<{7 if ink.unicode else 8}}", cells.style(entry)),
        *(
            [Part(f"{numbers.delta(entry.delta) if entry.is_measured else '':<7}", Style.FAINT)]
            if ink.width >= _DELTA_FROM
            else []
        ),
        *([Part(f"{one_line(row.run)}  ", Style.FAINT)] if setting.runs else []),
    )
    back = (
        Part(_state(row, setting), Style.REF),
        Part(f"{numbers.age(row.time, setting.now):>4}", Style.FAINT),
        *([Part(f"  {numbers.short(row.commit)}", Style.OID)] if ink.width >= _OID_FROM else []),
        Part(" "),
    )
    room = max(_TITLE_LEAST, ink.width - sum(width(part.text) for part in (*front, *back)))
    words = f"{cells.made_of(row)}: {row.title}" if row.lines else row.title
    title = fit(ink.encodable(one_line(words)), room, ink.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.kind in _DIM else ""), *back)


def _state(row: LogRow, setting: Setting) -> str:
    held_mark = " held" if row.commit == setting.checkout else ""
    best = " best" if row.is_best else ""
    return best + held_mark if setting.ink.width >= _DELTA_FROM else held_mark or best


def _sign(row: LogRow, above: LogRow | None, setting: Setting) -> Iterator[Part]:
    entry, glyphs = Entry.of_row(row), setting.ink.glyphs
    sign, style = cells.glyph(entry, glyphs), cells.style(entry)
    if not setting.graph:
        yield Part(f"{sign} ", style)
    elif not cells.LOOKS[row.kind].beside:
        yield Part(f"{sign}   ", style)
    elif (
        row.kind == EventKind.SLOW_PROPOSED
        and above is not None
        and (above.kind, above.step) == (EventKind.SLOW_MERGED, row.step)
    ):
        yield Part(glyphs.branch, Style.FAINT)
        yield Part(f"{sign}  ", style)
    else:
        yield Part(f"{glyphs.line if above is not None else ' '} ", Style.FAINT)
        yield Part(f"{sign} ", style)
