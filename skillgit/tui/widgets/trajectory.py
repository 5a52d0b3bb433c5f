"""What happened on an item under one version, turn by turn, with the answer and why it got its score."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import Painted, Part, RenderedLines
from skillgit.tui.widgets.shown_text import broken, shown
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.binding import BindingType

    from skillgit.app.history.item import ItemTrajectory

_ROLES: Final = {"user": Style.REF, "assistant": Style.EDITED, "tool": Style.SLOW, "system": Style.FAINT}
_INDENT: Final = "  "
_LONG: Final = 100_000
"""Characters of a conversation that is laid out beside the screen."""


class TrajectoryView(RenderedLines):
    """One trajectory to read; nothing in it is markup."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._trajectory: ItemTrajectory | None = None

    def show(self, trajectory: ItemTrajectory) -> None:
        """Show what happened, from its beginning; one that is shown already stays where it is."""
        if trajectory == self._trajectory and not self._told:
            return
        self._trajectory = trajectory
        self.shown()
        self.lay_out()
        self.scroll_to(y=0, animate=False)

    @property
    def heavy(self) -> bool:
        """Whether the conversation is long."""
        return self._trajectory is not None and sum(len(turn.content) for turn in self._trajectory.turns) > _LONG

    def made(self) -> Sequence[Painted]:
        """Return the turns, then answer and feedback."""
        if self._trajectory is None:
            return ()
        return list(self._lines(self._trajectory))

    def _lines(self, found: ItemTrajectory) -> Iterator[Painted]:
        for number, turn in enumerate(found.turns, start=1):
            role = shown(turn.role, self.ink).text
            yield (Part(f"{number} {role}", _ROLES.get(turn.role, Style.REF)),)
            yield from self._text(turn.content)
            yield ()
        for told, text in (("answer", found.attempt.answer), ("feedback", found.attempt.feedback)):
            yield (Part(told, Style.STRONG),)
            yield from self._text(text or "none")

    def _text(self, text: str) -> Iterator[Painted]:
        ink, columns = self.ink, self.room - len(_INDENT)
        for line in text.split("\n"):
            one = shown(line.removesuffix("\r"), ink).text
            yield from ((Part(_INDENT + one[start:end]),) for start, end in broken(one, columns))
