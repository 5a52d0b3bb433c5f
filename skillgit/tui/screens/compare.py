"""Two versions: how their texts differ, rule by rule, and item by item."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from skillgit.app.history.diff.items import Change, ItemChange, ItemDiff, items
from skillgit.app.history.diff.rules import RulesDiffed, rule_diff
from skillgit.app.history.diff.text import Diffed, diff
from skillgit.app.history.item import ItemWords, item_words
from skillgit.domain.text_diff import CONTEXT
from skillgit.errors import SkillgitError
from skillgit.index.rows import LogRow
from skillgit.tui.actions import SearchScreen
from skillgit.tui.keymap import bindings
from skillgit.tui.prints import said
from skillgit.tui.screens.dialogs import CopyScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine, TabBar
from skillgit.tui.widgets.painted_lines import AT_ONCE, Painted, PaintedLines, Part, RenderedLines, app_of
from skillgit.tui.widgets.paragraphs import disarmed, rendered
from skillgit.tui.widgets.shown_text import on_one_line
from skillgit.view import numbers
from skillgit.view.items import CHANGES, STYLES, change_words, headline, name, totals
from skillgit.view.rules import change_lines, sums
from skillgit.view.surface import Screen, Style
from skillgit.view.surface import Screen as Facts
from skillgit.view.text import fit, width

if TYPE_CHECKING:
    from textual.binding import BindingType


_ASKED = 16  # columns of a question, at least
NAMED = 4
"""Items that the summary names of each kind."""


class ItemsView(RenderedLines):
    """All items of two versions, those that changed first; the cursor chooses one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")
    has_cursor: ClassVar[bool] = True

    @dataclass
    class Opened(Message):
        """An item was chosen."""

        item: str

    _diff: ItemDiff | None = None
    _items: Sequence[ItemChange] = ()
    _words: Mapping[str, ItemWords] = {}

    def show_words(self, words: Mapping[str, ItemWords]) -> None:
        self._words = words
        self.renew()

    def show(self, diff: ItemDiff) -> None:
        order = list(STYLES)
        self._items = sorted(diff.rows, key=lambda row: order.index(row.change))
        self._diff = diff
        self.renew()

    @property
    def item(self) -> str:
        return self._items[self.cursor].item if self.cursor < len(self._items) else ""

    @property
    def heavy(self) -> bool:
        return len(self._items) > AT_ONCE

    def made(self) -> Sequence[Painted]:
        if self._diff is None:
            return ()
        ink = self.ink
        lines = CHANGES.lines([disarmed(row, ink) for row in self._items], ink, whole=self._diff)
        rows = [self._asked(*pair) for pair in enumerate(rendered(lines))]
        rest = rendered(totals(disarmed(self._diff, ink), ink))
        return [*((Part(" "), *row) for row in rows), *((Part(" "), *row) for row in rest)]

    def _asked(self, index: int, row: Painted) -> Painted:
        """Return a row with what its item asks, as far as there is room."""
        room = self.room - 4 - sum(cell_len(part.text) for part in row)
        text = on_one_line(said(self._words.get(self._items[index].item)), self.ink)
        return (*row, Part(f"  {fit(text, room, self.ink.glyphs.ellipsis)}", Style.FAINT)) if room > _ASKED else row

    def action_list_open(self) -> None:
        if self.item:
            self.post_message(self.Opened(self.item))

    def on_click(self, event: events.Click) -> None:
        self._go(self.scroll_offset.y + event.y)
        if event.chain > 1:
            self.action_list_open()


