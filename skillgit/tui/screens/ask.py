"""A question before something is run: the command, what it may change, yes or no."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from skillgit.tui import commands
from skillgit.tui.commands import Ran
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import app_of
from skillgit.view.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual.app import ComposeResult
    from textual.binding import BindingType


class AskScreen(ModalScreen[bool]):
    """Whether to run a command; nothing is run unless the answer is yes.

    Args:
        command: What would be run; empty if no command does it.
        plan: The command that says what it would cost; empty if it costs nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("dialog"),
        ("y", "answer(True)", "Yes"),
        ("n,q", "answer(False)", "No"),
    ]

    def __init__(self, command: str, why: str, *, yes: str = "Run it", plan: Sequence[str] = ()) -> None:
        super().__init__()
        self.command, self.why, self.yes, self.plan = command, why, yes, tuple(plan)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            if self.command:
                yield Static(line(f"$ {self.command}"), id="command")
            yield Static(self.why, id="why", markup=False)
            if self.plan:
                yield Static("", id="plan", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(f"{self.yes} (y)", id="yes", compact=True, variant="primary")
                yield Button("Cancel (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """Have the cost planned, while the user reads; nobody has to wait for it."""
        if self.plan:
            self.run_worker(self._planned(), group="plan")

    async def _planned(self) -> None:
        ran = Ran(argv=self.plan)
        await commands.run(app_of(self).context, ran, lambda: None)
        lines = [line(text) for text in commands.told_plan(ran).splitlines()]
        self.query_one("#plan", Static).update(Text("\n").join(lines))

    def action_answer(self, yes: bool) -> None:  # noqa: FBT001 - a binding calls it
        self.dismiss(yes)

    def action_screen_back(self) -> None:
        """Close without doing anything."""
        self.dismiss(False)  # noqa: FBT003 - the result of the screen

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


def line(text: str, style: str | Style = "") -> Text:
    """Return ``text`` on one line: line ends become spaces, control characters are written out."""
    return Text(one_line(text), style=style, no_wrap=True, end="")
