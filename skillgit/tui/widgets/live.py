"""The parts of the live screen: progress of stages, the last events, items that fail, and how they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.widgets import Static

from skillgit.app.history.live import LiveLook, RunLimits, Snapshot, StageProgress, Standing, stage_progress
from skillgit.domain.cost import Cost
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.outcomes import Failing
from skillgit.index.event_pages import Point
from skillgit.index.rows import LogRow
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.curve import ScorePlot
from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.tui.widgets.paragraphs import Paragraph, Paragraphs
from skillgit.tui.widgets.row_list import RowList
from skillgit.tui.widgets.shown_text import on_one_line
from skillgit.view import event_marks as cells
from skillgit.view import numbers, progress
from skillgit.view.event_marks import Entry
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, one_line, pad, width

if TYPE_CHECKING:
    from textual.binding import BindingType


_GOOD: Final = frozenset({"improved", "ceiling"})
_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*%#"


def head(look: LiveLook, screen: Screen) -> tuple[list[Part], list[Part]]:
    title = [Part(" Live  ", Style.FAINT), Part(on_one_line(look.run, screen), Style.STRONG)]
    match look.standing:
        case Standing.STARTING | Standing.RUNNING | Standing.STOPPING:
            prefixes = {Standing.STARTING: "starting  ", Standing.STOPPING: "stops after this step  "}
            status, style = f"{prefixes.get(look.standing, '')}{screen.glyphs.running} pid {look.pid}", Style.RUNNING
        case Standing.ENDED if look.snapshot is not None and look.snapshot.end is not None:
            status = look.snapshot.end.outcome
            style = Style.BEST if status in _GOOD else Style.REJECTED
        case Standing.KILLED:
            status, style = "stopped without a word", Style.REJECTED
        case _:
            status, style = "not running", Style.FAINT
    return title, [Part(f"{status} ", style)]


def place(look: LiveLook, screen: Screen) -> list[Part]:
    snapshot = look.snapshot
    if snapshot is None or not snapshot.steps:
        return [Part(" ")]
    seconds = snapshot.seconds_left if look.is_alive else None
    parts = [
        progress.place(snapshot),
        f"budget {snapshot.budget}" if snapshot.budget is not None else "",
        f"{snapshot.share:.0%}" if snapshot.share and look.is_alive else "",
        f"ETA {numbers.duration(seconds)}" if seconds is not None else "",
    ]
    return [Part(f" {screen.dotted(parts)}")]


def scores(look: LiveLook, points: Sequence[Point], screen: Screen, room: int) -> list[Part]:
    """Return the current and the best score, and the scores of versions as a line of bars in ``room`` columns."""
    snapshot = look.snapshot
    values = [point.score.value for point in points if point.kind != EventKind.REJECTED and not point.score.at_most]
    newest = values[-1] if values else None
    score = snapshot.score if snapshot is not None and snapshot.score is not None else newest
    best = snapshot.best if snapshot is not None and snapshot.best is not None else max(values, default=None)
    if score is None:
        return []
    text = f"current {numbers.score(score)}  best {numbers.score(best)} "
    bars = spark(values, screen, room - len(text) - 2)
    return [Part(text), *([Part(f" {bars} ", Style.BEST)] if bars else [])]


def spark(values: Sequence[float], screen: Screen, columns: int) -> str:
    """Return the newest ``values`` as bars between the lowest and the highest of them."""
    tail = values[-columns:] if columns > 0 else []
    if len(tail) < 2:  # noqa: PLR2004 - one bar says nothing
        return ""
    bars, low, high = _BARS if screen.unicode else _ASCII_BARS, min(tail), max(tail)
    span = (high - low) or 1.0
    return "".join(bars[round((value - low) / span * (len(bars) - 1))] for value in tail)


def cost(look: LiveLook, screen: Screen) -> list[Part]:
    """Return what the run has cost, against its caps."""
    snapshot = look.snapshot
    return [Part(" ")] if snapshot is None else _spending(" cost  ", snapshot.spent, snapshot.limits, screen)


def at_end(look: LiveLook, screen: Screen) -> list[Part]:
    """Return what the run will have cost at its end, and how much of its caps; nothing before it has a pace."""
    snapshot = look.snapshot
    if snapshot is None or snapshot.projected is None or not look.is_alive:
        return []
    return _spending(" end   about ", snapshot.projected, snapshot.limits, screen, with_caps=False)


def _spending(lead: str, usage: Cost, limits: RunLimits, screen: Screen, *, with_caps: bool = True) -> list[Part]:
    tokens = usage.tokens_in + usage.tokens_out
    amounts: tuple[tuple[str, float, float | None, str], ...] = (
        (numbers.plural(usage.calls, "call"), usage.calls, limits.calls, f"{limits.calls or 0:,}"),
        (f"{numbers.count(tokens)} tokens", tokens, limits.tokens, numbers.count(limits.tokens or 0)),
        (_money(usage, limits), usage.usd, limits.usd, numbers.money(limits.usd or 0.0)),
    )
    parts = (
        _against(f"{text} of {most}" if with_caps and cap is not None else text, value, cap)
        for text, value, cap, most in amounts
        if text
    )
    return _with_dots(lead, parts, screen)


def _with_dots(lead: str, parts: Iterable[Part], screen: Screen) -> list[Part]:
    line: list[Part] = [Part(lead, Style.FAINT)]
    for number, part in enumerate(parts):
        line += [Part(f" {screen.glyphs.dot} ", Style.FAINT)] if number else []
        line.append(part)
    return line


def _money(usage: Cost, limits: RunLimits) -> str:
    return usage.price if usage.usd or usage.unpriced or limits.usd else ""


def _against(text: str, value: float, cap: float | None) -> Part:
    """Return what is spent of a cap; from nine tenths of it on it stands out."""
    if not cap:
        return Part(text)
    return Part(f"{text} ({value / cap:.0%})", Style.REJECTED if value >= 0.9 * cap else "")


_MINUTE, _HOUR = 60, 3600


def pace(look: LiveLook, screen: Screen) -> list[Part]:
    """Return how the calls go by and how fast the run spends; nothing once no process works on it."""
    snapshot = look.snapshot
    if snapshot is None or not look.is_alive:
        return []
    calls, recent, seconds = snapshot.calls, snapshot.recent, snapshot.recent_s
    tokens = (recent.tokens_in + recent.tokens_out) * _MINUTE / seconds if seconds else 0.0
    dollars = recent.usd * _HOUR / seconds if seconds else 0.0
    parts = [
        Part(_rate(calls.per_second)),
        Part(f"{calls.latency_s:.1f} s each" if calls.latency_s is not None else ""),
        Part(f"{numbers.money(dollars)}/h" if dollars else ""),
        Part(f"{calls.refused:,} refused" if calls.refused else "", Style.REJECTED),
        Part(f"{calls.failed:,} failed" if calls.failed else "", Style.REJECTED),
        Part(f"{calls.retried:,} retried" if calls.retried else ""),
        Part(f"{numbers.count(round(tokens))} tokens/min" if tokens else ""),
        Part(f"{calls.in_flight} in flight"),
        Part(f"{calls.in_batches:,} wait for a batch" if calls.in_batches else ""),
    ]
    return _with_dots(" pace  ", (part for part in parts if part.text), screen)


def _rate(per_second: float) -> str:
    return f"{per_second:.1f} calls/s" if per_second >= 1 else f"{per_second * _MINUTE:.0f} calls/min"


def told(look: LiveLook) -> tuple[str, str, Style]:
    snapshot = look.snapshot
    match look.standing:
        case Standing.IDLE:
            hint = f"skillgit train --run {look.run}" if look.run else "skillgit train"
            return (f"no process is training {look.run}" if look.run else "no run is trained now"), hint, Style.FAINT
        case Standing.STARTING:
            process = f"process {look.pid} " if look.pid else "the trainer "
            return f"{process}has begun and told nothing yet", "", Style.FAINT
        case Standing.ENDED if snapshot is not None and snapshot.end is not None:
            style = Style.STRONG if snapshot.end.outcome in _GOOD else Style.REJECTED
            return snapshot.end.message, snapshot.end.hint, style
        case Standing.KILLED if snapshot is not None:
            sentence = f"process {snapshot.pid} is gone without a word; what it had written is kept"
            return sentence, f"{snapshot.command} goes on where it stands", Style.REJECTED
        case _:
            remark = snapshot.remarks[-1] if snapshot is not None and snapshot.remarks else ""
            return remark, "", Style.FAINT


_INDENT = 6
_UNTYPED = "default"  # the type of items that have none


class FailingList(Paragraphs, inherit_bindings=False):
    """Failing items by reason, the most frequent one first; the view stays where it is when there are others."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def look(self, snapshot: Snapshot | None) -> None:
        is_rolled = snapshot is not None and snapshot.rolled
        counts = f"  {snapshot.failed} of {snapshot.rolled}  {snapshot.looked_at}" if snapshot and is_rolled else ""
        self.border_title = f"Failing now{counts}"
        items = snapshot.failing if snapshot is not None else ()
        if not items:
            self.tell("nothing fails so far" if is_rolled else "no item was rolled out yet")
            return
        paragraphs = [paragraph for failing in items for paragraph in _paragraphs(failing, self.ink)]
        if paragraphs != self._paragraphs or not self.count:
            self._paragraphs = paragraphs
            self.renew()