def summary(diff: ItemDiff, screen: Screen, limit: int = NAMED) -> Iterator[Part]:
    """Yield how many items were fixed and broken, at most ``limit`` of each by name, and how many stayed."""
    dot = f" {screen.glyphs.dot} "
    items = disarmed(diff, screen)
    named_changes = change_words(diff.differs)
    groups: tuple[tuple[Change, tuple[str, ...]], ...] = (
        ("fixed", items.fixed),
        *((("gained", items.gained),) if items.gained else ()),
        ("broken", items.broken),
        *((("lost", items.lost),) if items.lost else ()),
    )
    for kind, names in groups:
        yield Part(f"{len(names)} {named_changes[kind]}", STYLES[kind] if names else "")
        if names and limit:
            more = f" {screen.glyphs.ellipsis}" if len(names) > limit else ""
            yield Part(f" ({' '.join(names[:limit])}{more})", Style.FAINT)
        yield Part(dot, Style.FAINT)
    yield Part(f"{len(items.stable_pass)} stable pass{dot}{len(items.stable_fail)} stable fail")
    if items.not_measured:
        yield Part(f"{dot}{len(items.not_measured)} of {len(items.rows)} not measured", Style.FAINT)
    if items.missing:
        yield Part(f"{dot}{len(items.missing)} missing", Style.REVERTED)


_HEAD = 2  # lines above the rules that the screen has said already: the two sides, and a blank one


