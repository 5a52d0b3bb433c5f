"""The first screen: runs, the history of one of them, its scores, and the event under the cursor in full."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from skillgit.app.history import browse
from skillgit.app.history.browse import EventPage, EventStretch, Overview
from skillgit.app.history.filter_language import TOKENS, narrowed
from skillgit.domain.address import version_label
from skillgit.errors import SkillgitError, UsageError
from skillgit.index.log_filter import Selection
from skillgit.index.rows import LogRow
from skillgit.tui.keymap import bindings
from skillgit.tui.screens.panes import RunPanes
from skillgit.tui.start import PAGE, StartPicture, named
from skillgit.tui.widgets.curve import ScorePlot
from skillgit.tui.widgets.detail import Detail
from skillgit.tui.widgets.lines import FilterBar, FindBar, KeyLine
from skillgit.tui.widgets.painted_lines import app_of
from skillgit.tui.widgets.row_list import EventList, RowList, RunList
from skillgit.view.text import one_line

if TYPE_CHECKING:
    from textual.binding import BindingType
    from textual.events import ScreenResume
    from textual.timer import Timer


SETTLES: Final = 0.05
"""Seconds that the cursor rests before the event under it is read in full."""


class HistoryScreen(RunPanes):
    """Runs, history, scores and detail; it begins with ``run``, or with the default run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("history", "tabs")
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012 - likewise

    AUTO_FOCUS = "#events"

    def __init__(self, run: str = "", start: StartPicture | None = None) -> None:
        super().__init__(classes="-at-events")
        self._run, self._start = run, start
        self._marked: LogRow | None = None
        self._rejected = self._slow = True
        self._narrowing = Selection(run=run)
        self._waiting: Timer | None = None
        self._shown = False

    def compose(self) -> ComposeResult:
        # what the size asks for, before anything is styled: told later, everything would be styled a second time
        width, height = self.app.size
        self.add_class(
            _reached(self.HORIZONTAL_BREAKPOINTS, width), _reached(self.VERTICAL_BREAKPOINTS, height), update=False
        )
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
        if self._start is not None:
            start, self._start = self._start, None
            self._show_overview(start.overview)
            self._narrowing = Selection(run=self._run)
            if start.page is not None:
                self._show_page(start.page)
                self._show_scores(start.scores)
            return
        reading = f"reading {app_of(self).facts.glyphs.ellipsis}"
        self.runs.tell(reading)
        self.events.tell(reading)
        self.reload()

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Leave styles as they are when the screen is shown for the first time: all of them have been made just now."""
        event.refresh_styles = self._shown
        self._shown = True

    @property
    def events(self) -> EventList:
        return self.query_one(EventList)

    @property
    def current(self) -> LogRow | None:
        return self.events.current

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
        if not overview.runs:
            self._show_nothing(overview)
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

    def _show_nothing(self, overview: Overview) -> None:
        text = f"{overview.failures[0][0]}: {overview.failures[0][1]}" if overview.failures else "no runs yet"
        hint = "skillgit fsck" if overview.failures else "skillgit train"
        self.runs.tell("")
        self.events.tell(one_line(text), hint)
        self.detail.clear()

    def _without_runs(self, error: SkillgitError) -> None:
        self.runs.tell("")
        self.events.fail(error)
        self.detail.clear()

    def _say_counts(self) -> None:
        run, glyphs = self.runs.current, app_of(self).facts.glyphs
        if run is not None:
            counts = (f"{run.versions} v", f"{run.rejected} {glyphs.rejected}", f"{run.merges} {glyphs.slow}")
            self.name_pane("events", app_of(self).facts.dotted(counts))

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
            events.tell("no event is like that" if page.everything else "no events yet", "esc drops the filter")
            self.detail.clear()

    def _want(self, offset: int) -> None:
        then = partial(self._add_stretch, self._narrowing)
        request = (self._narrowing, offset, PAGE, self.events.count)
        app_of(self).read(browse.stretch, *request, then=then, on_error=self.events.fail)

    def _add_stretch(self, narrowing: Selection, stretch: EventStretch) -> None:
        if narrowing == self._narrowing:
            self.events.add(stretch)

    @on(RowList.Moved, "#runs")
    def _run_moved(self) -> None:
        run = self.runs.current
        if run is not None and run.name != self._run:
            self._run = run.name
            self._say_counts()
            self._read_list(keep=False)
            self._read_scores()

    @on(RowList.Moved, "#events")
    def _event_moved(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(SETTLES, self._show_event)

    def _show_event(self) -> None:
        self._waiting = None
        row = self.current
        if row is not None:
            if not self.overlays:
                self.query_one(ScorePlot).point_at(row)
            self.detail.show(row)

    @on(RowList.Opened, "#runs")
    def _to_events(self) -> None:
        self.events.focus()

    @on(FilterBar.Closed)
    def _to_filtered(self) -> None:
        (self.runs if self._filters_runs else self.events).focus()

    @on(RowList.Opened, "#events")
    def _event_opened(self) -> None:
        self.detail.view.focus()

    @on(FilterBar.Changed)
    def _filtered(self, message: FilterBar.Changed) -> None:
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
            return
        row = self.current
        if row is not None:
            again = self._marked is not None and self._marked.commit == row.commit
            self._marked = None if again else row
            self.events.mark = "" if again else row.commit
            self.events.refresh()

    def action_history_compare(self) -> None:
        if self._marked is None:
            self.notify("mark an event first: w", severity="warning")
        elif self.current is not None and self._marked.commit == self.current.commit:
            self.notify("that is the marked one itself", severity="warning")
        elif self.current is not None:
            self._compare(str(self._marked.address), self.current)

    def _compare(self, a: str, b: LogRow) -> None:
        from skillgit.tui.screens.compare import CompareScreen  # noqa: PLC0415 - it is opened now and then

        self.app.push_screen(CompareScreen(a, str(b.address)))

    def action_history_compare_base(self) -> None:
        row = self.current
        if row is not None and row.base is None:
            self.notify("it rests on no version", severity="warning")
        elif row is not None:
            self._compare(f"{row.run}/{version_label(row.base)}", row)

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
        from skillgit.tui.screens.live import LiveScreen  # noqa: PLC0415 - it is opened now and then

        run = self.runs.current
        running = run is not None and run.running_pid is not None
        self.app.push_screen(LiveScreen(self._run if running else "", last=self._run))

    def action_screen_back(self) -> None:
        if self.restore_size():
            return
        if not self.events.has_focus:
            self.events.focus()
        elif self.query_one(FilterBar).text:
            self.query_one(FilterBar).clear()


def _reached(breakpoints: Sequence[tuple[int, str]], size: int) -> str:
    return max(point for point in breakpoints if point[0] <= size)[1]
