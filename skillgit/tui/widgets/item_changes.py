"""Items under two versions: what happened to each, what it asks, and what the versions answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from textual.binding import BindingType

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Part, RenderedLines, rendered
from skillgit.verbs.diff import ItemChange, ItemDiff
from skillgit.view.items import LOOKS, change_lines, in_order

F = TypeVar("F", bound="ItemDiff | Sequence[ItemChange]")


class ItemChanges(RenderedLines[F]):
    """Items, those that changed first, or those alone to which the same happened; the cursor chooses one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("items")
    has_cursor: ClassVar[bool] = True
    action_list_open = PaintedLines.open_row
    words: Mapping[str, str] = {}
    """What the items ask and the versions answered, as far as it is known yet."""
    kind = ""
    """What happened to the items that are shown; empty: all of them."""

    def changes(self, facts: F) -> Sequence[ItemChange]:
        return facts if isinstance(facts, Sequence) else facts.rows

    def rows(self, facts: F) -> Sequence[ItemChange]:
        rows = in_order(self.changes(facts))
        return [row for row in rows if self.kind in {"", row.change}] or rows

    def weight(self, facts: F) -> int:
        return len(self.changes(facts))

    def made(self, facts: F) -> Sequence[Painted]:
        lines = change_lines(self.rows(facts), self.words, self.ink, facts)
        return [(Part(" "), *line) for line in rendered(lines, self.ink)]

    def show_words(self, words: Mapping[str, str]) -> None:
        self.words = words
        self.lay_out()

    def action_items_filter(self) -> None:
        """Show the items alone to which the next thing happened, and behind the last one all of them."""
        if self.facts is None:
            return
        present = {row.change for row in self.changes(self.facts)}
        kinds = ["", *(change for change in LOOKS if change in present)]
        self.kind = kinds[(kinds.index(self.kind) + 1) % len(kinds)] if self.kind in kinds else ""
        self.notify(self.kind.replace("-", " ") or "all items", timeout=2)
        self.cursor = 0
        self.lay_out()

    @property
    def item(self) -> str:
        rows = self.rows(self.facts) if self.facts is not None else []
        return rows[self.cursor].item if self.cursor < len(rows) else ""
