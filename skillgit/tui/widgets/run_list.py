"""The list of runs: which is trained now, how far each is, and its best score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.tui.widgets.row_list import RowList
from skillgit.view import words
from skillgit.view.runs import steps
from skillgit.view.screen import Style
from skillgit.view.text import fit, one_line, pad, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.index.rows import RunRow

_LEAST = 6
_TEST_FROM = 40
"""Columns from which on there is room for the score on the test split."""
_OUTCOME_FROM = 60
"""Columns from which on there is room for how a run ended."""


class RunList(RowList):
    """Runs, the one with the newest event first."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.all: tuple[RunRow, ...] = ()
        self.default = ""

    @property
    def current(self) -> RunRow | None:
        """The chosen run; None without runs."""
        return self.all[self.cursor] if self.all else None

    def show(self, runs: Sequence[RunRow], default: str, name: str) -> None:
        """Show ``runs`` with the cursor on ``name``, else where it stands."""
        self.all, self.default = tuple(runs), default
        self.shown()
        self.show_count(len(self.all))
        self.choose(next((index for index, run in enumerate(self.all) if run.name == name), self.cursor))

    def painted(self, line: int) -> Painted:
        """Return the row of a run."""
        app, ink, run = app_of(self), self.ink, self.all[line]
        running = run.running_pid is not None
        back = f" {steps(run):>6}  {words.score(run.best_score)} "
        if ink.width >= _TEST_FROM and any(row.best_test is not None for row in self.all):
            back += f" {'' if run.best_test is None else f'test {words.score(run.best_test)}':<10} "
        if ink.width >= _OUTCOME_FROM:
            status = "running" if running else run.outcome or "unfinished"
            back += f" {status:<14}{words.age(run.updated, app.now):>4} "
        room = max(_LEAST, ink.width - width(back) - 2)
        name = pad(fit(one_line(run.name), room, ink.glyphs.ellipsis), room)
        return (
            Part(f"{ink.glyphs.running if running else ' '} ", Style.RUNNING),
            Part(name, Style.STRONG if run.name == self.default else ""),
            Part(back, Style.FAINT),
        )
