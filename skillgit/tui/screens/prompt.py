"""The line in which one types a skillgit command, or a name."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from skillgit.tui.keymap import bindings
from skillgit.view.catalogue import ENTRIES

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

_NOT_HERE = {"tui": "it is open already", "help": "type the command with --help"}


class PromptScreen(ModalScreen[tuple[str, ...] | None]):
    """A command without ``skillgit`` in front; the first word completes itself from the commands."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog prompt"):
            yield Label("skillgit")
            yield Input(placeholder="log --all", compact=True)
            yield Static("", id="told", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        words = event.value.split()
        fitting = [entry for name, entry in ENTRIES.items() if words and name.startswith(words[0])]
        text = f"{fitting[0].name}: {fitting[0].summary}" if len(fitting) == 1 else "  ".join(e.name for e in fitting)
        self.query_one("#told", Static).update(text)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        try:
            argv = tuple(shlex.split(event.value))
        except ValueError:
            self.query_one("#told", Static).update("a quotation is not closed")
            return
        argv = argv[1:] if argv[:1] == ("skillgit",) else argv
        if argv and argv[0] in _NOT_HERE:
            self.query_one("#told", Static).update(f"{argv[0]}: {_NOT_HERE[argv[0]]}")
        else:
            self.dismiss(argv or None)

    def action_screen_back(self) -> None:
        """Close without running anything."""
        self.dismiss(None)


class NameScreen(ModalScreen[str | None]):
    """A name, such as that of a run to make.

    Args:
        usual: What an empty answer means.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def __init__(self, question: str, usual: str) -> None:
        super().__init__()
        self.question, self.usual = question, usual

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog prompt"):
            yield Label(self.question, markup=False)
            yield Input(placeholder=self.usual, compact=True)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def action_screen_back(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
