"""The parts of the screen that compares versions: items that changed, and rules that changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import AT_ONCE, Painted, Part, RenderedLines
from skillgit.tui.widgets.paragraphs import disarmed, rendered
from skillgit.view import numbers, rule_changes
from skillgit.view.items import STYLES, change_words, sign, totals
from skillgit.view.surface import Style
from skillgit.view.text import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual import events
    from textual.binding import BindingType

    from skillgit.app.history.diff.items import Change, ItemChange, ItemDiff
    from skillgit.app.history.diff.rules import RulesDiffed
    from skillgit.view.surface import Screen


NAMED = 4
"""Items that the summary names of each kind."""


class ItemsView(RenderedLines):
    """All items of two versions, those that changed first; the cursor chooses one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")
    has_cursor: ClassVar[bool] = True

    class Opened(Message):
        """An item was chosen."""

        def __init__(self, item: str) -> None:
            super().__init__()
            self.item = item

    _diff: ItemDiff | None = None
    _items: Sequence[ItemChange] = ()

    def show(self, diff: ItemDiff) -> None:
        order = list(STYLES)
        self._items = sorted(diff.rows, key=lambda row: order.index(row.change))
        self._diff = diff
        self.renew()

    @property
    def item(self) -> str:
        """The item under the cursor; empty where there is none."""
        return self._items[self.cursor].item if self.cursor < len(self._items) else ""

    @property
    def heavy(self) -> bool:
        return len(self._items) > AT_ONCE

    def made(self) -> Sequence[Painted]:
        if self._diff is None:
            return ()
        ink = self.ink
        rows = (
            rendered(table([_cells(disarmed(row, ink), self._diff, ink) for row in self._items], align="lllrlr"))
            if self._items
            else []
        )
        rest = rendered(totals(disarmed(self._diff, ink), ink))
        return [*((Part(" "), *row) for row in rows), *((Part(" "), *row) for row in rest)]

    def action_list_open(self) -> None:
        if self.item:
            self.post_message(self.Opened(self.item))

    def on_click(self, event: events.Click) -> None:
        """Choose a line; a second click opens it."""
        self._go(self.scroll_offset.y + event.y)
        if event.chain > 1:
            self.action_list_open()


def _cells(row: ItemChange, diff: ItemDiff, screen: Screen) -> tuple[str, ...]:
    glyphs = screen.glyphs
    label = "not measured" if row.change == "not-measured" else change_words(diff.differs)[row.change]
    return (
        screen.paint(STYLES[row.change], f"{sign(row.change, glyphs)} {label}"),
        row.item,
        row.task_type,
        numbers.score(row.before) or "none",
        screen.glyphs.arrow,
        numbers.score(row.after) or "none",
    )


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


_HEAD = 2
"""Lines above the rules that the screen has said already: the two sides, and a blank one."""


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
        lines = rendered(islice(rule_changes.lines(disarmed(self._rules, ink), ink), _HEAD, None))
        return [(Part(" "), *line) for line in lines]
