"""Who looks on while a run is trained or versions are measured: lines, a live display, or the screens of the TUI."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from skillgit.app.workspace.context import Context
from skillgit.cli.diagnostics import Diagnostics
from skillgit.domain.cost import Cost
from skillgit.domain.event import Event
from skillgit.domain.run_progress import RunProgress
from skillgit.lazy import loaded_on_use
from skillgit.view import progress as sight
from skillgit.view.event_marks import Entry
from skillgit.view.log import event_line
from skillgit.view.numbers import plural, rfc3339
from skillgit.view.progress import SilentWatcher
from skillgit.view.surface import Style
from skillgit.view.text import fit, sentence

with loaded_on_use():
    from rich import live as rich_live
    from rich import text as rich_text

    from skillgit.view import gate, measurements

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from skillgit.app.recorded.score_summary import Scores
    from skillgit.app.setup.model_session import EvalProgress
    from skillgit.app.sources.public_data.downloads import FetchProgress


_Look = TypeVar("_Look", bound="RunProgress | EvalProgress | FetchProgress")


class LineWatcher(SilentWatcher[_Look]):
    """Prints one line for each event, with its time and the step, and for each result."""

    def __init__(self, diagnostics: Diagnostics, clock: Callable[[], datetime]) -> None:
        self._diagnostics, self._screen = diagnostics, diagnostics.screen
        self._clock = clock
        self._steps = 0
        self._begun = False

    def progress(self, progress: _Look) -> None:
        self._steps = getattr(progress, "steps", 0)

    def happened(self, event: Event, commit: str) -> None:
        if not self._begun:
            self.remark(self._title(event.run))
            self._begun = True
        self.remark(self._line_of(sight.entry_of(event), commit))

    def _title(self, run: str) -> str:
        return f"run {run}"

    def _line_of(self, entry: Entry, commit: str) -> str:
        moment = rfc3339(self._clock().replace(microsecond=0))
        position = f"{entry.step}/{self._steps}" if self._steps else str(entry.step)
        return f"{moment}  {position:>7}  {event_line(entry, commit, self._screen)}"

    def measured(self, name: str, split: str, scores: Scores) -> None:

        self.remark(measurements.measured_line(name, split, scores, self._screen))

    def remark(self, text: str) -> None:
        self._diagnostics.note(text)

    def spent(self, cost: Cost) -> None:
        """Say what was spent where an error takes the place of a result."""
        text = f"{gate.cost(cost, self._screen)}, earlier tries of the same included"
        self.remark(gate.fact("cost", text, self._screen))


class LiveDisplay(LineWatcher[_Look], ABC):
    """Shows how far the work is in lines that stay below the events and results."""

    def __init__(self, diagnostics: Diagnostics, clock: Callable[[], datetime], console: Console) -> None:
        super().__init__(diagnostics, clock)
        self._console = console
        self._now: _Look | None = None

    def progress(self, progress: _Look) -> None:
        """Remember the newest look; the display asks for it when it draws."""
        self._now = progress

    def _title(self, run: str) -> str:
        return f"run {self._screen.paint(Style.STRONG, run)}"

    def _line_of(self, entry: Entry, commit: str) -> str:
        return event_line(entry, commit, self._screen, columns=self._console.width)

    def remark(self, text: str) -> None:
        for line in sentence(text, self._screen):
            self._console.print(_ansi(self._screen.shown(line)), soft_wrap=True)

    def __rich__(self) -> Text:
        text = "preparing" if self._now is None else self._screen.shown("\n".join(self._lines(self._now)))
        return _ansi(text)

    @abstractmethod
    def _lines(self, look: _Look) -> Iterator[str]: ...

    def _bar(self, share: float, text: str) -> str:
        screen, columns = self._screen, self._console.width - 1
        length = min(24, columns // 5)
        full = round(length * share)
        heavy, light = ("━", "─") if screen.unicode else ("#", "-")
        bar = screen.paint(Style.RUNNING, heavy * full) + screen.paint(Style.FAINT, light * (length - full))
        where = fit(text, columns - length - 10, screen.glyphs.ellipsis)
        return f"{screen.paint(Style.RUNNING, screen.glyphs.running)} {bar} {share:4.0%}  {where}"


class LiveWatcher(LiveDisplay[RunProgress]):
    def _lines(self, look: RunProgress) -> Iterator[str]:
        yield self._bar(look.share, f"{sight.place(look)}  {sight.stage(look)}")
        yield f"  {fit(sight.tally(look, self._screen), self._console.width - 3, self._screen.glyphs.ellipsis)}"


class LiveEvalWatcher(LiveDisplay["EvalProgress"]):
    def _lines(self, look: EvalProgress) -> Iterator[str]:
        share = (look.before + look.count) / look.every if look.every else 0.0
        calls = f" {self._screen.glyphs.dot} {plural(look.cost.calls, 'call')}"
        yield self._bar(share, f"{look.name}  {look.split} {look.count}/{look.total}{calls}")


class LiveFetchWatcher(LiveDisplay["FetchProgress"]):
    def _lines(self, look: FetchProgress) -> Iterator[str]:
        size = f"{look.done / 1e6:,.1f} of {look.total / 1e6:,.1f} MB" if look.total else f"{look.done / 1e6:,.1f} MB"
        share = look.done / look.total if look.total else (look.number - 1) / look.files
        yield self._bar(min(share, 1.0), f"{size}  {look.number}/{look.files} {look.name}")


def _ansi(text: str) -> rich_text.Text:

    return rich_text.Text.from_ansi(text, no_wrap=True, overflow="ellipsis")


@contextmanager
def watching(
    context: Context,
    diagnostics: Diagnostics,
    live: Callable[[Diagnostics, Callable[[], datetime], Console], LiveDisplay[_Look]],
    *,
    quiet: bool,
) -> Iterator[SilentWatcher[_Look]]:
    if quiet:
        yield SilentWatcher()
    elif not diagnostics.screen.terminal or context.environ.get("TERM", "dumb") == "dumb":
        yield LineWatcher(diagnostics, context.clock)
    else:
        console = diagnostics.console()
        watcher = live(diagnostics, context.clock, console)
        with rich_live.Live(watcher, console=console, refresh_per_second=8, transient=True, redirect_stdout=False):
            yield watcher


WAIT_SECONDS = 4.0  # after so long in silence, and again, a command says what it is doing


class Heartbeat:
    """Says on stderr what a command is doing while it takes long; a short one says nothing."""

    def __init__(self, diagnostics: Diagnostics, *, quiet: bool) -> None:
        self._diagnostics, self._quiet = diagnostics, quiet
        self._doing, self._ended = "", threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Callable[[str], None]:
        if not self._quiet:
            self._thread.start()
        return self._hear

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _hear(self, doing: str) -> None:
        self._doing = doing

    def _beat(self) -> None:
        while not self._ended.wait(WAIT_SECONDS):
            if self._doing:
                self._diagnostics.note(self._doing)
