"""One event in full, and what can be done with it: to read more of it, and to change history by commands.

The detail has a head, and tabs with the difference, edits, items, traces and message. Editor and pager take the
terminal for a while.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial, partialmethod
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import ContentSwitcher

from skillgit.app.deliver.requests import USUAL_AGENTS, Scope
from skillgit.app.workspace.workspace import BRING
from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import SkillgitError
from skillgit.index.rows import LogRow
from skillgit.lazy import loaded_on_use
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import Choice, ChoiceScreen, NameScreen, SearchScreen, numbered
from skillgit.tui.screens.printed import COST, ITEMS, SETTINGS, SUMMARY, TEXT, Printed, PrintedScreen, Prints
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.item_changes import ItemChanges
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine, TabBar
from skillgit.tui.widgets.painted_lines import (
    Painted,
    PaintedLines,
    Paragraph,
    Paragraphs,
    Part,
    RenderedLines,
    rendered,
)
from skillgit.verbs.diff import (
    EVENT_DETAIL,
    SHOWN_FILE,
    TEXT_DIFF,
    Diffed,
    DiffRequest,
    EventDetail,
    ItemChange,
    Shown,
    ShowRequest,
    sayings,
)
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.surface import Screen, Style
from skillgit.view.text import inert, one_line

with loaded_on_use():
    from skillgit.tui.screens import item as items
    from skillgit.view import show as full

_DOCUMENT: Final = "SKILL.md"


class VersionScreen(SearchScreen):
    """A screen with the detail of an event, and actions on :attr:`current`, the event under its cursor."""

    @property
    def detail(self) -> Detail:
        return self.query_one(Detail)

    @property
    def searched(self) -> PaintedLines:
        return self.detail.view

    @property
    def current(self) -> LogRow | None:
        raise NotImplementedError

    def _command(self, words: str, *, only_versions: bool = True, look: bool = False) -> None:
        """Run the command of ``words``, in which ``{at}`` and ``{run}`` stand for the event and its run."""
        row = self.current
        if row is not None and row.version is None and only_versions:
            self.notify(f"{row.address} is not a version", severity="warning", markup=False)
        elif row is not None:
            app_of(self).command([word.format(at=row.address, run=row.run) for word in words.split()], look=look)

    action_version_checkout = partialmethod(_command, "checkout {at}", only_versions=False)
    action_version_revert = partialmethod(_command, "revert --to {at}")
    action_version_promote = partialmethod(_command, "promote {at}")
    action_version_evaluate = partialmethod(_command, "eval {at} --split test", look=True)
    action_run_report = partialmethod(_command, "report {run} --output {run}.html", only_versions=False)

    def _ask(self, question: str, usual: str, words: Callable[[LogRow, str], Sequence[str]]) -> None:
        """Ask for a text, of which ``words`` make a command, or none."""
        row = self.current
        if row is None:
            return

        def answered(text: str | None) -> None:
            if text is not None and (command := words(row, text)):
                app_of(self).command(command)

        self.app.push_screen(NameScreen(question, usual), answered)

    def action_version_export(self) -> None:
        row = self.current
        if row is not None:
            archive = f"{str(row.address).replace('/', '-')}.skill"
            question = "Folder, FILE.zip or FILE.skill to write"
            self._ask(question, archive, lambda row, path: ("export", str(row.address), path or archive))

    def action_version_note(self) -> None:
        def words(row: LogRow, text: str) -> Sequence[str]:
            return ("note", *(["--"] if text.startswith("-") else []), str(row.address), text) if text else ()

        self._ask("Note for the steps that come", "", words)

    def action_version_fork(self) -> None:
        row = self.current
        if row is None or row.version is None:
            self._command("fork {at}")
        else:
            question, usual = "Name of the new run", "made up if empty"
            self._ask(question, usual, lambda row, name: ("fork", str(row.address), *([name] if name else [])))

    def action_version_adopt(self) -> None:
        targets = [f"{agent.value} --scope {scope.value}" for agent in USUAL_AGENTS for scope in Scope]

        def answered(target: str | None) -> None:
            if target:
                self._command(f"install {{at}} --to {target}", only_versions=False)

        if self.current is not None:
            self.app.push_screen(ChoiceScreen("For which agent", numbered("install", targets)), answered)

    def _print(self, prints: Prints, title: str) -> None:
        row = self.current
        if row is not None:
            words = {name: tuple(text.format(at=row.address, run=row.run).split()) for name, text in prints.items()}
            self.app.push_screen(PrintedScreen(title.format(at=row.address, run=row.run), words))

    action_version_text = partialmethod(_print, TEXT, "{at}")
    action_run_items = partialmethod(_print, ITEMS, "Items of {run}")
    action_run_cost = partialmethod(_print, COST, "Cost of {run}")
    action_run_settings = partialmethod(_print, SETTINGS, "Settings of {run}")
    action_run_summary = partialmethod(_print, SUMMARY, "Run {run}")

    def choices(self) -> Sequence[Choice]:
        row = self.current
        if row is None:
            return ()
        return (
            ("a", "address", str(row.address)),
            ("c", "commit", row.commit),
            ("t", "title", row.title),
            ("s", "command", f"skillgit show {row.address}"),
            ("d", "diff", f"git show {row.commit}"),
        )

    def action_editor_open(self) -> None:
        """Read the skill's document in the editor; what is changed there is not kept."""
        if self.current is not None:
            request = ShowRequest(revision=f"{self.current.address}:{_DOCUMENT}")
            app_of(self).read(SHOWN_FILE.ask, request, then=partial(self._edit, self.current))

    def _edit(self, row: LogRow, document: bytes) -> None:
        self.in_editor(f"{str(row.address).replace('/', '-')}-{_DOCUMENT}", document, mode=0o444)

    def action_pager_open(self) -> None:
        """Show the event as ``skillgit show`` does, in its pager."""
        if self.current is not None:
            words = ("-C", str(app_of(self).context.directory), "--color=always", "show", str(self.current.address))
            self.in_terminal([sys.executable, "-m", "skillgit", *words])

    @on(PaintedLines.Opened, "#items")
    def _item_opened(self) -> None:
        if self.detail.row is not None:
            self.app.push_screen(items.ItemScreen(self.query_one(EventItems).item, self.detail.row.run))

    def action_evidence_open(self) -> None:
        self.detail.open("trace")

    def action_tab_next(self) -> None:
        self.detail.action_tab_next()

    def action_tab_prev(self) -> None:
        self.detail.action_tab_prev()


