"""A run in progress: how far it is, what fails, what it costs, and its events as they land."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Static

from skillgit.app.workspace.command_journal import CommandRecord
from skillgit.app.workspace.live import (
    LiveLook,
    LiveProgress,
    RunLimits,
    Standing,
    live,
    stage_progress,
    stop_after_step,
    stop_now,
)
from skillgit.domain.cost import Cost
from skillgit.domain.event_kinds import EventKind
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.rows import LogRow
from skillgit.tui.first_picture import PAGE, STEPS
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import AskScreen
from skillgit.tui.screens.event import EventScreen
from skillgit.tui.widgets.curve import ScorePlot
from skillgit.tui.widgets.lines import KeyLine, OneLine
from skillgit.tui.widgets.painted_lines import (
    Painted,
    PaintedLines,
    Paragraph,
    Paragraphs,
    Part,
    RowList,
    as_text,
    columns,
    rendered,
)
from skillgit.verbs import browse
from skillgit.verbs.browse import EventPage
from skillgit.verbs.cost import COST, CostRequest, Spending
from skillgit.view import event_marks as cells
from skillgit.view import numbers, progress
from skillgit.view.event_marks import Entry
from skillgit.view.plan import unfinished
from skillgit.view.surface import Screen as Facts
from skillgit.view.surface import Style
from skillgit.view.text import fit, one_line, pad, width

LOOKS_EVERY: Final = 0.4
"""Seconds between two looks: with the pace of the trainer, what happens shows within a second."""
_NOT_BEGUN: Final = -1  # the process of a trainer that has not begun


class LiveScreen(Screen[None]):
    """A run that another process trains: ``run``, that of the trainer, or any; if there is none, ``last``."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("live")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall"), (30, "-high")]  # noqa: RUF012 - likewise
    AUTO_FOCUS = "#landed"

    def __init__(self, run: str = "", *, last: str = "", trainer: CommandRecord | None = None) -> None:
        super().__init__(classes="-at-landed")
        self.run_name = run
        self.look: LiveLook | None = None
        self._last = last
        self._trainer = trainer
        self._points: tuple[Point, ...] = ()
        self._steps_apart = 1
        self._read_of = ""
        self._spending: Spending | None = None

    def compose(self) -> ComposeResult:
        yield OneLine(id="live-head")
        yield OneLine(id="live-place")
        yield Static("", id="stages", markup=False)
        for name in _SUMMARIES:
            yield OneLine(id=f"live-{name}")
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
        self.landed.tell_reading()
        self.failing.look(None)
        self.look_again()
        if app.watched:
            self.set_interval(LOOKS_EVERY, self.look_again)

    def on_unmount(self) -> None:
        app_of(self).name_window("")

    @property
    def landed(self) -> LiveEvents:
        return self.query_one(LiveEvents)

    @property
    def failing(self) -> FailingList:
        return self.query_one(FailingList)

    def look_again(self) -> None:
        if self._trainer is not None:
            self._trainer = self._trainer.now()
        pid = self._trainer.pid or _NOT_BEGUN if self._trainer is not None else 0
        then, fail = self._show, self.landed.fail
        app_of(self).call(live, self.run_name, pid=pid, last=self._last, then=then, on_error=fail, group="live")

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
            # what is not recorded yet of a run that no process works on; a trainer says it itself
            self._spending = None
            if not look.is_alive:
                read, then = app_of(self).read, self._show_unfinished
                read(COST.ask, CostRequest(run=look.run), then=then, on_error=lambda _: None, group="unfinished")
        self.failing.look(look.snapshot)
        self._say_lines()

    def _show_unfinished(self, spending: Spending) -> None:
        self._spending = spending
        self._say_lines()

    def _say(self, name: str, text: str, right: str = "") -> OneLine:
        line = self.query_one(f"#live-{name}", OneLine)
        line.say(text, right)
        return line

    @on(events.Resize)
    def _say_lines(self) -> None:
        look, app, room = self.look, app_of(self), self.size.width
        if look is None:
            return
        self._say("head", *head(look, app.facts))
        self._write("stages", stages(look, app.facts, room - 1))
        curve = self.query_one(LiveCurve)
        curve.show_run(look, self._points, self._steps_apart)
        position = place(look, app.facts)
        rest = 0 if curve.display and self.has_class("-high") else room - width(position) - 2
        self._say("place", position, scores(look, self._points, app.facts, rest))
        for name, summary in _SUMMARIES.items():
            text = summary(look, app.facts)
            self._say(name, text).set_class(not text, "-empty")
        app.name_window(one_line(progress.window_title(look)))
        message, hint, style = told(look)
        lines = [app.facts.paint(style, one_line(message))] if message else []
        if look.is_alive and look.snapshot is not None and look.snapshot.conditions and not self.has_class("-short"):
            conditions = one_line(app.facts.dotted(look.snapshot.conditions))
            lines.insert(0, app.facts.paint(Style.FAINT, fit(conditions, room - 2, app.facts.glyphs.ellipsis)))
        lines += [app.facts.paint(Style.FAINT, f"hint: {one_line(hint)}")] if hint else []
        lines += unfinished(self._spending.unfinished if self._spending else None, app.facts, with_run=False)
        self._write("live-told", lines).display = bool(lines)

    def _write(self, name: str, lines: Iterable[str]) -> Static:
        app, notice = app_of(self), self.query_one(f"#{name}", Static)
        notice.update(Text("\n").join(as_text(line, app) for line in rendered(lines, app.facts)))
        return notice

    def _show_events(self, page: EventPage) -> None:
        self.landed.show(page.rows)

    def _show_points(self, reply: tuple[tuple[Point, ...], int]) -> None:
        self._points, self._steps_apart = reply
        self._say_lines()

    def on_descendant_focus(self) -> None:
        for name in ("landed", "failing"):
            self.set_class(self.focused is not None and self.focused.id == name, f"-at-{name}")

    @on(PaintedLines.Moved, "#landed")
    def _event_moved(self) -> None:
        if self.landed.current is not None:
            self.query_one(LiveCurve).point_at(self.landed.current)

    @on(PaintedLines.Opened, "#landed")
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
                app_of(self).call(stop, look.run, then=partial(self._asked, effect))

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


