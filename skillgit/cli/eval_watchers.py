"""Who looks on while versions are measured: a live display on a terminal, one line for each result elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import fit
from skillgit.cli.render.eval import measured_line
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.text import Text

    from skillgit.app.measuring import EvalProgress
    from skillgit.app.scores import Scores
    from skillgit.cli.diagnostics import Diagnostics
    from skillgit.cli.session import Session

_LONGEST_BAR = 24
_PER_SECOND = 8


class SilentWatcher:
    """Tells nothing."""

    def progress(self, progress: EvalProgress) -> None:
        """Ignore it."""

    def measured(self, name: str, split: str, found: Scores) -> None:
        """Ignore it."""

    def remark(self, text: str) -> None:
        """Ignore it."""


class LineWatcher:
    """Tells each result on one line."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics

    def progress(self, progress: EvalProgress) -> None:
        """Ignore it: lines are for results."""

    def measured(self, name: str, split: str, found: Scores) -> None:
        """Tell what was measured."""
        self.remark(measured_line(name, split, found, self._diagnostics.screen))

    def remark(self, text: str) -> None:
        """Tell something on a line of its own."""
        self._diagnostics.note(text)


class LiveWatcher:
    """Shows how far the work is in one line that stays below the results."""

    def __init__(self, diagnostics: Diagnostics, console: Console) -> None:
        self._screen = diagnostics.screen
        self._console = console
        self._now: EvalProgress | None = None

    def progress(self, progress: EvalProgress) -> None:
        """Remember the newest look; the display asks for it when it draws."""
        self._now = progress

    def measured(self, name: str, split: str, found: Scores) -> None:
        """Print a result above the display."""
        self.remark(measured_line(name, split, found, self._screen))

    def remark(self, text: str) -> None:
        """Print a line above the display."""
        self._console.print(_ansi(self._screen.shown(text)), soft_wrap=True)

    def __rich__(self) -> Text:
        """Draw the display."""
        if self._now is None:
            return _ansi("preparing")
        return _ansi(self._screen.shown(self._line(self._now)))

    def _line(self, look: EvalProgress) -> str:
        screen, columns = self._screen, self._console.width - 1
        share = (look.before + look.done) / look.every if look.every else 0.0
        length = min(_LONGEST_BAR, columns // 5)
        full = round(length * share)
        filled, empty = ("━", "─") if screen.unicode else ("#", "-")
        bar = screen.paint(Style.RUNNING, filled * full) + screen.paint(Style.FAINT, empty * (length - full))
        dot = f" {screen.glyphs.dot} "
        where = dot.join(
            (f"{look.name}  {look.split} {look.done}/{look.total}", words.plural(look.spent.calls, "call"))
        )
        shown = fit(where, columns - length - 10, screen.glyphs.ellipsis)
        return f"{screen.paint(Style.RUNNING, screen.glyphs.running)} {bar} {share:4.0%}  {shown}"


def _ansi(text: str) -> Text:
    from rich.text import Text  # noqa: PLC0415 - only a live display needs rich

    return Text.from_ansi(text, no_wrap=True, overflow="ellipsis")


@contextmanager
def watching(session: Session, *, quiet: bool) -> Iterator[SilentWatcher | LineWatcher | LiveWatcher]:
    """Give the watcher that fits stderr."""
    diagnostics = session.diagnostics
    if quiet:
        yield SilentWatcher()
    elif not diagnostics.screen.terminal or session.context.environ.get("TERM", "dumb") == "dumb":
        yield LineWatcher(diagnostics)
    else:
        from rich.live import Live  # noqa: PLC0415 - only a live display needs rich

        console = diagnostics.console()
        watcher = LiveWatcher(diagnostics, console)
        with Live(watcher, console=console, refresh_per_second=_PER_SECOND, transient=True, redirect_stdout=False):
            yield watcher
