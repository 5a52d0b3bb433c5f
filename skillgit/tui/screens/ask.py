"""A question before something is run: the command, what it may change, yes or no."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from skillgit.tui import plain
from skillgit.tui.keymap import bindings

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class AskScreen(ModalScreen[bool]):
    """Whether to run a command; nothing is run unless the answer is yes.

    Args:
        command: What would be run; empty if no command does it.
        why: What it may change.
        yes: What the button says that does it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("dialog"),
        ("y", "answer(True)", "Yes"),
        ("n,q", "answer(False)", "No"),
    ]

    def __init__(self, command: str, why: str, *, yes: str = "Run it") -> None:
        super().__init__()
        self.command, self.why, self.yes = command, why, yes

    def compose(self) -> ComposeResult:
        """Return the question and two buttons."""
        with Vertical(classes="dialog"):
            if self.command:
                yield Static(plain.line(f"$ {self.command}"), id="command")
            yield Static(self.why, id="why", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(f"{self.yes} (y)", id="yes", compact=True, variant="primary")
                yield Button("Cancel (n)", id="no", compact=True)

    def action_answer(self, yes: bool) -> None:  # noqa: FBT001 - a binding calls it
        """Close with the answer."""
        self.dismiss(yes)

    def action_screen_back(self) -> None:
        """Close without doing anything."""
        self.dismiss(False)  # noqa: FBT003 - the result of the screen

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")
