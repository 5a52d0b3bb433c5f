"""What commands that may ask models share: their options, their caps, and how their work is shown."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from skillgit.cli.options import complete_configs, flag, hush, option, quiet_option
from skillgit.errors import ExitCode
from skillgit.view.json_values import named_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillgit.app.setup.model_session import EvalProgress
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.cli.session import CommandSession
    from skillgit.cli.watchers import SilentWatcher
    from skillgit.domain.cost import Caps
    from skillgit.view.surface import Screen

_R = TypeVar("_R")
_Request = TypeVar("_Request")


def carried_out(
    session: CommandSession,
    use_case: Callable[[Context, _Request, SilentWatcher[EvalProgress]], _R | Plan],
    request: _Request,
) -> _R | None:
    """Do what measures something, in sight of the user; a dry run prints the plan and has no result."""
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - help needs none
    from skillgit.cli.watchers import LiveEvalWatcher, watching  # noqa: PLC0415 - as above

    with watching(session, LiveEvalWatcher) as watcher:
        result = use_case(session.context, request, watcher)
    if isinstance(result, Plan):
        show_plan(session, result)
        return None
    session.diagnostics.note(*getattr(result, "warnings", ()))
    return result


def measured(
    session: CommandSession,
    use_case: Callable[[Context, _Request, SilentWatcher[EvalProgress]], _R | Plan],
    request: _Request,
    schema: str,
    lines: Callable[[_R, Screen], Iterable[str]],
) -> _R | None:
    """Do what measures something and print its result, if there is one."""
    result = carried_out(session, use_case, request)
    if result is not None:
        session.show(schema, result, lines(result, session.screen))
    return result


def terms_options(command: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command the options that say on which terms to measure; it gets them as ``terms``."""

    @config_option
    @spending_options
    @quiet_option
    @wraps(command)
    def with_terms(*args: object, config: str | None, caps: Caps, dry_run: bool, **kwargs: object) -> _R:
        from skillgit.app.setup.model_session import MeasuringTerms  # noqa: PLC0415 - it loads the engine

        return command(*args, terms=MeasuringTerms(config=config, caps=caps, dry_run=dry_run), **kwargs)

    return with_terms


_DOLLARS = click.FloatRange(min=0, min_open=True)
config_option = option(
    "--config", "Measure as CONFIG says, not as the run did", metavar="CONFIG", shell_complete=complete_configs
)


def spending_options(command: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command that may ask models a dry run and the three caps; it gets them as ``dry_run`` and ``caps``."""

    @flag("-n --dry-run", "Show what it would do and cost, and do nothing", callback=hush)
    @option("--max-calls", "Stop before it makes more model calls", type=click.IntRange(min=1), metavar="N")
    @option("--max-tokens", "Stop before it uses more tokens", type=click.IntRange(min=1), metavar="N")
    @option("--max-usd", "Stop before it spends more US dollars", type=_DOLLARS, metavar="USD")
    @wraps(command)
    def with_caps(
        *args: object, max_calls: int | None, max_tokens: int | None, max_usd: float | None, **kwargs: object
    ) -> _R:
        from skillgit.domain.cost import Caps  # noqa: PLC0415 - help needs none

        return command(*args, caps=Caps(max_calls=max_calls, max_tokens=max_tokens, max_usd=max_usd), **kwargs)

    return with_caps


def show_plan(session: CommandSession, plan: Plan) -> ExitCode:
    """Print what a command would do and spend; every dry run of a command that spends ends so."""
    from skillgit.view.plan import planned  # noqa: PLC0415 - most commands are no dry runs

    session.show("plan/2", {**named_values(plan), "sentence": plan.sentence}, planned(plan, session.screen))
    return ExitCode.OK


def split_option(
    splits: Sequence[str], wording: str = "Which items to measure on"
) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    return option("--split", wording, type=click.Choice(splits), default="selection", show_default=True)


def note_option(target: str = "the commits") -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    return option("--no-note note", f"Leave no note on {target}", flag_value=False, default=True)
