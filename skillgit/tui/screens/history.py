"""The first screen: runs, the history of one of them, its scores, and the event under the cursor in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial, partialmethod
from typing import ClassVar, Final

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import ScreenResume
from textual.timer import Timer
from textual.widgets import Input

from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import SkillgitError, UsageError
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.rows import LogRow, RunRow
from skillgit.lazy import loaded_on_use
from skillgit.tui.first_picture import PAGE, STEPS, StartPicture, named
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import ChoiceScreen
from skillgit.tui.screens.event import Detail, VersionScreen
from skillgit.tui.widgets.curve import ScorePlot, overlaid, run_look
from skillgit.tui.widgets.lines import FilterBar, FindBar, KeyLine
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Part, RowList, columns
from skillgit.verbs import browse
from skillgit.verbs.browse import EventPage, EventStretch, Overview, curves
from skillgit.verbs.filter_language import TOKENS, narrowed
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.curve import Axis, RunCurve
from skillgit.view.event_marks import Entry
from skillgit.view.log import is_tied
from skillgit.view.numbers import count, money, plural
from skillgit.view.runs import RUNS, on_test
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Column, Surface
from skillgit.view.text import fit, one_line, pad, width

with loaded_on_use():
    from skillgit.tui.screens import compare, live

SETTLES: Final = 0.05
"""Seconds that the cursor rests before the event under it is read in full."""
_TITLES: Final = {"runs": "1 Runs", "events": "2 History", "scores": "3 Score", "detail": "0 Detail"}
PANES: Final = tuple(_TITLES)
_HIDING: Final = frozenset({"-tiny", "-narrow", "-short", "-full"})  # where panes are out of sight that have no keys
_OF_RUNS: Final = ("copy", "editor", "evidence", "find", "history", "pager", "plot", "run", "version")
"""What the ids of keys begin with that do something to a run, or to a part of it."""
_ORDERS: Final = (
    ("n", "newest", "as they are"),
    ("s", "score", "-score"),
    ("g", "gain", "-gain"),
    ("t", "test", "-test"),
    ("m", "model", "model"),
    ("c", "cost", "-cost"),
    ("k", "tokens", "-tokens"),
    ("a", "name", "name"),
)
"""A letter, what it sorts runs by, and the key of ``skillgit runs --sort``."""


class HistoryScreen(VersionScreen):
    """Runs, history, scores and detail; it begins with ``run``, or with the default run.

    On a narrow terminal only the pane with the keys is in sight.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("history", "tabs")
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012 - likewise

    AUTO_FOCUS = "#events"

    def __init__(self, run: str = "", start: StartPicture | None = None) -> None:
        super().__init__(classes="-at-events")
        self._run, self._start = run, start
        self._overview: Overview | None = None
        self._sort = self._run_filter = ""
        self._filters_runs = self._shown = self._is_empty = False
        self._axis = Axis.STEP
        self._marked: LogRow | None = None
        self._rejected = self._slow = True
        self._narrowing = Selection(run=run)
        self._waiting: Timer | None = None

    def compose(self) -> ComposeResult:
        # what the size asks for, before anything is styled: set later, everything would be styled a second time
        for breakpoints, size in zip(
            (self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS), self.app.size, strict=True
        ):
            self.add_class(max(point for point in breakpoints if point[0] <= size)[1], update=False)
        with Horizontal(id="panes"):
            with Vertical(id="side"):
                yield RunList(id="runs")
                yield EventList(self._want, id="events")
                yield ScorePlot(id="scores")
            yield Detail(id="detail")
        yield FilterBar(id="filter")
        yield FindBar(id="find")
        yield KeyLine()

    def on_mount(self) -> None:
        self.name_panes()
        if self._start is None:
            self.runs.tell_reading()
            self.events.tell_reading()
            self.reload()
            return
        start, self._start = self._start, None
        self._show_overview(start.overview)
        self._narrowing = Selection(run=self._run)
        if start.page is not None:
            self._show_page(start.page)
            self._show_scores(start.scores)

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Leave styles as they are when the screen is shown for the first time: all of them have been made just now."""
        event.refresh_styles = self._shown
        self._shown = True

    @property
    def runs(self) -> RunList:
        return self.query_one(RunList)

    @property
    def events(self) -> EventList:
        return self.query_one(EventList)

    @property
    def current(self) -> LogRow | None:
        return self.events.current

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say whether ``action`` is possible now: without runs nothing is that is done to one; comparisons need two."""
        if action == "history_compare_base":
            return self.current is not None and self.current.base is not None
        if action == "history_compare_best":
            return self.runs.current is not None and bool(self.runs.current.best_version)
        return not (self._is_empty and action.startswith(_OF_RUNS)) and super().check_action(action, parameters)

    # the panes

    def name_pane(self, name: str, *notes: str) -> None:
        self.query_one(f"#{name}").border_title = f"{_TITLES[name]}  {app_of(self).facts.dotted(notes)}".rstrip()

    def name_panes(self, *, fresh: bool = True, unreadable: int = 0) -> None:
        for name in _TITLES:
            self.name_pane(name)
        wrong = (f"{unreadable} cannot be read" if unreadable else "", "" if fresh else "index in memory")
        self.runs.border_subtitle = ", ".join(filter(None, wrong))

    @property
    def at(self) -> str:
        ids = [node.id for node in self.focused.ancestors_with_self] if self.focused is not None else []
        return next((name for name in PANES if name in ids), "events")

    def on_descendant_focus(self) -> None:
        self._bring(self.at)

    def _bring(self, name: str) -> None:
        self.remove_class(*(f"-at-{pane}" for pane in PANES if pane != name), update=False)
        self.add_class(f"-at-{name}", update=False)
        if self.classes & _HIDING:
            self._restyle()

    def _restyle(self) -> None:
        # to style the whole screen again would take longer than all else that a key does
        self.app.stylesheet.update_nodes([self.query_one(f"#{name}") for name in ("side", *PANES)])

    def go(self, name: str) -> None:
        self._bring(name)
        (self.detail.view if name == "detail" else self.query_one(f"#{name}")).focus()

    action_pane_1 = partialmethod(go, "runs")
    action_pane_2 = partialmethod(go, "events")
    action_pane_3 = partialmethod(go, "scores")
    action_pane_main = partialmethod(go, "detail")

    def _walk(self, by: int) -> None:
        self.go(PANES[(PANES.index(self.at) + by) % len(PANES)])

    action_pane_next = partialmethod(_walk, 1)
    action_pane_prev = partialmethod(_walk, -1)

    def _fill(self, *, full: bool) -> bool:
        """Give one pane the whole screen or none, and say whether one had it."""
        before = self.has_class("-full")
        self.set_class(full, "-full", update=False)
        self._restyle()
        return before

    def action_pane_grow(self) -> None:
        self._fill(full=True)

    def action_pane_shrink(self) -> None:
        self._fill(full=False)

    def action_screen_back(self) -> None:
        if self._fill(full=False):
            return
        if not self.events.has_focus:
            self.events.focus()
        elif self.query_one(FilterBar).text:
            self.query_one(FilterBar).clear()

    # runs and their scores

    def reload(self) -> None:
        """Read runs and history again; the cursor stays on its event, or on the newest one."""
        app_of(self).read(browse.overview, then=self._show_runs, on_error=self._without_runs, group="runs")

    def _show_runs(self, overview: Overview) -> None:
        before = self._run
        self._show_overview(overview)
        if overview.runs:
            self._read_list(keep=before == self._run)
            self._read_scores()

    def _show_overview(self, overview: Overview) -> None:
        self.events.checkout = overview.checkout
        self.name_panes(fresh=overview.fresh, unreadable=len(overview.failures))
        if self._is_empty != (not overview.runs):
            self._is_empty = not overview.runs
            self.refresh_bindings()
        if not overview.runs:
            text = f"{overview.failures[0][0]}: {overview.failures[0][1]}" if overview.failures else "no runs yet"
            self.runs.tell("")
            self.events.tell(one_line(text), "skillgit fsck" if overview.failures else "skillgit train")
            self.detail.clear()
            return
        self._overview = overview
        name = named(overview.runs, self._run)
        if self._run and not name:
            self.notify(f"there is no run '{self._run}'", severity="warning", markup=False)
        self._run = name or overview.run
        self._list_runs()
        if any(run.running_pid is not None for run in overview.runs):
            self.name_pane("runs", "L live")
        self._say_counts()

    def _without_runs(self, error: SkillgitError) -> None:
        self.runs.tell("")
        self.events.fail(error)
        self.detail.clear()

    def _say_counts(self) -> None:
        run, glyphs = self.runs.current, app_of(self).facts.glyphs
        if run is not None:
            self.name_pane(
                "events", f"{run.versions} v", f"{run.rejected} {glyphs.rejected}", f"{run.merges} {glyphs.slow}"
            )

    def _list_runs(self) -> None:
        """Show the runs that the filter lets through, in the order that was asked for."""
        overview, bar = self._overview, self.query_one(FilterBar)
        if overview is None:
            return
        try:
            rows = RUNS.chosen(overview.runs, filters=self._run_filter.split(), sort=self._sort)
        except UsageError as error:
            bar.say(str(error), wrong=True)
            return
        if self._filters_runs:
            bar.say(f"{len(rows):,} of {len(overview.runs):,}")
        self.runs.show(rows, overview.run, self._run)
        if not rows:
            self.runs.tell("no matching runs")
        self.name_pane("runs", f"by {self._sort.removeprefix('-')}" if self._sort else "", self._run_filter)

    def action_runs_sort(self) -> None:
        def answered(key: str | None) -> None:
            if key is not None:
                self._sort = "" if key == _ORDERS[0][2] else key
                self._list_runs()

        self.app.push_screen(ChoiceScreen("Sort the runs by", _ORDERS), answered)

    @on(PaintedLines.Moved, "#runs")
    def _run_moved(self) -> None:
        run = self.runs.current
        if run is not None and run.name != self._run:
            self._run = run.name
            self._say_counts()
            self._read_list(keep=False)
            self._read_scores()

    @on(PaintedLines.Opened, "#runs")
    def _to_events(self) -> None:
        self.events.focus()

    @property
    def _overlays(self) -> bool:
        """Whether the plot shows curves, and not one run with what happened at each step."""
        return bool(self.runs.marked) or self._axis is not Axis.STEP

    def _read_scores(self) -> None:
        read, ignore = app_of(self).read, lambda _: None
        if self._overlays:
            names = list(self.runs.marked) or [self._run]
            read(curves, names, self._axis, then=self._show_curves, on_error=ignore, group="scores")
        else:
            read(browse.score_line, self._run, STEPS, then=self._show_scores, on_error=ignore, group="scores")

    def _show_scores(self, reply: tuple[tuple[Point, ...], int]) -> None:
        points, apart = reply
        self.query_one(ScorePlot).show(points)
        run = self.runs.current
        test_score = on_test(run, app_of(self).facts) if run is not None and run.name == self._run else ""
        self.name_pane("scores", f"1 step in {apart}" if apart > 1 else "", f"test {test_score}" if test_score else "")

    def _show_curves(self, curves: Sequence[RunCurve]) -> None:
        plot, by_dollar = self.query_one(ScorePlot), self._axis is Axis.DOLLAR
        lines = [[(point.x, point.score) for point in curve.points] for curve in curves]
        plot.cursor = None
        label = money if by_dollar else lambda number: count(round(number))
        plot.show_runs(overlaid(lines, app_of(self).facts), axis=self._axis.value, label=label)
        self.name_pane("scores", plural(len(curves), "run") if self.runs.marked else "", f"by {self._axis.value}")

    def action_plot_axis(self) -> None:
        axes = list(Axis)
        self._axis = axes[(axes.index(self._axis) + 1) % len(axes)]
        self._read_scores()

    # the history

    def _read_list(self, *, keep: bool = True) -> None:
        row = self.current if keep and self.events.cursor else None
        base = Selection(run=self._run, with_rejected=self._rejected, slow=self._slow)
        bar = self.query_one(FilterBar)
        try:
            self._narrowing = narrowed(base, "" if self._filters_runs else bar.text, app_of(self).now)
        except UsageError as error:
            bar.say(str(error), wrong=True)
            return
        read, request = app_of(self).read, (self._narrowing, 0, PAGE, row.commit if row is not None else "")
        read(browse.page, *request, then=self._show_page, on_error=self.events.fail, group="page")

    def _show_page(self, page: EventPage) -> None:
        events = self.events
        events.runs = not self._narrowing.run
        cursor = events.cursor if page.position is None and page.offset else page.position or 0
        events.begin(page, cursor=cursor)
        if not self._filters_runs:
            self.query_one(FilterBar).say(f"{page.total:,} of {page.everything:,}")
        if not page.total:
            why = f": {page.why_empty}" if page.why_empty else ""
            events.tell(f"no matching events{why}" if page.everything else "no events yet", "esc drops the filter")
            self.detail.clear()

    def _want(self, offset: int) -> None:
        then = partial(self._add_stretch, self._narrowing)
        request = (self._narrowing, offset, PAGE, self.events.count)
        app_of(self).read(browse.stretch, *request, then=then, on_error=self.events.fail)

    def _add_stretch(self, narrowing: Selection, stretch: EventStretch) -> None:
        if narrowing == self._narrowing:
            self.events.add(stretch)

    @on(PaintedLines.Moved, "#events")
    def _event_moved(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(SETTLES, self._show_event)

    def _show_event(self) -> None:
        self._waiting = None
        row = self.current
        self.refresh_bindings()
        if row is not None:
            if not self._overlays:
                self.query_one(ScorePlot).point_at(row)
            self.detail.show(row)

    @on(PaintedLines.Opened, "#events")
    def _event_opened(self) -> None:
        self.detail.view.focus()

    @on(FilterBar.Left)
    def _to_filtered(self) -> None:
        (self.runs if self._filters_runs else self.events).focus()

    @on(FilterBar.Filtered)
    def _filtered(self, message: FilterBar.Filtered) -> None:
        if self._filters_runs:
            self._run_filter = message.text
            self._list_runs()
        else:
            self._read_list()

    def action_find_open(self) -> None:
        """Filter the history; in the detail, search its text. Where someone types, the key is a sign like others."""
        if isinstance(self.focused, Input):
            raise SkipAction
        if self.detail.has_focus_within:
            self.query_one(FindBar).open()
            return
        bar, runs = self.query_one(FilterBar), self.runs.has_focus
        if runs != self._filters_runs and bar.text:
            bar.clear()
        self._filters_runs = runs
        bar.open("score>.8 model=NAME cost<2 state=improved" if runs else TOKENS)

    def action_find_next(self) -> None:
        (self.detail.view.action_find_next if self.detail.has_focus_within else self.events.action_list_down)()

    def action_find_prev(self) -> None:
        (self.detail.view.action_find_prev if self.detail.has_focus_within else self.events.action_list_up)()

    def action_history_mark(self) -> None:
        """Mark the event under the cursor; among the runs, the run, whose curve is drawn with those of other ones."""
        if self.runs.has_focus:
            self.runs.toggle_mark()
            self._read_scores()
        elif self.current is not None:
            again = self._marked is not None and self._marked.commit == self.current.commit
            self._marked = None if again else self.current
            self.events.mark = "" if again else self.current.commit
            self.events.refresh()

    def action_history_compare(self) -> None:
        if self._marked is None:
            self.notify("mark an event first: w", severity="warning")
        elif self.current is not None and self._marked.commit == self.current.commit:
            self.notify("that is the marked one itself", severity="warning")
        elif self.current is not None:
            older, newer = sorted((self._marked, self.current), key=lambda row: (row.time, row.version or 0))
            self.app.push_screen(compare.CompareScreen(str(older.address), str(newer.address)))

    def action_history_compare_base(self) -> None:
        row = self.current
        if row is not None:
            self.app.push_screen(compare.CompareScreen(f"{row.run}/{version_label(row.base)}", str(row.address)))

    def action_history_compare_best(self) -> None:
        """Show the items of the seed and of the run's best version, those first that training broke."""
        run = self.runs.current
        if run is not None:
            best = f"{run.name}/{version_label(run.best_version)}"
            self.app.push_screen(compare.CompareScreen(f"{run.name}/v0", best, "items"))

    def action_history_toggle_rejected(self) -> None:
        self._rejected = not self._rejected
        self._read_list()

    def action_history_toggle_slow(self) -> None:
        self._slow = not self._slow
        self._read_list()

    def action_history_graph(self) -> None:
        self.events.graph = not self.events.graph
        self.events.refresh()

    def action_history_use(self) -> None:
        if self._run:
            app_of(self).command(["use", self._run])

    def action_live_open(self) -> None:
        """Watch the run that is open if it is trained now, else another one that is."""
        run = self.runs.current
        running = run is not None and run.running_pid is not None
        self.app.push_screen(live.LiveScreen(self._run if running else "", last=self._run))


# the lists in the panes

_NAME_LEAST = 14  # columns of a run's name before another column gives way to it


class RunList(RowList):
    """Runs, the one with the newest event first."""

    all: tuple[RunRow, ...] = ()
    default = ""
    marked: tuple[str, ...] = ()  # runs whose curves are drawn over each other, in that order
    _columns: Sequence[tuple[Column[RunRow], list[str], int]] = ()  # with the texts of all rows, and their width

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
        self._columns = []
        columns, rows = RUNS.drawn(runs, Surface.SCREEN, now=app_of(self).now)
        for column, column_cells in zip(columns, zip(*rows, strict=True), strict=False):
            caption = f"{column.head} " if column.caption else ""
            texts = [f"{caption}{one_line(cell.text)}" if cell.text else "" for cell in column_cells]
            self._columns.append((column, texts, max(map(width, texts), default=0)))
        self.show_count(len(self.all))
        self.choose(next((index for index, run in enumerate(self.all) if run.name == name), self.cursor))

    def painted(self, line: int) -> Painted:
        ink, run = self.ink, self.all[line]
        (_, names, name_width), *rest = self._columns
        room, visible = ink.width - 2, set[int]()
        for index, (_, _, own) in sorted(enumerate(rest), key=lambda pair: pair[1][0].rank):
            if room - own - 2 < min(name_width, _NAME_LEAST):
                break
            visible.add(index)
            room -= own + 2
        columns_in_sight = (entry for index, entry in enumerate(rest) if index in visible)
        back = "".join(f"  {pad(texts[line], own, right=column.right)}" for column, texts, own in columns_in_sight)
        sign, style = (ink.glyphs.running if run.running_pid is not None else " "), Style.RUNNING
        if run.name in self.marked:
            sign, style = run_look(self.marked.index(run.name), ink)
        name = pad(fit(names[line], room, ink.glyphs.ellipsis), room)
        name_style: Style | str = Style.STRONG if run.name == self.default else ""
        return Part(f"{sign} ", style), Part(name, name_style), Part(back, Style.FAINT)


_KEPT: Final = 25  # pages that are kept


class EventList(RowList):
    """Events, newest first; ``want`` gets the offset of a page that is needed.

    Attributes:
        mark: The commit that is marked for comparison.
        checkout: The commit that the work tree holds.
        runs: Whether rows say which run they are of.
    """

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
        above = self.event_at(line - 1) if line else None
        return event_row(
            event,
            self.ink,
            app.now,
            sign=graph(event, above, self.ink) if self.graph else None,
            is_marked=event.commit == self.mark,
            is_held=event.commit == self.checkout,
            with_run=self.runs,
        )


_DIM = frozenset({EventKind.REJECTED, EventKind.SKIPPED, EventKind.RUN_FINISHED, EventKind.MEASURED})
_DELTA_FROM = 58
"""Columns from which on there is room for the difference of scores, and for more than one word on the state."""
_OID_FROM = 76  # columns from which on there is room for the commit
_TITLE_LEAST = 8  # columns of a title, however narrow the list is


def event_row(
    row: LogRow,
    ink: Screen,
    now: datetime,
    *,
    sign: Painted | None = None,
    is_marked: bool = False,
    is_held: bool = False,
    with_run: bool = False,
) -> Painted:
    """Return the parts of an event's row; its ``sign`` is drawn by itself where there is no graph."""
    entry, wide = Entry.of_row(row), ink.width >= _DELTA_FROM
    score = f"{ink.encodable(cells.score(entry)):<{7 if ink.unicode else 8}}"
    delta = f"{cells.delta(entry) + ' ':<{(14 if ink.unicode else 15) - len(score)}}"
    front = (
        Part(ink.glyphs.running if is_marked else " ", Style.REVERTED),
        *(sign or (Part(f"{cells.glyph(entry, ink.glyphs)} ", cells.style(entry)),)),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(score, cells.style(entry)),
        *([Part(delta, Style.FAINT)] if wide else []),
        *([Part(f"{one_line(row.run)}  ", Style.FAINT)] if with_run else []),
    )
    best, holding = " best" if row.is_best else "", " held" if is_held else ""
    back = (
        Part(best + holding if wide else holding or best, Style.REF),
        Part(f"{numbers.age(row.time, now):>4}", Style.FAINT),
        *([Part(f"  {numbers.short(row.commit)}", Style.OID)] if ink.width >= _OID_FROM else []),
        Part(" "),
    )
    room = max(_TITLE_LEAST, ink.width - columns((*front, *back)))
    words = f"{cells.made_of(row)}: {row.title}" if row.lines else row.title
    title = fit(ink.encodable(one_line(words)), room, ink.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.kind in _DIM else ""), *back)


def graph(row: LogRow, above: LogRow | None, ink: Screen) -> Painted:
    """Return the graph in front of an event: its sign on the line of its run, or to the right of it."""
    entry, glyphs = Entry.of_row(row), ink.glyphs
    sign, style = cells.glyph(entry, glyphs), cells.style(entry)
    if not cells.LOOKS[row.kind].beside:
        return (Part(f"{sign}   ", style),)
    if is_tied(row, above):
        return Part(glyphs.branch, Style.FAINT), Part(f"{sign}  ", style)
    return Part(f"{glyphs.line if above is not None else ' '} ", Style.FAINT), Part(f"{sign} ", style)