# what the lines above the panes say

_GOOD: Final = frozenset({"improved", "ceiling"})
_PREFIXES: Final = {Standing.STARTING: "starting  ", Standing.STOPPING: "stops after this step  "}
_BARS: Final = {True: "▁▂▃▄▅▆▇█", False: "_.-=+*%#"}
_MINUTE, _HOUR = 60, 3600
_NEAR_CAP: Final = 0.9  # the share of a cap from which on it stands out


def head(look: LiveLook, ink: Facts) -> tuple[str, str]:
    status, style = "not running", Style.FAINT
    if look.is_alive:
        pid = f"{ink.glyphs.running} pid {look.pid}" if look.pid else ""
        status, style = f"{_PREFIXES.get(look.standing, '')}{pid}".rstrip(), Style.RUNNING
    elif look.standing is Standing.ENDED and look.snapshot is not None and look.snapshot.end is not None:
        status = look.snapshot.end.outcome
        style = Style.BEST if status in _GOOD else Style.REJECTED
    elif look.standing is Standing.KILLED:
        status, style = "stopped without a word", Style.REJECTED
    title = f" {ink.paint(Style.FAINT, 'Live')}  {ink.paint(Style.STRONG, one_line(look.run))}"
    return title, f"{ink.paint(style, status)} "


def place(look: LiveLook, ink: Facts) -> str:
    snapshot = look.snapshot
    if snapshot is None or not snapshot.steps:
        return " "
    seconds = snapshot.seconds_left if look.is_alive else None
    parts = [
        progress.place(snapshot),
        f"budget {snapshot.budget}" if snapshot.budget is not None else "",
        f"{snapshot.share:.0%}" if snapshot.share and look.is_alive else "",
        f"ETA {numbers.duration(seconds)}" if seconds is not None else "",
    ]
    return f" {ink.dotted(parts)}"


def scores(look: LiveLook, points: Sequence[Point], ink: Facts, room: int) -> str:
    """Return the current and the best score, and the scores of versions as a line of bars in ``room`` columns."""
    snapshot = look.snapshot
    values = [point.score.value for point in points if point.kind != EventKind.REJECTED and not point.score.at_most]
    score = snapshot.score if snapshot is not None and snapshot.score is not None else next(reversed(values), None)
    best = snapshot.best if snapshot is not None and snapshot.best is not None else max(values, default=None)
    if score is None:
        return ""
    text = f"current {numbers.score(score)}  best {numbers.score(best)} "
    newest = values[-room + len(text) + 2 :] if room > len(text) + 2 else []
    if len(newest) < 2:  # noqa: PLR2004 - one bar says nothing
        return text
    bars, low, span = _BARS[ink.unicode], min(newest), (max(newest) - min(newest)) or 1.0
    heights = (round((value - low) / span * (len(bars) - 1)) for value in newest)
    return f"{text} {ink.paint(Style.BEST, ''.join(bars[height] for height in heights))} "


def cost(look: LiveLook, ink: Facts) -> str:
    """Return what the run has cost, against its caps."""
    snapshot = look.snapshot
    return " " if snapshot is None else _spending("cost  ", snapshot.spent, snapshot.limits, ink, " of ")


