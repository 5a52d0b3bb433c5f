"""Options of the commands that may ask models: by which configuration, on what, at what cost, or not at all."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from skillgit.cli.options import complete_configs
from skillgit.cli.output import Form
from skillgit.cli.render.documents import named_values
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.app.plan import Plan
    from skillgit.cli.session import Session

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


def spending_options(*, short: bool = True) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Give a command that may ask models a dry run and the three caps; it gets them as ``dry_run`` and ``caps``.

    Args:
        short: Whether ``-n`` is a dry run too; in some commands it is a number.
    """
    names = ("-n", "--dry-run") if short else ("--dry-run",)
    dry_run = click.option(*names, is_flag=True, help="Show what it would do and cost, and do nothing")

    def decorate(command: Callable[..., _R]) -> Callable[..., _R]:
        @wraps(command)
        def with_caps(
            *args: object, max_calls: int | None, max_tokens: int | None, max_usd: float | None, **kwargs: object
        ) -> _R:
            from skillgit.domain.caps import Caps  # noqa: PLC0415 - help needs none

            caps = Caps(max_calls=max_calls, max_tokens=max_tokens, max_usd=max_usd)
            return command(*args, caps=caps, **kwargs)

        wrapped: Callable[..., _R] = with_caps
        for option in reversed((dry_run, *_CAPS)):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def show_plan(session: Session, plan: Plan, form: Form) -> ExitCode:
    """Print what a command would do and spend; every dry run of a command that spends ends so."""
    from skillgit.cli.render.plan import planned  # noqa: PLC0415 - most commands are no dry runs

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


def note_option(place: str = "the commits") -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Return the option that leaves no note on ``place``."""
    return click.option("--no-note", "note", flag_value=False, default=True, help=f"Leave no note on {place}")
