"""Who looks on while a run is trained: a live display, one line for each event, or the screens of the TUI."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.cli.output import Form
from skillgit.cli.session import require_terminal
from skillgit.view import progress as sight
from skillgit.view.log import event_line
from skillgit.view.numbers import rfc3339
from skillgit.view.surface import Style
from skillgit.view.text import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from rich.console import Console
    from rich.text import Text

    from skillgit.app.train.train import TrainRequest
    from skillgit.cli.diagnostics import Diagnostics
    from skillgit.cli.session import CommandSession
    from skillgit.domain.event import Event
    from skillgit.tui.trainer import TrainerProcess
    from skillgit.view.event_marks import Entry
    from skillgit.view.progress import Glance


_LONGEST_BAR = 24
_PER_SECOND = 8


def _entry(event: Event) -> Entry:
    """Return an event that was written just now as the log has it."""
    from skillgit.view.progress import entry_of  # noqa: PLC0415 - not before the first request is out

    return entry_of(event)


class SilentWatcher:
    """Says nothing."""

    def progress(self, progress: Glance) -> None:
        """Ignore it."""

    def happened(self, event: Event, commit: str) -> None:
        """Ignore it."""

    def remark(self, text: str) -> None:
        """Ignore it."""


class LineWatcher:
    """Tells each event on one line, with its time and the step."""

    def __init__(self, diagnostics: Diagnostics, clock: Callable[[], datetime]) -> None:
        self._diagnostics = diagnostics
        self._clock = clock
        self._steps = 0
        self._begun = False

    def progress(self, progress: Glance) -> None:
        self._steps = progress.steps

    def happened(self, event: Event, commit: str) -> None:
        """Tell of an event, and before the first one whose events these are."""
        if not self._begun:
            self._diagnostics.note(f"run {event.run}")
            self._begun = True
        entry = _entry(event)
        moment = rfc3339(self._clock().replace(microsecond=0))
        position = f"{entry.step}/{self._steps}" if self._steps else str(entry.step)
        self._diagnostics.note(f"{moment}  {position:>7}  {event_line(entry, commit, self._diagnostics.screen)}")

    def remark(self, text: str) -> None:
        """Tell it on a line of its own."""
        self._diagnostics.note(text)


class LiveWatcher:
    """Shows where the run is in two lines that stay below the events."""

    def __init__(self, diagnostics: Diagnostics, clock: Callable[[], datetime], console: Console) -> None:
        self._screen = diagnostics.screen
        self._clock = clock
        self._console = console
        self._now: Glance | None = None
        self._begin: tuple[datetime, float] | None = None
        self._begun = False

    def progress(self, progress: Glance) -> None:
        """Remember the newest look; the display asks for it when it draws."""
        if self._begin is None and progress.step > 0:
            self._begin = (self._clock(), sight.fraction(progress))
        self._now = progress

    def happened(self, event: Event, commit: str) -> None:
        """Print an event above the display, and before the first one whose events these are."""
        if not self._begun:
            self._print(f"run {self._screen.paint(Style.STRONG, event.run)}")
            self._begun = True
        self._print(event_line(_entry(event), commit, self._screen, columns=self._console.width))

    def remark(self, text: str) -> None:
        self._print(text)

    def _print(self, line: str) -> None:
        self._console.print(_ansi(self._screen.shown(line)), soft_wrap=True)

    def __rich__(self) -> Text:
        if self._now is None:
            return _ansi("preparing")
        return _ansi(self._screen.shown("\n".join(self._lines(self._now))))

    def _lines(self, glance: Glance) -> Iterator[str]:
        screen, columns = self._screen, self._console.width - 1
        share = sight.fraction(glance)
        length = min(_LONGEST_BAR, columns // 5)
        full = round(length * share)
        heavy, light = ("━", "─") if screen.unicode else ("#", "-")
        bar = screen.paint(Style.RUNNING, heavy * full) + screen.paint(Style.FAINT, light * (length - full))
        where = fit(f"{sight.place(glance)}  {sight.stage(glance)}", columns - length - 10, screen.glyphs.ellipsis)
        yield f"{screen.paint(Style.RUNNING, screen.glyphs.running)} {bar} {share:4.0%}  {where}"
        yield f"  {fit(sight.tally(glance, self._left(share), screen), columns - 2, screen.glyphs.ellipsis)}"

    def _left(self, share: float) -> float | None:
        if self._begin is None:
            return None
        then, had = self._begin
        return sight.seconds_left(now=share, then=had, seconds=(self._clock() - then).total_seconds())


def _ansi(text: str) -> Text:
    from rich.text import Text  # noqa: PLC0415 - only a live display needs rich

    return Text.from_ansi(text, no_wrap=True, overflow="ellipsis")


@contextmanager
def watching(session: CommandSession, *, quiet: bool) -> Iterator[SilentWatcher | LineWatcher | LiveWatcher]:
    diagnostics, clock = session.diagnostics, session.context.clock
    if quiet:
        yield SilentWatcher()
    elif not diagnostics.screen.terminal or session.context.environ.get("TERM", "dumb") == "dumb":
        yield LineWatcher(diagnostics, clock)
    else:
        from rich.live import Live  # noqa: PLC0415 - only a live display needs rich

        console = diagnostics.console()
        watcher = LiveWatcher(diagnostics, clock, console)
        with Live(watcher, console=console, refresh_per_second=_PER_SECOND, transient=True, redirect_stdout=False):
            yield watcher


_SIGNAL_BASE = 128
"""What shells add to the number of the signal that killed a process."""


def watched(session: CommandSession, request: TrainRequest, form: Form, *, strict: bool) -> int:
    """Train in a process of its own, watch it, and return what it exited with; 0 if it goes on."""
    require_terminal(
        session, "train --tui", instead=f"skillgit train {quote(request.config) if request.config else '--run NAME'}"
    )
    from skillgit.tui.trainer import TrainerProcess, watch  # noqa: PLC0415 - slow to import

    trainer = TrainerProcess(list(_words(session, request, form, strict=strict)), session.context.environ)
    run = watch(session.context, trainer, unicode=session.screen.unicode)
    code = trainer.code
    if code is None:
        _goes_on(session, trainer, run)
        return 0
    output, errors = trainer.output()
    session.output.raw(output)
    session.output.flush()
    sys.stderr.write(errors.decode(errors="replace"))
    return code if code >= 0 else _SIGNAL_BASE - code


def _goes_on(session: CommandSession, trainer: TrainerProcess, run: str) -> None:
    name = f"run {run}" if run else "the training"
    session.diagnostics.note(f"{name} goes on as process {trainer.pid}")
    session.diagnostics.hint(f"skillgit tui {run}".rstrip() + ", then L, watches it; K stops it after its step")


def _words(session: CommandSession, request: TrainRequest, form: Form, *, strict: bool) -> Iterator[str]:
    """Yield the command line of the training, without ``skillgit``."""
    yield from ("-C", str(session.context.directory))
    yield f"--color={'always' if session.screen.colour else 'never'}"
    yield from ("train", *filter(None, (request.config,)), "--quiet")
    for override in request.overrides:
        yield from ("-o", override)
    options = {
        "--run": request.run,
        "--from": request.start,
        "--max-calls": request.caps.max_calls,
        "--max-tokens": request.caps.max_tokens,
        "--max-usd": request.caps.max_usd,
    }
    for option, value in options.items():
        if value is not None:
            yield from (option, str(value))
    if request.ask_again:
        yield "--ask-again"
    if form is Form.JSON:
        yield "--json"
    if strict:
        yield "--exit-code"