class RulesView(RenderedLines):
    """The rules that two versions do not share, with what each rests on and what its step gained."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    _rules: RulesDiffed | None = None

    def show(self, rules: RulesDiffed) -> None:
        self._rules = rules
        self.renew()

    @property
    def heavy(self) -> bool:
        return self._rules is not None and len(self._rules.rows) > AT_ONCE

    def made(self) -> Sequence[Painted]:
        if self._rules is None:
            return ()
        ink = replace(self.ink, width=self.room - 1)
        lines = rendered(islice(change_lines(disarmed(self._rules, ink), ink), _HEAD, None))
        return [(Part(" "), *line) for line in lines]


WIDE: Final = 100
"""Columns from which on rules are under the text and items are named in the sums."""
VIEWS: Final = ("text", "rules", "items")


class CompareScreen(SearchScreen):
    """Two versions in three views; where there is room, the text has the rules below it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("compare", "tabs", "find")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - as Textual declares it
    DEFAULT_CSS = """
    CompareScreen {
        #bar { height: 1; }
        #bar OneLine { background: $panel; }
        #views { width: 26; }
        #text, #rules, #items, #rules-title, #differs { display: none; }
        &.-differs #differs { display: block; }
        &.-text #text, &.-rules #rules, &.-items #items { display: block; }
        &.-wide.-text #rules, &.-wide.-text #rules-title { display: block; }
        &.-wide.-text #rules { height: auto; max-height: 30%; }
    }
    """

    def __init__(self, a: str, b: str) -> None:
        super().__init__()
        self.a, self.b = a, b
        self.view = VIEWS[0]
        self._around = CONTEXT
        self._rows: tuple[LogRow | None, LogRow | None] = (None, None)
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
        self.query_one("#sides", OneLine).say([Part(f" {self.a} {self._facts.glyphs.arrow} {self.b}", Style.STRONG)])
        for view in self.query(PaintedLines):
            view.tell("reading …" if self._facts.unicode else "reading ...")
        self._turn_to(self.view)
        self.reload()

    def reload(self) -> None:
        read = app_of(self).read
        self._read_text()
        read(rule_diff, self.a, self.b, then=self._show_rules, on_error=self._without_rules, group="compare-rules")
        read(items, self.a, self.b, then=self._show_items, on_error=self._without_items, group="compare-items")

    def _read_text(self) -> None:
        then, fail = self._show_text, self.query_one(DiffView).fail
        options = {"lines": self._around, "as_data": True}
        app_of(self).read(diff, self.a, self.b, then=then, on_error=fail, group="compare-text", **options)

    @property
    def _facts(self) -> Facts:
        return app_of(self).facts

    def _show_text(self, diff: Diffed) -> None:
        self._rows = (diff.a, diff.b)
        self._say_sides()
        self.query_one(DiffView).show(diff.files, context=self._around)

    def _say_sides(self) -> None:
        a, b = disarmed(self._rows, self._facts)
        metric = self._items.metric if self._items else ""
        line = headline(a, b, replace(self._facts, colour=True), metric)
        run = next((row.run for row in (b, a) if row is not None), "")
        if run and width(line) >= self.size.width:
            # the score says more than the run, which stands on the screen before
            line = line.replace(f"   {run}", "", 1)
        head = rendered([line])[0]
        total = numbers.plural(len(self._items.rows), "item") if self._items else ""
        self.query_one("#sides", OneLine).say([Part(" "), *head], [Part(f"{total} ", Style.FAINT)])

    def _show_rules(self, diff: RulesDiffed) -> None:
        self.query_one(RulesView).show(diff)
        text = sums(diff, self._facts)
        self.query_one("#rules-title", OneLine).say([Part(f" {text} ", Style.STRONG)])

    def _show_items(self, diff: ItemDiff) -> None:
        self._rows, self._items = (diff.a, diff.b), diff
        self.set_class(bool(diff.differs), "-differs")
        text = "  ".join(on_one_line(difference.sentence, self._facts) for difference in diff.differs)
        self.query_one("#differs", OneLine).say([Part(f" ! {text}", Style.REVERTED)])
        self._say_sides()
        view = self.query_one(ItemsView)
        view.show(diff)
        commits = [row.commit for row in self._rows if row is not None]
        names = [row.item for row in diff.rows]
        read = app_of(self).read
        read(item_words, commits, names, then=view.show_words, on_error=lambda _: None, group="compare-words")
        limit = NAMED if self.size.width >= WIDE else 0
        self.query_one("#sums", OneLine).say([Part(" "), *summary(diff, self._facts, limit)])

    def _without_rules(self, error: SkillgitError) -> None:
        self.query_one(RulesView).fail(error)
        self.query_one("#rules-title", OneLine).say([Part(" rules: not known ", Style.FAINT)])

    def _without_items(self, error: SkillgitError) -> None:
        self.query_one(ItemsView).fail(error)
        self.query_one("#sums", OneLine).say([Part(f" {on_one_line(str(error), self._facts)}", Style.FAINT)])

    def _turn_to(self, view: str) -> None:
        self.view = view
        # all at once: each change makes Textual style the whole screen again
        self.classes = self.classes - {f"-{name}" for name in VIEWS} | {f"-{view}"}
        self.searched.focus()
        self._say_bar()

    def _said(self) -> str:
        """Return what the right end of the bar says of the view: the search, or how the text is shown."""
        view = self.searched
        if view.sought:
            where = f"{view.hit + 1} of {len(view.hits)}" if view.hits else "nothing found for"
            return f"{where}  {on_one_line(view.sought, self._facts)} "
        if not isinstance(view, DiffView) or not view.hunks:
            return ""
        how = ("words" if view.word else "lines", f"{view.context} around", f"hunk {view.hunk + 1} of {view.hunks}")
        return f"{self._facts.dotted(how)} "

    def on_diff_view_context_wanted(self, message: DiffView.ContextWanted) -> None:
        self._around = message.lines
        self._read_text()

    @on(DiffView.Changed)
    @on(PaintedLines.Sought)
    def _say_bar(self) -> None:
        self.query_one(TabBar).open(VIEWS.index(self.view))
        self.query_one("#how", OneLine).say([], [Part(self._said(), Style.FAINT)])

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self._turn_to(VIEWS[message.index])

    @property
    def searched(self) -> PaintedLines:
        return self.query_one(f"#{self.view}", PaintedLines)

    def on_items_view_opened(self, message: ItemsView.Opened) -> None:
        against, row = self._rows
        if row is not None and against is not None:
            self.app.push_screen(ItemScreen(message.item, row.run, name(row), against=against))

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

    def action_copy_menu(self) -> None:
        command = shlex.join(("skillgit", "diff", self.a, self.b))
        commits = [(letter, row.commit) for letter, row in zip("ab", self._rows, strict=True) if row is not None]
        choices = [("c", "command", command), *((letter, "commit", commit) for letter, commit in commits)]
        self.app.push_screen(CopyScreen(choices), self.copy)
