"""What commands that may ask models share: their options, their caps, and who looks on."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from skillgit.cli.options import complete_configs
from skillgit.cli.output import Form
from skillgit.errors import ExitCode
from skillgit.view import numbers
from skillgit.view.json_values import named_values
from skillgit.view.measurements import measured_line
from skillgit.view.surface import Style
from skillgit.view.text import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from skillgit.app.recorded.score_summary import Scores
    from skillgit.app.setup.model_session import EvalProgress
    from skillgit.app.setup.plan import Plan
    from skillgit.cli.diagnostics import Diagnostics
    from skillgit.cli.session import CommandSession
    from skillgit.domain.cost import Caps, Cost


_LONGEST_BAR = 24
_PER_SECOND = 8


class SilentEvalWatcher:
    """Says nothing."""

    def progress(self, progress: EvalProgress) -> None:
        """Ignore it."""

    def measured(self, name: str, split: str, scores: Scores) -> None:
        """Ignore it."""

    def remark(self, text: str) -> None:
        """Ignore it."""


class LineEvalWatcher:
    """Tells each result on one line."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics

    def progress(self, progress: EvalProgress) -> None:
        """Ignore it: lines are for results."""

    def measured(self, name: str, split: str, scores: Scores) -> None:
        self.remark(measured_line(name, split, scores, self._diagnostics.screen))

    def remark(self, text: str) -> None:
        """Tell something on a line of its own."""
        self._diagnostics.note(text)