def _paragraphs(failing: Failing, screen: Screen) -> Iterator[Paragraph]:
    kind = f"{failing.task_type}: " if failing.task_type not in {"", _UNTYPED} else ""
    alone = failing.count == 1
    reason = failing.example if alone else failing.reason
    yield Paragraph(f"{kind}{reason}", "", indent=_INDENT, lead=f"{failing.count:>4}")
    more = f" {screen.glyphs.ellipsis}" if failing.count > len(failing.items) else ""
    yield Paragraph(f"{' '.join(failing.items)}{more}", Style.REF, indent=_INDENT)
    if not alone and failing.example != failing.reason:
        yield Paragraph(f"as in: {failing.example}", Style.FAINT, indent=_INDENT)


_LEAST = 8  # columns of a title, however narrow the list is


class LiveEvents(RowList):
    """Events, newest first; while ``following``, the cursor stays on the newest one."""

    rows: tuple[LogRow, ...] = ()
    following = True

    @property
    def current(self) -> LogRow | None:
        return self.rows[self.cursor] if self.count else None

    def show(self, rows: Sequence[LogRow]) -> None:
        before = self.current
        self.rows = tuple(rows)
        if not self.rows:
            self.tell("no event yet")
            return
        self.shown()
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


def event_line(row: LogRow, screen: Screen) -> Painted:
    entry = Entry.of_row(row)
    front = (
        Part(f" {row.time.astimezone():%H:%M:%S} ", Style.FAINT),
        Part(f"{cells.glyph(entry, screen.glyphs)} ", cells.style(entry)),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(f"{_compared(entry, screen):<15} ", cells.style(entry)),
    )
    room = max(_LEAST, screen.width - sum(width(part.text) for part in front) - 1)
    title = fit(screen.encodable(one_line(cells.title(entry))), room, screen.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.version is None else ""))


