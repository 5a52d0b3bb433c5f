"""Options of the commands that measure: by which configuration, on what, and at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from skillgit.cli.options import complete_configs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_R = TypeVar("_R")

config_option = click.option(
    "--config", metavar="CONFIG", shell_complete=complete_configs, help="Measure as CONFIG says, not as the run did"
)
max_calls_option = click.option(
    "--max-calls", type=click.IntRange(min=1), metavar="N", help="Stop before it makes more model calls"
)
max_tokens_option = click.option(
    "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Stop before it uses more tokens"
)
max_usd_option = click.option(
    "--max-usd",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Stop before it spends more US dollars",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Tell what it would cost, and measure nothing")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress")


def split_option(
    splits: Sequence[str], wording: str = "Which items to measure on"
) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Return the option that chooses one of ``splits``."""
    return click.option("--split", type=click.Choice(splits), default="selection", show_default=True, help=wording)


def note_option(place: str = "the commits") -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Return the option that leaves no note on ``place``."""
    return click.option("--no-note", "note", flag_value=False, default=True, help=f"Leave no note on {place}")