class LiveEvalWatcher:
    """Shows how far the work is in one line that stays below the results."""

    def __init__(self, diagnostics: Diagnostics, console: Console) -> None:
        self._screen = diagnostics.screen
        self._console = console
        self._now: EvalProgress | None = None

    def progress(self, progress: EvalProgress) -> None:
        """Remember the newest look; the display asks for it when it draws."""
        self._now = progress

    def measured(self, name: str, split: str, scores: Scores) -> None:
        self.remark(measured_line(name, split, scores, self._screen))

    def remark(self, text: str) -> None:
        self._console.print(_ansi(self._screen.shown(text)), soft_wrap=True)

    def __rich__(self) -> Text:
        if self._now is None:
            return _ansi("preparing")
        return _ansi(self._screen.shown(self._line(self._now)))

    def _line(self, look: EvalProgress) -> str:
        screen, columns = self._screen, self._console.width - 1
        share = (look.before + look.done) / look.every if look.every else 0.0
        length = min(_LONGEST_BAR, columns // 5)
        full = round(length * share)
        heavy, light = ("━", "─") if screen.unicode else ("#", "-")
        bar = screen.paint(Style.RUNNING, heavy * full) + screen.paint(Style.FAINT, light * (length - full))
        dot = f" {screen.glyphs.dot} "
        where = dot.join(
            (f"{look.name}  {look.split} {look.done}/{look.total}", numbers.plural(look.spent.calls, "call"))
        )
        text = fit(where, columns - length - 10, screen.glyphs.ellipsis)
        return f"{screen.paint(Style.RUNNING, screen.glyphs.running)} {bar} {share:4.0%}  {text}"


def _ansi(text: str) -> Text:
    from rich.text import Text  # noqa: PLC0415 - only a live display needs rich

    return Text.from_ansi(text, no_wrap=True, overflow="ellipsis")


@contextmanager
def watching(
    session: CommandSession, *, quiet: bool
) -> Iterator[SilentEvalWatcher | LineEvalWatcher | LiveEvalWatcher]:
    diagnostics = session.diagnostics
    if quiet:
        yield SilentEvalWatcher()
    elif not diagnostics.screen.terminal or session.context.environ.get("TERM", "dumb") == "dumb":
        yield LineEvalWatcher(diagnostics)
    else:
        from rich.live import Live  # noqa: PLC0415 - only a live display needs rich

        console = diagnostics.console()
        watcher = LiveEvalWatcher(diagnostics, console)
        with Live(watcher, console=console, refresh_per_second=_PER_SECOND, transient=True, redirect_stdout=False):
            yield watcher


_Result = TypeVar("_Result")


def terms_options() -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """Give a command the options that say on which terms to measure; it gets them as ``terms``, and ``quiet``."""

    def decorate(command: Callable[..., _Result]) -> Callable[..., _Result]:
        @config_option
        @spending_options()
        @quiet_option
        @wraps(command)
        def with_terms(*args: object, config: str | None, caps: Caps, dry_run: bool, **kwargs: object) -> _Result:
            from skillgit.app.setup.model_session import MeasuringTerms  # noqa: PLC0415 - it loads the engine

            return command(*args, terms=MeasuringTerms(config=config, caps=caps, dry_run=dry_run), **kwargs)

        return with_terms

    return decorate


class Onlooker:
    """Tells progress and results as an evaluation does, and remarks between them."""

    def __init__(self, session: CommandSession, watcher: EvalWatcher) -> None:
        self._session = session
        self._watcher = watcher
        self.progress = watcher.progress

    def measured(self, name: str, split: str, scores: Scores) -> None:
        self._watcher.measured(name, split, scores)

    def remark(self, text: str) -> None:
        """Tell something else, above a live display if there is one."""
        self._watcher.remark(text)

    def spent(self, cost: Cost) -> None:
        """Say what was spent where an error takes the place of a result."""
        from skillgit.view import gate  # noqa: PLC0415 - most work ends with a result, which tells it

        screen = self._session.diagnostics.screen
        self.remark(gate.fact("cost", f"{gate.cost(cost, screen)}, earlier tries of the same included", screen))


@contextmanager
def looking_on(session: CommandSession, *, quiet: bool) -> Iterator[Onlooker]:
    with watching(session, quiet=quiet) as watcher:
        yield Onlooker(session, watcher)


_R = TypeVar("_R")

config_option = click.option(
    "--config", metavar="CONFIG", shell_complete=complete_configs, help="Measure as CONFIG says, not as the run did"
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress")


_CAPS = (
    click.option("--max-calls", type=click.IntRange(min=1), metavar="N", help="Stop before it makes more model calls"),
    click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Stop before it uses more tokens"),
    click.option(
        "--max-usd",
        type=click.FloatRange(min=0, min_open=True),
        metavar="USD",
        help="Stop before it spends more US dollars",
    ),
)


def spending_options() -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Give a command that may ask models a dry run and the three caps; it gets them as ``dry_run`` and ``caps``."""
    dry_run = click.option("-n", "--dry-run", is_flag=True, help="Show what it would do and cost, and do nothing")

    def decorate(command: Callable[..., _R]) -> Callable[..., _R]:
        @wraps(command)
        def with_caps(
            *args: object, max_calls: int | None, max_tokens: int | None, max_usd: float | None, **kwargs: object
        ) -> _R:
            from skillgit.domain.cost import Caps  # noqa: PLC0415 - help needs none

            caps = Caps(max_calls=max_calls, max_tokens=max_tokens, max_usd=max_usd)
            return command(*args, caps=caps, **kwargs)

        function: Callable[..., _R] = with_caps
        for option in reversed((dry_run, *_CAPS)):
            function = option(function)
        return function

    return decorate


def show_plan(session: CommandSession, plan: Plan, form: Form) -> ExitCode:
    """Print what a command would do and spend; every dry run of a command that spends ends so."""
    from skillgit.view.plan import planned  # noqa: PLC0415 - most commands are no dry runs

    if form is Form.JSON:
        session.output.document("plan/2", {**named_values(plan), "sentence": plan.sentence})
    else:
        session.output.text(planned(plan, session.screen))
    return ExitCode.OK


def split_option(
    splits: Sequence[str], wording: str = "Which items to measure on"
) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Return the option that chooses one of ``splits``."""
    return click.option("--split", type=click.Choice(splits), default="selection", show_default=True, help=wording)


def note_option(target: str = "the commits") -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Return the option that leaves no note on ``target``."""
    return click.option("--no-note", "note", flag_value=False, default=True, help=f"Leave no note on {target}")


if TYPE_CHECKING:
    EvalWatcher = SilentEvalWatcher | LineEvalWatcher | LiveEvalWatcher