def _compared(entry: Entry, screen: Screen) -> str:
    """Return ``.7250 > .7000``; the score alone where it was compared with none."""
    own = screen.encodable(cells.score(entry)).strip()
    if entry.score is None or entry.delta is None or not entry.is_measured:
        return own
    sign = ">" if entry.delta > 0 else screen.glyphs.at_most
    return f"{own} {sign} {numbers.score(entry.score.value - entry.delta)}"


class LiveCurve(ScorePlot, can_focus=False):
    """The scores of a run by step, with room for the steps to come."""

    def show_run(self, look: LiveLook, points: Sequence[Point], apart: int) -> None:
        snapshot, signs = look.snapshot, app_of(self).facts.glyphs
        self.show(points, steps=snapshot.steps if snapshot is not None and look.is_alive else 0)
        self.border_title = f"Score{f'  1 step in {apart}' if apart > 1 else ''}"
        self.border_subtitle = (
            f"{signs.best} best  {signs.accepted} accepted  {signs.rejected} rejected  {signs.at_most} at most"
            f"  {signs.slow} slow update"
        )


_LONG, _SHORT, _GAP = 10, 2, 2


class StageBars(Static):
    _snapshot: Snapshot | None = None
    _working = False

    def show(self, snapshot: Snapshot | None, *, working: bool) -> None:
        self._snapshot, self._working = snapshot, working
        self._draw()

    @on(events.Resize)
    def _draw(self) -> None:
        app = app_of(self)
        text = Text(no_wrap=True)
        at = 0
        for bar in bars(self._snapshot, app.facts, working=self._working):
            width = sum(cell_len(part.text) for part in bar)
            if at and at + _GAP + width > self.size.width - 1:
                text.append("\n")
                at = 0
            text.append(" " * (_GAP if at else 1))
            at += width + (_GAP if at else 1)
            for part in bar:
                text.append(part.text, app.paint(part.style) if isinstance(part.style, Style) else None)
        self.update(text)


def bars(snapshot: Snapshot | None, screen: Screen, *, working: bool) -> list[list[Part]]:
    return [_bar(stage, screen) for stage in stage_progress(snapshot, is_alive=working)]


def _bar(stage: StageProgress, screen: Screen) -> list[Part]:
    full, empty = ("█", "░") if screen.unicode else ("#", ".")
    here, over = stage.phase == "now", stage.phase == "over"
    length = _LONG if here else _SHORT
    share = stage.done / stage.total if stage.total else float(over)
    width = length if over else min(length, round(length * share))
    text = f" {min(stage.done, stage.total)}/{stage.total}" if stage.total else ""
    return [
        Part(f"{stage.name} ", Style.STRONG if here else Style.FAINT),
        Part(full * width, Style.RUNNING if here else Style.FAINT),
        Part(empty * (length - width), Style.FAINT),
        Part(text, "" if here else Style.FAINT),
    ]
