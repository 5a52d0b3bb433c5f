"""A menu: what can be copied of an event, or what a command is for. A letter chooses, escape does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.screen import ModalScreen

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, Part
from skillgit.tui.widgets.row_list import RowList
from skillgit.view.surface import Style
from skillgit.view.text import fit, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

Choice = tuple[str, str, str]
"""A letter, what it stands for, and the text that it chooses."""
_DIGITS = 9


def numbered(label: str, texts: Sequence[str]) -> list[Choice]:
    """Return choices that digits stand for, as far as there are digits."""
    return [(str(number) if number <= _DIGITS else " ", label, text) for number, text in enumerate(texts, start=1)]


class _Choices(RowList):
    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__(id="choices")
        self.choices = choices
        self.count = len(choices)

    def painted(self, line: int) -> Painted:
        letter, label, text = self.choices[line]
        excerpt = fit(one_line(text), max(8, self.room - 16), self.ink.glyphs.ellipsis)
        return Part(f" {letter}  ", Style.REF), Part(f"{label:<9}"), Part(excerpt, Style.FAINT)


class ChoiceScreen(ModalScreen[str | None]):
    """A menu of texts."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._heading = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        rows = _Choices(self._choices)
        rows.border_title = self._heading
        rows.styles.height = len(self._choices) + 2
        yield rows

    def on_mount(self) -> None:
        self.query_one(_Choices).focus()

    def on_key(self, event: events.Key) -> None:
        choice = next((text for letter, _, text in self._choices if letter == event.character), None)
        if choice is not None:
            event.stop()
            self.dismiss(choice)

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        self.dismiss(self._choices[message.place][2])

    def action_screen_back(self) -> None:
        self.dismiss(None)


class CopyScreen(ChoiceScreen):
    """A menu of texts; the chosen one goes to the clipboard of the terminal."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__("Copy", choices)
