"""The parts of an item's screen: its conversation, and its outcomes from version to version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.lines import OneLine
from skillgit.tui.widgets.painted_lines import Painted, Part, RenderedLines, app_of
from skillgit.tui.widgets.rendered import rendered
from skillgit.tui.widgets.shown_text import broken, shown
from skillgit.view.item_table import sign
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual import events
    from textual.binding import BindingType

    from skillgit.app.history.item import Attempt, ItemTrajectory
    from skillgit.view.screen import Screen


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


_GAP = 2
_CHOSEN = {True: "▸", False: ">"}


class VersionStrip(OneLine):
    """Versions and candidates with the sign of their outcome, oldest first."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.attempts: Sequence[Attempt] = ()
        self.chosen = 0

    def show(self, attempts: Sequence[Attempt], chosen: int) -> None:
        """Show ``attempts`` with one of them chosen."""
        self.attempts, self.chosen = attempts, chosen
        self._arrange()

    def on_resize(self, event: events.Resize) -> None:
        """Choose again what there is room for."""
        del event
        self._arrange()

    def _arrange(self) -> None:
        """Say so many attempts as there is room for, from the chosen one outwards, and that there are more."""
        if not self.attempts or not self.size.width:
            return
        ink = app_of(self).facts
        cells = [_cell(attempt, ink, chosen=place == self.chosen) for place, attempt in enumerate(self.attempts)]
        sizes = [sum(cell_len(part.text) for part in cell) + _GAP for cell in cells]
        first, last = _window(sizes, self.chosen, self.size.width - 2 * _GAP)
        more = ink.glyphs.ellipsis
        left = [Part(more if first else " ", Style.FAINT), Part(" ")]
        for cell in cells[first:last]:
            left += [*cell, Part(" " * _GAP)]
        self.say(left[:-1], [Part(more, Style.FAINT)] if last < len(cells) else [])


def _cell(attempt: Attempt, ink: Screen, *, chosen: bool) -> Painted:
    name = shown(attempt.name, ink).text
    [mark] = rendered([sign(attempt.outcome, replace(ink, colour=True), attempt.absence)])
    style = Style.STRONG if chosen else "" if attempt.version is not None else Style.FAINT
    return (Part(_CHOSEN[ink.unicode] if chosen else " ", Style.RUNNING), Part(f"{name} ", style), *mark)


def _window(sizes: Sequence[int], chosen: int, room: int) -> tuple[int, int]:
    """Return which stretch around ``chosen`` fits into ``room``: as many on both sides, more where one has fewer."""
    first, last, used = chosen, chosen + 1, sizes[chosen]
    while True:
        grown = False
        if first and used + sizes[first - 1] <= room:
            first, used, grown = first - 1, used + sizes[first - 1], True
        if last < len(sizes) and used + sizes[last] <= room:
            last, used, grown = last + 1, used + sizes[last], True
        if not grown:
            return first, last