def at_end(look: LiveLook, ink: Facts) -> str:
    """Return what the run will have cost at its end, and how much of its caps; nothing before it has a pace."""
    snapshot = look.snapshot
    if snapshot is None or snapshot.projected is None or not look.is_alive:
        return ""
    return _spending("end   about ", snapshot.projected, snapshot.limits, ink)


def _spending(lead: str, usage: Cost, limits: RunLimits, ink: Facts, of: str = "") -> str:
    """Return amounts with their shares of the caps; the caps themselves behind ``of``, if that is said."""
    tokens = usage.tokens_in + usage.tokens_out
    price = usage.price if usage.usd or usage.unpriced or limits.usd else ""
    parts = []
    for text, value, cap, most in (
        (numbers.plural(usage.calls, "call"), usage.calls, limits.calls, f"{limits.calls or 0:,}"),
        (f"{numbers.count(tokens)} tokens", tokens, limits.tokens, numbers.count(limits.tokens or 0)),
        (price, usage.usd, limits.usd, numbers.money(limits.usd or 0.0)),
    ):
        amount = f"{text}{of}{most}" if of and cap is not None and text else text
        against = f"{amount} ({value / cap:.0%})" if cap else amount
        parts.append(ink.paint(Style.REJECTED, against) if cap and value >= _NEAR_CAP * cap else against)
    return f" {ink.paint(Style.FAINT, lead)}{ink.dotted(parts)}"


def pace(look: LiveLook, ink: Facts) -> str:
    """Return how the calls go by and how fast the run spends; nothing once no process works on it."""
    snapshot = look.snapshot
    if snapshot is None or not look.is_alive:
        return ""
    calls, recent, seconds = snapshot.calls, snapshot.recent, snapshot.recent_s
    tokens = (recent.tokens_in + recent.tokens_out) * _MINUTE / seconds if seconds else 0.0
    dollars = recent.usd * _HOUR / seconds if seconds else 0.0
    rate = calls.per_second
    parts = (
        f"{rate:.1f} calls/s" if rate >= 1 else f"{rate * _MINUTE:.0f} calls/min",
        f"{calls.latency_s:.1f} s each" if calls.latency_s is not None else "",
        f"{numbers.price(dollars, recent.unpriced)}/h" if dollars else "",
        ink.paint(Style.REJECTED, f"{calls.refused:,} refused") if calls.refused else "",
        ink.paint(Style.REJECTED, f"{calls.failed:,} failed") if calls.failed else "",
        f"{calls.retried:,} retried" if calls.retried else "",
        f"{numbers.count(round(tokens))} tokens/min" if tokens else "",
        f"{calls.in_flight} in flight",
        f"{calls.in_batches:,} wait for a batch" if calls.in_batches else "",
    )
    return f" {ink.paint(Style.FAINT, 'pace  ')}{ink.dotted(parts)}"


_SUMMARIES: Final = {"cost": cost, "end": at_end, "pace": pace}


def told(look: LiveLook) -> tuple[str, str, Style]:
    """Return what is said of the run besides its numbers, with a hint."""
    snapshot = look.snapshot
    match look.standing:
        case Standing.IDLE:
            hint = f"skillgit train --run {look.run}" if look.run else "skillgit train"
            return (f"no process is training {look.run}" if look.run else "no run is trained now"), hint, Style.FAINT
        case Standing.STARTING:
            process = f"process {look.pid} " if look.pid else "the trainer "
            return f"{process}has begun and said nothing yet", "", Style.FAINT
        case Standing.ENDED if snapshot is not None and snapshot.end is not None:
            style = Style.STRONG if snapshot.end.outcome in _GOOD else Style.REJECTED
            return snapshot.end.message, snapshot.end.hint, style
        case Standing.KILLED if snapshot is not None:
            sentence = f"process {snapshot.pid} is gone without a word; what it had written is kept"
            return sentence, f"{snapshot.command} goes on where it stands", Style.REJECTED
        case _:
            remark = snapshot.remarks[-1] if snapshot is not None and snapshot.remarks else ""
            return remark, "", Style.FAINT


_LONG, _SHORT = 10, 2  # columns of the bar of the stage that works, and of others


def stages(look: LiveLook, ink: Facts, room: int) -> Iterator[str]:
    """Yield lines with the stages of the step, each with a bar of how much of it is done."""
    full, empty = ("█", "░") if ink.unicode else ("#", ".")
    line = ""
    for stage in stage_progress(look.snapshot, is_alive=look.is_alive):
        here, over = stage.phase == "now", stage.phase == "over"
        length = _LONG if here else _SHORT
        share = 1.0 if over else stage.done / stage.total if stage.total else 0.0
        full_cells = min(length, round(length * share))
        count = f" {min(stage.done, stage.total)}/{stage.total}" if stage.total else ""
        bar = ink.paint(Style.RUNNING if here else Style.FAINT, full * full_cells)
        bar += ink.paint(Style.FAINT, empty * (length - full_cells)) + (
            count if here else ink.paint(Style.FAINT, count)
        )
        bar = f"{ink.paint(Style.STRONG if here else Style.FAINT, stage.name)} {bar}"
        if line and width(line) + 2 + width(bar) > room:
            yield line
            line = ""
        line = f"{line}  {bar}" if line else f" {bar}"
    yield line


