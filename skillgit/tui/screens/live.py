"""A run in progress: how far it is, what fails, what it costs, and its events as they land."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Static

from skillgit.app.history import browse
from skillgit.app.history.browse import EventPage
from skillgit.app.history.live import LiveLook, Standing, live, stop_after_step, stop_now
from skillgit.app.history.status import Unfinished, spent_on_unfinished
from skillgit.app.workspace.command_journal import CommandRecord
from skillgit.app.workspace.context import Context
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.rows import LogRow
from skillgit.tui.actions import VersionScreen
from skillgit.tui.app import SkillgitApp
from skillgit.tui.keymap import bindings
from skillgit.tui.start import PAGE, STEPS
from skillgit.tui.widgets import live as live_text
from skillgit.tui.widgets.detail import Detail
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine
from skillgit.tui.widgets.live import FailingList, LiveCurve, LiveEvents, StageBars
from skillgit.tui.widgets.painted_lines import app_of
from skillgit.tui.widgets.row_list import RowList
from skillgit.view.plan import unfinished
from skillgit.view.surface import Style
from skillgit.view.text import one_line

if TYPE_CHECKING:
    from textual.binding import BindingType


LOOKS_EVERY: Final = 0.4
"""Seconds between two looks: with the pace of the trainer, what happens shows within a second."""
_NOBODY: Final = -1  # the process of a trainer that has not begun


class LiveScreen(Screen[None]):
    """A run that another process trains: ``run``, that of the trainer, or any; if there is none, ``last``."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("live")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall"), (30, "-high")]  # noqa: RUF012 - likewise
    AUTO_FOCUS = "#landed"
    DEFAULT_CSS = """
    LiveScreen {
        #live-head { background: $panel; }
        #stages { height: auto; margin: 0 0; background: $background; }
        #live-told { height: auto; max-height: 5; padding: 0 1; background: $background; }
        #curve { display: none; height: 2fr; }
        &.-high #curve { display: block; }
        #live-panes { layout: horizontal; height: 3fr; }
        &.-short #live-end, &.-short #live-pace, & .-empty { display: none; }
        &.-narrow #live-panes { layout: vertical; }
        #failing, #landed { width: 1fr; height: 1fr; }
        #failing, #landed, #curve {
            border: round $border; border-title-color: $text-muted; border-subtitle-color: $text-muted;
            background: $background;
        }
        #failing:focus, #landed:focus {
            border: round $primary; border-title-color: $primary; border-title-style: bold;
        }
        &.-short.-narrow.-at-landed #failing, &.-short.-narrow.-at-failing #landed { display: none; }
        &.-ascii #failing, &.-ascii #landed, &.-ascii #curve { border: ascii $border; }
    }
    """

    def __init__(self, run: str = "", *, last: str = "", trainer: CommandRecord | None = None) -> None:
        super().__init__(classes="-at-landed")
        self.run_name = run
        self.look: LiveLook | None = None
        self._last = last
        self._trainer = trainer
        self._points: tuple[Point, ...] = ()
        self._steps_apart = 1
        self._read_of = ""
        self._unfinished: tuple[Unfinished, ...] = ()

    def compose(self) -> ComposeResult:
        yield OneLine(id="live-head")
        yield OneLine(id="live-place")
        yield StageBars(id="stages", markup=False)
        yield OneLine(id="live-cost")
        yield OneLine(id="live-end")
        yield OneLine(id="live-pace")
        yield Static("", id="live-told", markup=False)
        yield LiveCurve(id="curve")
        with Container(id="live-panes"):
            yield FailingList(id="failing")
            yield LiveEvents(id="landed")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        app = app_of(self)
        self.set_class(not app.facts.unicode, "-ascii")
        self.landed.follow(on=True)
        self.landed.tell(f"reading {app.facts.glyphs.ellipsis}")
        self.failing.look(None)
        self.look_again()
        if app.watched:
            self.set_interval(LOOKS_EVERY, self.look_again)

    @property
    def landed(self) -> LiveEvents:
        return self.query_one(LiveEvents)

    @property
    def failing(self) -> FailingList:
        return self.query_one(FailingList)

    def look_again(self) -> None:
        if self._trainer is not None:
            self._trainer = self._trainer.now()
        pid = self._trainer.pid or _NOBODY if self._trainer is not None else 0
        then, fail = self._show, self.landed.fail
        app_of(self).read(live, self.run_name, pid=pid, last=self._last, then=then, on_error=fail, group="live")

    def reload(self) -> None:
        self.look_again()
        if self.run_name:
            self._read_events()

    def _read_events(self) -> None:
        read, run, narrowing = app_of(self).read, self.run_name, Selection(run=self.run_name)
        read(browse.page, narrowing, 0, PAGE, then=self._show_events, on_error=self.landed.fail, group="landed")
        read(browse.score_line, run, STEPS, then=self._show_points, on_error=lambda _: None, group="live-points")

    def _show(self, look: LiveLook) -> None:
        before, was_trained, self.look = self.look, self._trained is not None, look
        if was_trained != (self._trained is not None):
            self.refresh_bindings()
        if self._trainer is not None and look.snapshot is None and not self._trainer.runs:
            self.app.exit()  # it failed before it had anything to show: what it said is printed
            return
        self.run_name = self.run_name or look.run
        if self.run_name != self._read_of:
            self._read_of = self.run_name
            self._read_events()
        elif not self.run_name:
            self.landed.tell("no event yet")
        if look.run and (before is None or before.standing is not look.standing):
            self._read_unfinished(look)
        self.failing.look(look.snapshot)
        self.query_one(StageBars).show(look.snapshot, working=look.is_alive)
        self._say_lines()

    def _read_unfinished(self, look: LiveLook) -> None:
        """Read what is not recorded yet of a run that no process works on; a trainer says it itself."""
        self._unfinished = ()
        if not look.is_alive:
            read = app_of(self).read
            read(spent_on_unfinished, look.run, then=self._show_unfinished, on_error=lambda _: None, group="unfinished")

    def _show_unfinished(self, runs: tuple[Unfinished, ...] | None) -> None:
        self._unfinished = runs or ()
        self._say_lines()

    @on(events.Resize)
    def _say_lines(self) -> None:
        look, facts = self.look, app_of(self).facts
        if look is None:
            return
        title, right = live_text.head(look, facts)
        self.query_one("#live-head", OneLine).say(title, right)
        position = live_text.place(look, facts)
        curve = self.query_one(LiveCurve)
        curve.show_run(look, self._points, self._steps_apart)
        room = (
            0
            if curve.display and self.has_class("-high")
            else self.size.width - sum(len(part.text) for part in position) - 2
        )
        self.query_one("#live-place", OneLine).say(position, live_text.scores(look, self._points, facts, room))
        for name, summary in (("cost", live_text.cost), ("end", live_text.at_end), ("pace", live_text.pace)):
            parts, widget = summary(look, facts), self.query_one(f"#live-{name}", OneLine)
            widget.say(parts)
            widget.set_class(not parts, "-empty")
        message, hint, style = live_text.told(look)
        text = Text(facts.encodable(one_line(message)), style=app_of(self).paint(style))
        if hint:
            text.append(f"\nhint: {facts.encodable(one_line(hint))}", app_of(self).paint(Style.FAINT))
        for line in unfinished(self._unfinished, facts, with_run=False):
            text.append(f"\n{facts.encodable(line)}")
        notice = self.query_one("#live-told", Static)
        notice.update(text)
        notice.display = bool(message)

    def _show_events(self, page: EventPage) -> None:
        self.landed.show(page.rows)

    def _show_points(self, reply: tuple[tuple[Point, ...], int]) -> None:
        self._points, self._steps_apart = reply
        self._say_lines()

    def on_descendant_focus(self) -> None:
        for name in ("landed", "failing"):
            self.set_class(self.focused is not None and self.focused.id == name, f"-at-{name}")

    @on(RowList.Moved, "#landed")
    def _event_moved(self) -> None:
        if self.landed.current is not None:
            self.query_one(LiveCurve).point_at(self.landed.current)

    @on(RowList.Opened, "#landed")
    def _event_opened(self) -> None:
        row = self.landed.current
        if row is not None:
            self.app.push_screen(EventScreen(row))

    def action_list_open(self) -> None:
        """Open the event under the cursor, whichever pane has the keys."""
        self.landed.action_list_open()

    def action_live_follow(self) -> None:
        self.landed.follow(on=not self.landed.following)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say whether ``action`` is possible now: without a trainer there is none to stop."""
        return self._trained is not None if action == "live_stop" else super().check_action(action, parameters)

    @property
    def _trained(self) -> LiveLook | None:
        """How it is going, if a process trains the run now."""
        look = self.look
        return look if look is not None and look.pid and look.is_alive else None

    def action_live_stop(self) -> None:
        """Ask whether to stop after this step; once that is asked for, whether to stop as soon as can be."""
        from skillgit.tui.screens.dialogs import AskScreen  # noqa: PLC0415 - few runs are stopped

        look = self._trained
        if look is None:
            return
        if look.standing is Standing.STOPPING:
            question = f"Process {look.pid} was asked to stop after its step. Stop it now, after the calls in flight?"
            stop, effect = stop_now, "stops after the calls in flight"
        else:
            question = f"Process {look.pid} would finish its step and stop. The run can go on later; nothing is lost."
            stop, effect = stop_after_step, "stops after this step"

        def answered(yes: bool | None) -> None:  # noqa: FBT001 - Textual calls it
            if yes:
                app_of(self).read(stop, look.run, then=partial(self._asked, effect))

        self.app.push_screen(AskScreen("", question, yes="Stop"), answered)

    def _asked(self, effect: str, pid: int) -> None:
        self.notify(f"process {pid} {effect}")
        self.look_again()

    def action_pane_next(self) -> None:
        (self.failing if self.landed.has_focus else self.landed).focus()

    action_pane_prev = action_pane_next

    def action_live_close(self) -> None:
        """Close the screen, and the app if it was opened for it; the trainer goes on."""
        if self._trainer is not None:
            self.app.exit()
        else:
            self.dismiss()

    def action_screen_back(self) -> None:
        self.dismiss()


class EventScreen(VersionScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings("event", "tabs", "find")

    def __init__(self, row: LogRow) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        yield Detail(id="detail")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.detail.show(self._row)
        self.detail.view.focus()

    @property
    def current(self) -> LogRow | None:
        return self._row


def watch(context: Context, trainer: CommandRecord, *, unicode: bool) -> str:
    """Show the run of ``trainer`` until the user closes the screen, and return the run; empty before it has one."""
    screens: list[LiveScreen] = []

    def opening() -> LiveScreen:
        screens.append(LiveScreen(trainer=trainer))
        return screens[0]

    SkillgitApp(context, opening=opening, unicode=unicode).run()
    if not screens:
        return ""
    look = screens[0].look
    if look is not None and look.standing is Standing.ENDED:
        trainer.wait()
    return screens[0].run_name
