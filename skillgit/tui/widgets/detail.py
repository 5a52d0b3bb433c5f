"""The detail of one event: its head, and tabs with its difference, edits, items, traces and message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.containers import Vertical
from textual.widgets import ContentSwitcher

from skillgit.app.workspace.workspace import BRING
from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import SkillgitError
from skillgit.index.rows import LogRow
from skillgit.tui import prints
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.lines import OneLine, TabBar
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Part, RenderedLines, app_of
from skillgit.tui.widgets.paragraphs import Paragraph, Paragraphs, disarmed, rendered
from skillgit.tui.widgets.printed import Print, Printed
from skillgit.tui.widgets.row_list import RowList
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.items import STYLES, sign
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, inert, one_line, pad, width

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from skillgit.app.history.diff.items import ItemChange
    from skillgit.app.history.diff.text import Diffed
    from skillgit.app.history.item import ItemWords
    from skillgit.app.history.show import EventDetail, Shown
    from skillgit.app.recorded.step_evidence import AppliedEdit, TrainAttempt
    from skillgit.app.workspace.context import Context


TABS: Final = ("Diff", "Edits", "Items", "Trace", "Message")
_IDS: Final = tuple(name.lower() for name in TABS)
_IN_SHORT: Final = frozenset({EventKind.RUN_FINISHED, EventKind.MEASURED})
"""What changes no text: the run is told in short."""


class Detail(Vertical):
    """What is known of an event; instead of its difference the seed has its text, and an end its run in short."""

    tab_index = 0
    _first = _IDS[0]
    row: LogRow | None = None
    detail: EventDetail | None = None

    def compose(self) -> ComposeResult:
        yield OneLine(id="what")
        yield OneLine(id="where")
        yield TabBar(TABS, id="tabs")
        with ContentSwitcher(initial=_IDS[0]):
            yield DiffView(id="diff")
            yield Printed(id="whole")
            yield Paragraphs(id="edits")
            yield EventItems(id="items")
            yield Paragraphs(id="trace")
            yield EventMessage(id="message")

    def on_mount(self) -> None:
        self.query_one(TabBar).open(0)

    @property
    def view(self) -> PaintedLines:
        return self.query_one(f"#{self._tab_id(self.tab_index)}", PaintedLines)

    def _tab_id(self, index: int) -> str:
        return _IDS[index] if index else self._first

    def clear(self, text: str = "", hint: str = "") -> None:
        self.row = self.detail = None
        self.query_one("#what", OneLine).say([])
        self.query_one("#where", OneLine).say([])
        for view in self.query(PaintedLines):
            view.tell(text, hint)

    def show(self, row: LogRow) -> None:
        app = app_of(self)
        self.row = row
        title, where = head(row, app.facts, app.now)
        self.query_one("#what", OneLine).say(title)
        self.query_one("#where", OneLine).say(where)
        self._begin_with(self._print_of(row))
        app.read(_detail, row.commit, then=self._show, on_error=self._without, group="detail")

    def _print_of(self, row: LogRow) -> Print | None:
        now = app_of(self).now
        if row.kind in _IN_SHORT:
            return prints.run_summary(row.run, now)
        return prints.version_text(str(row.address), now) if row.version == 0 else None

    def _begin_with(self, view: Print | None) -> None:
        """Let the first tab show ``view``, or the difference without it."""
        if view is not None:
            self.query_one("#whole", Printed).show(view)
        had_focus, before = self.view.has_focus, self._first
        self._first = _IDS[0] if view is None else "whole"
        self.query_one("#tabs", TabBar).names = (view.name if view is not None else TABS[0], *TABS[1:])
        if before != self._first or self.tab_index == 0:
            self._open_tab()
        if had_focus:
            self.view.focus()

    def _show(self, detail: EventDetail) -> None:
        if self.row is None or detail.shown.row.commit != self.row.commit:
            return
        self.detail = detail
        ink = app_of(self).facts
        self.query_one(DiffView).show(detail.files)
        if not detail.files:
            self.query_one(DiffView).tell("the event changed nothing in the skill")
        self.query_one("#edits", Paragraphs).show(list(edits(detail)))
        self.query_one(EventItems).show(detail.shown.items)
        self._read_words()
        self.query_one("#trace", Paragraphs).show(list(trace(detail, ink)))
        self.query_one(EventMessage).show(detail.shown)

    def _without(self, error: SkillgitError) -> None:
        for view in self.query(PaintedLines).exclude("#whole"):
            view.fail(error)

    def turn_to(self, index: int) -> None:
        had_focus = self.view.has_focus
        self.tab_index = index % len(TABS)
        self._open_tab()
        if had_focus:
            self.view.focus()

    def _read_words(self) -> None:
        """Read what the items ask, if they are in sight."""
        view = self.query_one(EventItems)
        if self.row is None or self.view is not view or view.words or not view.items:
            return
        items = [row.item for row in view.items]
        app_of(self).read(_words, self.row.commit, items, then=view.show_words, on_error=lambda _: None, group="words")

    def _open_tab(self) -> None:
        self.query_one(ContentSwitcher).current = self._tab_id(self.tab_index)
        self._read_words()
        self.query_one(TabBar).open(self.tab_index)

    def open(self, tab: str) -> None:
        self.turn_to(_IDS.index(tab))
        self.view.focus()

    def action_tab_next(self) -> None:
        self.turn_to(self.tab_index + 1)

    def action_tab_prev(self) -> None:
        self.turn_to(self.tab_index - 1)

    @on(TabBar.Chosen)
    def _chosen(self, message: TabBar.Chosen) -> None:
        message.stop()
        self.turn_to(message.index)

    @on(DiffView.ContextWanted)
    def _more_context(self, message: DiffView.ContextWanted) -> None:
        message.stop()
        if self.row is None or self.row.base is None:
            return
        lines = max(message.lines, 0)
        app_of(self).read(
            _diff, self.row.commit, then=lambda diff: self._with_context(diff, lines), group="context", lines=lines
        )

    def _with_context(self, diff: Diffed, lines: int) -> None:
        if self.is_attached and self.row is not None and diff.b is not None and diff.b.commit == self.row.commit:
            self.query_one(DiffView).show(diff.files, context=lines)


def _detail(context: Context, commit: str) -> EventDetail:
    # what reads events takes longer to load than the history to be painted, and is loaded in the thread that reads
    from skillgit.app.history.show import event_detail  # noqa: PLC0415 - see above

    return event_detail(context, commit)


def _words(context: Context, commit: str, items: Sequence[str]) -> dict[str, ItemWords]:
    from skillgit.app.history.item import item_words  # noqa: PLC0415 - as above

    return item_words(context, [commit], items)


def _diff(context: Context, commit: str, *, lines: int) -> Diffed:
    from skillgit.app.history.diff.text import diff  # noqa: PLC0415 - as above

    return diff(context, commit, lines=lines, as_data=True)


class EventMessage(RenderedLines):
    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    _report: Shown | None = None
    _message = ""

    def show(self, report: Shown) -> None:
        self._report, self._message = disarmed(replace(report, diff="", message="")), inert(report.message)
        self.renew(scroll=True)

    def made(self) -> Sequence[Painted]:
        if self._report is None:
            return ()
        from skillgit.view import show as full  # noqa: PLC0415 - slow to load, and the history is painted first

        ink = replace(self.ink, width=max(20, self.room - 2))
        facts = rendered(full.lines(self._report, ink, app_of(self).now, ink))
        message = [(Part(line, Style.FAINT),) for line in self._message.splitlines()]
        return [(Part(" "), *line) for line in (*facts, (), *message)]


_LONGEST = 600  # characters of one answer or question that are shown
_MISSING = Paragraph(f"The evidence of this event is not here.\nhint: {BRING}", Style.FAINT)


def head(row: LogRow, ink: Screen, now: datetime) -> tuple[Painted, Painted]:
    row = disarmed(row)
    entry = Entry.of_row(row)
    first = (
        Part(f" {entry.label}  ", Style.STRONG),
        Part(f"{cells.glyph(entry, ink.glyphs)} {cells.decision(entry)}", cells.style(entry)),
        Part(f"   {ink.encodable(cells.score(entry)).strip()}", Style.STRONG),
        Part(f" {cells.delta(entry)}", cells.style(entry)),
    )
    parts = [
        f"epoch {row.epoch}" if row.epoch else "",
        f"step {row.step}" if row.step else "",
        cells.made_of(row) or (f"base {version_label(row.base)}" if row.base is not None else ""),
        numbers.ago(row.time, now),
        numbers.short(row.commit),
        row.run,
    ]
    return first, (Part(f" {ink.dotted(parts)}", Style.FAINT),)


def edits(detail: EventDetail) -> Iterator[Paragraph]:
    if not detail.edits:
        records = getattr(detail.shown.event, "edits", ())
        for number, record in enumerate(records, 1):
            support = f"support {record.support} {record.source.value}"
            yield Paragraph(f"{number}  {record.op.value} {record.file}, {support}")
        if not records and not detail.shown.left_out:
            yield Paragraph("This event has no edits.", Style.FAINT)
        elif not detail.present:
            yield Paragraph("")
            yield _MISSING
    for number, edit in enumerate(detail.edits, 1):
        yield from _edit(number, edit)
    for omission in detail.shown.left_out:
        yield Paragraph(f"not applied: {omission.edit}", Style.STRONG, indent=4, lead="   ")
        yield Paragraph(f"{omission.status}: {omission.reason}", Style.FAINT, indent=6)
        yield Paragraph("")


def _edit(number: int, edit: AppliedEdit) -> Iterator[Paragraph]:
    text = f"{edit.op} {edit.file}, support {edit.support} {edit.source}"
    yield Paragraph(text, Style.STRONG, indent=4, lead=f" {number}")
    if edit.anchor:
        removes = edit.op in {"replace", "delete"}
        yield Paragraph(edit.anchor, "" if removes else Style.FAINT, indent=6, lead="   -" if removes else "   @")
    if edit.content:
        yield Paragraph(edit.content, "", indent=6, lead="   +")
    if edit.items:
        yield Paragraph(f"from {' '.join(edit.items)}", Style.FAINT, indent=6)
    yield Paragraph("")


def trace(detail: EventDetail, ink: Screen) -> Iterator[Paragraph]:
    """Yield what analysts saw in the step of an event, and what the target made of the items that they point at."""
    if not detail.present:
        yield _MISSING if detail.shown.evidence_tree else Paragraph("This event has no evidence.", Style.FAINT)
        return
    for finding in detail.findings:
        yield Paragraph(finding.pattern, "", indent=6, lead=f" {finding.count:>3} ")
        yield Paragraph(" ".join(finding.items), Style.FAINT, indent=6)
    for attempt in detail.attempts:
        yield Paragraph("")
        yield from _attempt(attempt, ink)
    if not detail.findings and not detail.attempts:
        yield Paragraph("Nothing was noted of single trajectories here; e opens an item's own.", Style.FAINT)


def _attempt(attempt: TrainAttempt, ink: Screen) -> Iterator[Paragraph]:
    is_solved = bool(attempt.hard)
    sign = ink.glyphs.passed if is_solved else ink.glyphs.rejected
    hard, soft = numbers.score(attempt.hard) or "none", numbers.score(attempt.soft) or "none"
    scores = f"{attempt.item}  hard {hard}  soft {soft}"
    yield Paragraph(scores, Style.ACCEPTED if is_solved else Style.REJECTED, indent=4, lead=f" {sign}")
    for label, text in (("asked", attempt.question), ("said", attempt.answer), ("judged", attempt.feedback)):
        if text:
            yield Paragraph(text[:_LONGEST], "", indent=12, lead=f"    {label}")


class EventItems(RowList):
    items: Sequence[ItemChange] = ()
    words: Mapping[str, ItemWords] = {}

    def show(self, items: Sequence[ItemChange]) -> None:
        order = list(STYLES)
        self.items = sorted(items, key=lambda row: (order.index(row.change), row.item))
        self.shown()
        if not items:
            self.tell("no outcomes of single items are known of this event")
        self.cursor, self.words = 0, {}
        self.show_count(len(self.items))

    def show_words(self, words: Mapping[str, ItemWords]) -> None:
        self.words = words
        self.refresh()

    @property
    def item(self) -> str:
        return self.items[self.cursor].item if self.cursor < len(self.items) else ""

    def painted(self, line: int) -> Painted:
        row, glyphs = self.items[line], self.ink.glyphs
        scores = f"{numbers.score(row.before) or 'none':>5} {glyphs.arrow} {numbers.score(row.after) or 'none':<5}"
        columns = min(24, max(width(one_line(item.item)) for item in self.items))
        front = (
            Part(f" {sign(row.change, glyphs)} {row.change.replace('-', ' '):<12}", STYLES[row.change]),
            Part(pad(fit(one_line(row.item), columns, glyphs.ellipsis), columns)),
            Part(f" {scores}  ", STYLES[row.change]),
        )
        text = prints.said(self.words.get(row.item)) or one_line(row.task_type)
        room = max(1, self.room - 1 - sum(width(part.text) for part in front))
        return (*front, Part(fit(self.ink.encodable(text), room, glyphs.ellipsis), Style.FAINT))
