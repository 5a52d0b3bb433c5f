"""The commands that were run from the screens, with what they printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.screen import ModalScreen

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import app_of
from skillgit.tui.widgets.paragraphs import Paragraph, Paragraphs
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from skillgit.tui.commands import Ran


class CommandLogScreen(ModalScreen[None]):
    """A log of commands, the newest at the end."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog"), ("q,at", "screen_back", "Close")]

    def __init__(self, ran: Sequence[Ran]) -> None:
        super().__init__()
        self._ran = ran

    def compose(self) -> ComposeResult:
        lines = Paragraphs(id="log")
        lines.border_title = "Commands"
        yield lines

    def on_mount(self) -> None:
        self.query_one(Paragraphs).focus()
        self.call_after_refresh(self.more)
        self.set_interval(1, self._tick)

    def _tick(self) -> None:
        if any(ran.code is None for ran in self._ran):
            self.more()

    def more(self) -> None:
        """Show what was added, and go to the end."""
        lines = self.query_one(Paragraphs)
        lines.show(list(self._paragraphs()))
        lines.scroll_end(animate=False)

    def _paragraphs(self) -> Iterator[Paragraph]:
        if not self._ran:
            yield Paragraph("No command has been run yet; : runs one.", Style.FAINT)
        for ran in self._ran:
            state = ran.state(app_of(self).now)
            yield Paragraph(f"$ {ran.line}   {state}", Style.REJECTED if ran.code else Style.STRONG)
            yield Paragraph("\n".join(ran.output), "", indent=3)

    def action_screen_back(self) -> None:
        """Close the log; what runs goes on."""
        self.dismiss(None)