# the panes

_INDENT = 6
_UNTYPED = "default"  # the type of items that have none
_LEAST = 8  # columns of a title, however narrow the list is


class FailingList(Paragraphs, inherit_bindings=False):
    """Failing items by reason, the most frequent one first; the view stays where it is when there are others."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def look(self, snapshot: LiveProgress | None) -> None:
        is_rolled = snapshot is not None and snapshot.rolled
        counts = f"  {snapshot.failed} of {snapshot.rolled}  {snapshot.looked_at}" if snapshot and is_rolled else ""
        self.border_title = f"Failing now{counts}"
        paragraphs = list(_failing(snapshot, self.ink)) if snapshot is not None else []
        if not paragraphs:
            self.tell("nothing fails so far" if is_rolled else "no item was rolled out yet")
        elif paragraphs != self.facts or not self.count:
            self.show(paragraphs)


def _failing(snapshot: LiveProgress, screen: Facts) -> Iterator[Paragraph]:
    for failing in snapshot.failing:
        kind = f"{failing.task_type}: " if failing.task_type not in {"", _UNTYPED} else ""
        alone = failing.count == 1
        reason = failing.example if alone else failing.reason
        yield Paragraph(f"{kind}{reason}", "", indent=_INDENT, lead=f"{failing.count:>4}")
        more = f" {screen.glyphs.ellipsis}" if failing.count > len(failing.items) else ""
        yield Paragraph(f"{' '.join(failing.items)}{more}", Style.REF, indent=_INDENT)
        if not alone and failing.example != failing.reason:
            yield Paragraph(f"as in: {failing.example}", Style.FAINT, indent=_INDENT)


class LiveEvents(RowList):
    """Events, newest first; while ``following``, the cursor stays on the newest one."""

    rows: tuple[LogRow, ...] = ()
    following = True

    @property
    def current(self) -> LogRow | None:
        return self.rows[self.cursor] if self.count else None

    def show(self, rows: Sequence[LogRow]) -> None:
        before, self.rows = self.current, tuple(rows)
        if not self.rows:
            self.tell("no event yet")
            return
        self.show_count(len(self.rows))
        stays = before is not None and not self.following
        commit = before.commit if before is not None and stays else self.rows[0].commit
        self.choose(next((index for index, row in enumerate(self.rows) if row.commit == commit), self.cursor))

    def follow(self, *, on: bool) -> None:
        self.following = on
        if on:
            self.choose(0)
        self.border_title = f"Events{'  following' if on else ''}"

    def _go(self, line: int) -> None:
        super()._go(line)
        if self.cursor and self.following and self.count:
            self.follow(on=False)

    def painted(self, line: int) -> Painted:
        return event_line(self.rows[line], self.ink)


def event_line(row: LogRow, screen: Facts) -> Painted:
    """Return an event with what its score was comparison with, as ``.7250 > .7000``."""
    entry = Entry.of_row(row)
    comparison = screen.encodable(cells.score(entry)).strip()
    if entry.score is not None and entry.delta is not None and entry.is_measured:
        sign = ">" if entry.delta > 0 else screen.glyphs.at_most
        comparison = f"{comparison} {sign} {numbers.score(entry.score.value - entry.delta)}"
    front = (
        Part(f" {row.time.astimezone():%H:%M:%S} ", Style.FAINT),
        Part(f"{cells.glyph(entry, screen.glyphs)} ", cells.style(entry)),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(f"{comparison:<15} ", cells.style(entry)),
    )
    room = max(_LEAST, screen.width - columns(front) - 1)
    title = fit(screen.encodable(one_line(cells.title(entry))), room, screen.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.version is None else ""))


class LiveCurve(ScorePlot, can_focus=False):
    """The scores of a run by step, with room for the steps to come."""

    def show_run(self, look: LiveLook, points: Sequence[Point], apart: int) -> None:
        snapshot, signs = look.snapshot, app_of(self).facts.glyphs
        self.show(points, steps=snapshot.steps if snapshot is not None and look.is_alive else 0, is_still=look.is_alive)
        self.border_title = f"Score{f'  1 step in {apart}' if apart > 1 else ''}"
        self.border_subtitle = (
            f"{signs.best} best  {signs.accepted} accepted  {signs.rejected} rejected  {signs.at_most} at most"
            f"  {signs.slow} slow update"
        )
