"""The parts of an item's screen: its conversation, and its outcomes from version to version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual import events, on

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.lines import OneLine
from skillgit.tui.widgets.painted_lines import Painted, Part, RenderedLines, app_of
from skillgit.tui.widgets.paragraphs import rendered
from skillgit.tui.widgets.shown_text import broken, shown
from skillgit.view.score_tables import sign
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.binding import BindingType

    from skillgit.app.history.item import Attempt, ItemTrajectory
    from skillgit.view.surface import Screen


_ROLES: Final = {"user": Style.REF, "assistant": Style.EDITED, "tool": Style.SLOW, "system": Style.FAINT}
_INDENT: Final = "  "
_LONG: Final = 100_000
"""Characters of a conversation that is laid out beside the screen."""


class TrajectoryView(RenderedLines):
    """One trajectory to read; nothing in it is markup."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    _trajectory: ItemTrajectory | None = None

    def show(self, trajectory: ItemTrajectory) -> None:
        """Show what happened, from its beginning; one that is shown already stays where it is."""
        if trajectory == self._trajectory and not self._told:
            return
        self._trajectory = trajectory
        self.renew(scroll=True)

    @property
    def heavy(self) -> bool:
        return self._trajectory is not None and sum(len(turn.text) for turn in self._trajectory.turns) > _LONG

    def made(self) -> Sequence[Painted]:
        return () if self._trajectory is None else list(self._lines(self._trajectory))

    def _lines(self, trajectory: ItemTrajectory) -> Iterator[Painted]:
        for number, turn in enumerate(trajectory.turns, start=1):
            role = shown(turn.role, self.ink).text
            yield (Part(f"{number} {role}", _ROLES.get(turn.role, Style.REF)),)
            yield from self._text(turn.text)
            yield ()
        for label, text in (("answer", trajectory.attempt.answer), ("feedback", trajectory.attempt.feedback)):
            yield (Part(label, Style.STRONG),)
            yield from self._text(text or "none")

    def _text(self, text: str) -> Iterator[Painted]:
        ink, columns = self.ink, self.room - len(_INDENT)
        for line in text.split("\n"):
            row = shown(line.removesuffix("\r"), ink).text
            yield from ((Part(_INDENT + row[start:end]),) for start, end in broken(row, columns))


_GAP = 2
_CHOSEN = {True: "▸", False: ">"}


class VersionStrip(OneLine):
    """Versions and candidates with the sign of their outcome, oldest first."""

    attempts: Sequence[Attempt] = ()
    chosen = 0

    def show(self, attempts: Sequence[Attempt], index: int) -> None:
        """Show ``attempts`` with the one at ``index`` chosen."""
        self.attempts, self.chosen = attempts, index
        self._arrange()

    @on(events.Resize)
    def _arrange(self) -> None:
        """Say so many attempts as there is room for, from the chosen one outwards, and that there are more."""
        if not self.attempts or not self.size.width:
            return
        ink = app_of(self).facts
        cells = [_cell(attempt, ink, is_chosen=index == self.chosen) for index, attempt in enumerate(self.attempts)]
        sizes = [sum(cell_len(part.text) for part in cell) + _GAP for cell in cells]
        first, last = _window(sizes, self.chosen, self.size.width - 2 * _GAP)
        more = ink.glyphs.ellipsis
        parts = [Part(more if first else " ", Style.FAINT), Part(" ")]
        for cell in cells[first:last]:
            parts += [*cell, Part(" " * _GAP)]
        self.say(parts[:-1], [Part(more, Style.FAINT)] if last < len(cells) else [])


def _cell(attempt: Attempt, ink: Screen, *, is_chosen: bool) -> Painted:
    name = shown(attempt.name, ink).text
    [mark] = rendered([sign(attempt.outcome, replace(ink, colour=True), attempt.absence)])
    style = Style.STRONG if is_chosen else "" if attempt.version is not None else Style.FAINT
    return (Part(_CHOSEN[ink.unicode] if is_chosen else " ", Style.RUNNING), Part(f"{name} ", style), *mark)


def _window(sizes: Sequence[int], index: int, room: int) -> tuple[int, int]:
    """Return which stretch around ``index`` fits into ``room``: as many on both sides, more where one has fewer."""
    first, last, width = index, index + 1, sizes[index]
    while True:
        grown = False
        if first and width + sizes[first - 1] <= room:
            first, width, grown = first - 1, width + sizes[first - 1], True
        if last < len(sizes) and width + sizes[last] <= room:
            last, width, grown = last + 1, width + sizes[last], True
        if not grown:
            return first, last