class EventScreen(VersionScreen):
    """One event in full."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("event", "tabs", "find")

    action_screen_close = SearchScreen.action_screen_back

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


TABS: Final = ("Diff", "Edits", "Items", "Trace", "Message")
_IDS: Final = tuple(name.lower() for name in TABS)


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

    def clear(self) -> None:
        self.row = self.detail = None
        for line in ("#what", "#where"):
            self.query_one(line, OneLine).say([])
        for view in self.query(PaintedLines):
            view.tell("")

    def show(self, row: LogRow) -> None:
        app = app_of(self)
        self.row = row
        for name, parts in zip(("#what", "#where"), head(row, app.facts, app.now), strict=True):
            self.query_one(name, OneLine).say(parts)
        prints_of_first = TEXT if row.version == 0 else {}
        if row.kind in {EventKind.RUN_FINISHED, EventKind.MEASURED}:  # what changes no text: the run is shown in short
            prints_of_first = SUMMARY
        had_focus, before = self.view.has_focus, self._first
        self._first, tabs = _IDS[0], self.query_one(TabBar)
        tabs.names = TABS
        for name, words in prints_of_first.items():
            self._first, tabs.names = "whole", (name, *TABS[1:])
            self.query_one(Printed).show_print(tuple(words.format(run=row.run, at=row.address).split()))
        if before != self._first or self.tab_index == 0:
            self._open_tab()
        if had_focus:
            self.view.focus()
        request = ShowRequest(revision=row.commit)
        app.read(EVENT_DETAIL.ask, request, then=self._show, on_error=self._without, group="detail")

    def _show(self, detail: EventDetail) -> None:
        if self.row is None or detail.shown.row.commit != self.row.commit:
            return
        self.detail = detail
        diff = self.query_one(DiffView)
        diff.show_files(detail.files)
        if not detail.files:
            diff.tell("the event changed nothing in the skill")
        self.query_one("#edits", Paragraphs).show(list(edits(detail)), from_top=True)
        items = self.query_one(EventItems)
        items.words, items.cursor = {}, 0
        items.show(detail.shown.items, from_top=True)
        self._read_words()
        self.query_one("#trace", Paragraphs).show(list(trace(detail, app_of(self).facts)), from_top=True)
        self.query_one(EventMessage).show(detail.shown, from_top=True)

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
        if self.row is None or self.view is not view or view.words or not view.facts:
            return
        base = [] if self.row.base is None else [f"{self.row.run}/{version_label(self.row.base)}"]
        request = ([*base, self.row.commit], [row.item for row in view.facts], app_of(self).facts)
        app_of(self).read(sayings, *request, then=view.show_words, on_error=lambda _: None, group="words")

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
        row, lines = self.row, max(message.lines, 0)
        if row is None or row.base is None:
            return

        def show(diff: Diffed) -> None:
            if self.is_attached and self.row == row and diff.b is not None and diff.b.commit == row.commit:
                self.query_one(DiffView).show_files(diff.files, context=lines)

        app_of(self).read(TEXT_DIFF.ask, DiffRequest(a=row.commit, lines=lines), then=show, group="context")


class EventMessage(RenderedLines[Shown]):
    def made(self, facts: Shown) -> Sequence[Painted]:
        ink = replace(self.ink, width=max(20, self.room - 2))
        # what the other tabs show, and the message below
        facts_above = rendered(full.lines(replace(facts, diff="", message=""), ink, app_of(self).now, ink), ink)
        message = [(Part(line, Style.FAINT),) for line in inert(facts.message).splitlines()]
        return [(Part(" "), *line) for line in (*facts_above, (), *message)]


_LONGEST = 600  # characters of one answer or question that are shown
_MISSING = Paragraph(f"The evidence of this event is not here.\nhint: {BRING}", Style.FAINT)


def head(row: LogRow, ink: Screen, now: datetime) -> tuple[Painted, Painted]:
    entry = Entry.of_row(row)
    first = (
        Part(f" {entry.label}  ", Style.STRONG),
        Part(f"{cells.glyph(entry, ink.glyphs)} {cells.decision(entry)}", cells.style(entry)),
        Part(f"   {ink.encodable(cells.score(entry)).strip()}", Style.STRONG),
        Part(f" {cells.delta(entry)}", cells.style(entry)),
    )
    parts = [*full.placed(row, now), numbers.short(row.commit), one_line(row.run)]
    return first, (Part(f" {ink.dotted(parts)}", Style.FAINT),)


def edits(detail: EventDetail) -> Iterator[Paragraph]:
    if not detail.edits:
        records = detail.shown.event.edits
        for number, record in enumerate(records, 1):
            support = f"support {record.support} {record.source.value}"
            yield Paragraph(f"{number}  {record.op.value} {record.file}, {support}")
        if not records and not detail.shown.left_out:
            yield Paragraph("This event has no edits.", Style.FAINT)
        elif not detail.present:
            yield from (Paragraph(""), _MISSING)
    for number, edit in enumerate(detail.edits, 1):
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
    for omission in detail.shown.left_out:
        yield Paragraph(f"not applied: {omission.edit}", Style.STRONG, indent=4, lead="   ")
        yield Paragraph(f"{omission.status}: {omission.reason}", Style.FAINT, indent=6)
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
        mark, style = (ink.glyphs.passed, Style.ACCEPTED) if attempt.hard else (ink.glyphs.rejected, Style.REJECTED)
        hard, soft = numbers.score(attempt.hard) or "none", numbers.score(attempt.soft) or "none"
        yield Paragraph("")
        yield Paragraph(f"{attempt.item}  hard {hard}  soft {soft}", style, indent=4, lead=f" {mark}")
        for label, text in (("asked", attempt.question), ("said", attempt.answer), ("judged", attempt.feedback)):
            if text:
                yield Paragraph(text[:_LONGEST], "", indent=12, lead=f"    {label}")
    if not detail.findings and not detail.attempts:
        yield Paragraph("Nothing was noted of single trajectories here; e opens an item's own.", Style.FAINT)


class EventItems(ItemChanges[Sequence[ItemChange]]):
    def show(self, facts: Sequence[ItemChange], *, from_top: bool = False) -> None:
        super().show(facts, from_top=from_top)
        if not facts:
            self.tell("no outcomes of single items are known of this event")
