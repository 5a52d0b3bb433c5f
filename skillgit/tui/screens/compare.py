"""Two versions: how their texts differ, rule by rule, and item by item."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from skillgit.domain.text_diff import CONTEXT
from skillgit.errors import SkillgitError
from skillgit.index.rows import LogRow
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import Choice, SearchScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.item_changes import ItemChanges
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine, TabBar
from skillgit.tui.widgets.painted_lines import (
    Painted,
    PaintedLines,
    Part,
    RenderedLines,
    rendered,
)
from skillgit.verbs.diff import (
    ITEM_DIFF,
    RULE_DIFF,
    TEXT_DIFF,
    Diffed,
    DiffRequest,
    ItemDiff,
    RulesDiffed,
    sayings,
)
from skillgit.view import numbers
from skillgit.view.items import headline, name, totals
from skillgit.view.items import sums as item_sums
from skillgit.view.rules import change_lines, sums
from skillgit.view.surface import Style
from skillgit.view.text import one_line, width

_HEAD = 2  # lines above the rules that the screen has said already: the two sides, and a blank one
NAMED: Final = 4
"""Items that the summary names of each kind."""
WIDE: Final = 100
"""Columns from which on rules are under the text and items are named in the sums."""
VIEWS: Final = ("text", "rules", "items")


class ItemsView(ItemChanges[ItemDiff]):
    """All items of two versions, those that changed first, and the sums below them."""

    def made(self, facts: ItemDiff) -> Sequence[Painted]:
        return [*super().made(facts), *((Part(" "), *line) for line in rendered(totals(facts, self.ink), self.ink))]


class RulesView(RenderedLines[RulesDiffed]):
    """The rules that two versions do not share, with what each rests on and what its step gained."""

    def weight(self, facts: RulesDiffed) -> int:
        return len(facts.rows)

    def made(self, facts: RulesDiffed) -> Sequence[Painted]:
        ink = replace(self.ink, width=self.room - 1)
        return [(Part(" "), *line) for line in rendered(islice(change_lines(facts, ink), _HEAD, None), ink)]


class CompareScreen(SearchScreen):
    """Two versions in three views; where there is room, the text has the rules below it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("compare", "tabs", "find")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - as Textual declares it

    action_screen_close = SearchScreen.action_screen_back

    def __init__(self, a: str, b: str, view: str = VIEWS[0]) -> None:
        super().__init__()
        self.a, self.b = a, b
        self.view = view
        self._around = CONTEXT
        self._sides: tuple[LogRow | None, LogRow | None] = (None, None)
        self._items: ItemDiff | None = None

    def compose(self) -> ComposeResult:
        yield OneLine(id="differs")
        yield OneLine(id="sides")
        with Horizontal(id="bar"):
            yield TabBar([view.capitalize() for view in VIEWS], id="views")
            yield OneLine(id="how")
        yield DiffView(id="text")
        yield OneLine(id="rules-title", fill="─")
        yield RulesView(id="rules")
        yield ItemsView(id="items")
        yield OneLine(id="sums")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        facts = app_of(self).facts
        self.say("sides", facts.paint(Style.STRONG, f" {self.a} {facts.glyphs.arrow} {self.b}"))
        for view in self.query(PaintedLines):
            view.tell_reading()
        self._turn_to(self.view)
        self.reload()

    def reload(self) -> None:
        read, request = app_of(self).read, DiffRequest(a=self.a, b=self.b)
        self._read_text()
        read(RULE_DIFF.ask, request, then=self._show_rules, on_error=self._without_rules, group="compare-rules")
        read(ITEM_DIFF.ask, request, then=self._show_items, on_error=self._without_items, group="compare-items")

    def _read_text(self) -> None:
        request = DiffRequest(a=self.a, b=self.b, lines=self._around)
        then, fail = self._show_text, self.query_one(DiffView).fail
        app_of(self).read(TEXT_DIFF.ask, request, then=then, on_error=fail, group="compare-text")

    def _show_text(self, diff: Diffed) -> None:
        self._sides = (diff.a, diff.b)
        self._say_sides()
        self.query_one(DiffView).show_files(diff.files, context=self._around)

    def _say_sides(self) -> None:
        a, b = self._sides
        ink = app_of(self).facts
        line = headline(a, b, ink, self._items)
        run = next((row.run for row in (b, a) if row is not None), "")
        if run and width(line) >= self.size.width:
            # the score says more than the run, which the screen before has named
            line = line.replace(f"   {run}", "", 1)
        total = numbers.plural(len(self._items.rows), "item") if self._items else ""
        self.say("sides", f" {line}", ink.paint(Style.FAINT, f"{total} "))

    def _show_rules(self, diff: RulesDiffed) -> None:
        facts = app_of(self).facts
        self.query_one(RulesView).show(diff)
        self.say("rules-title", facts.paint(Style.STRONG, f" {sums(diff, facts)} "))

    def _without_rules(self, error: SkillgitError) -> None:
        self.query_one(RulesView).fail(error)
        self.say("rules-title", app_of(self).facts.paint(Style.FAINT, " rules: not known "))

    def _show_items(self, diff: ItemDiff) -> None:
        facts, view = app_of(self).facts, self.query_one(ItemsView)
        self._sides, self._items = (diff.a, diff.b), diff
        self.set_class(bool(diff.differs), "-differs")
        text = "  ".join(one_line(difference.sentence) for difference in diff.differs)
        self.say("differs", facts.paint(Style.REVERTED, f" ! {text}"))
        self._say_sides()
        view.show(diff)
        self.say("sums", f" {item_sums(diff, facts, NAMED if self.size.width >= WIDE else 0)}")

        commits = [row.commit for row in self._sides if row is not None]
        request = (commits, [row.item for row in diff.rows], facts)
        app_of(self).read(sayings, *request, then=view.show_words, on_error=lambda _: None, group="compare-words")

    def _without_items(self, error: SkillgitError) -> None:
        self.query_one(ItemsView).fail(error)
        self.say("sums", app_of(self).facts.paint(Style.FAINT, f" {one_line(str(error))}"))

    def _turn_to(self, view: str) -> None:
        self.view = view
        # all at once: each change makes Textual style the whole screen again
        self.classes = self.classes - {f"-{name}" for name in VIEWS} | {f"-{view}"}
        self.searched.focus()
        self._say_bar()

    @on(DiffView.Changed)
    @on(PaintedLines.Sought)
    def _say_bar(self) -> None:
        """Say at the right end what is searched for, or how the text is shown."""
        self.query_one(TabBar).open(VIEWS.index(self.view))
        view, facts, how = self.searched, app_of(self).facts, ""
        if view.sought:
            where = f"{view.hit + 1} of {len(view.hits)}" if view.hits else "nothing found for"
            how = f"{where}  {one_line(view.sought)} "
        elif isinstance(view, DiffView) and view.hunks:
            hunk = f"hunk {view.hunk + 1} of {len(view.hunks)}"
            how = f"{facts.dotted(('words' if view.word else 'lines', f'{view.context} around', hunk))} "
        self.say("how", "", facts.paint(Style.FAINT, how))

    def on_diff_view_context_wanted(self, message: DiffView.ContextWanted) -> None:
        self._around = message.lines
        self._read_text()

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self._turn_to(VIEWS[message.index])

    @property
    def searched(self) -> PaintedLines:
        return self.query_one(f"#{self.view}", PaintedLines)

    @on(PaintedLines.Opened, "#items")
    def _open_item(self) -> None:
        against, row = self._sides
        item = self.query_one(ItemsView).item
        if item and row is not None and against is not None:
            self.app.push_screen(ItemScreen(item, row.run, name(row), against=against))

    def action_compare_next(self) -> None:
        self._turn_to(VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)])

    def action_compare_prev(self) -> None:
        self._turn_to(VIEWS[VIEWS.index(self.view) - 1])

    action_tab_next, action_tab_prev = action_compare_next, action_compare_prev

    def action_compare_open(self) -> None:
        self._turn_to("items")

    def action_compare_swap(self) -> None:
        self.a, self.b = self.b, self.a
        self._items = None
        self.reload()

    def choices(self) -> Sequence[Choice]:
        command = shlex.join(("skillgit", "diff", self.a, self.b))
        commits = [(letter, "commit", row.commit) for letter, row in zip("ab", self._sides, strict=True) if row]
        return [("c", "command", command), *commits]
