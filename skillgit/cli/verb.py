"""What all commands have in common as click objects: the words of their help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Verb(click.Command):
    """A command whose help option is worded like all others, and whose mistakes name it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; click's parser does not say which command it could not read."""
        try:
            if not ctx.resilient_parsing:
                refuse_empty(ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option."""
        return reworded(super().get_help_option(ctx))


class Verbs(click.Group):
    """A command that has commands of its own."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that ``args`` begin with, or say which one was meant."""
        refuse_unknown(ctx, args, self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option."""
        return reworded(super().get_help_option(ctx))


def reworded(option: click.Option | None) -> click.Option | None:
    """Return click's help option with our words, which end without a full stop."""
    if option is not None:
        option.help = "Show this help"
    return option


def refuse_unknown(ctx: click.Context, args: list[str], known: Iterable[str]) -> None:
    """Refuse ``args`` that begin with no command, and say which one was meant.

    Raises:
        click.UsageError: They do.
    """
    if not args or args[0] in known or args[0].startswith("-") or ctx.resilient_parsing:
        return
    near = nearest(args[0], known)
    meant = f", did you mean '{near}'?" if near else ""
    raise click.UsageError(f"there is no command '{args[0]}'{meant}", ctx)


def refuse_empty(ctx: click.Context, args: list[str]) -> None:
    """Refuse a value that is empty, as that of an unset shell variable: it would silently stand for everything.

    Raises:
        click.UsageError: There is one.
    """
    if not any(arg == "" or arg.endswith("=") for arg in args):
        return
    given, _, order = ctx.command.make_parser(ctx).parse_args([*args])
    for param in order:
        value = given.get(param.name or "")
        values = value if isinstance(value, list | tuple) else (value,)
        if "" in values:
            raise click.UsageError(f"{_name(param)} is empty", ctx)


def _name(param: click.Parameter) -> str:
    """Return what a person calls a parameter: an option by its first long name, an argument as the usage has it."""
    if isinstance(param, click.Option):
        return next((name for name in param.opts if name.startswith("--")), param.opts[0])
    return f"the argument {param.human_readable_name.strip('[].- ')}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that ``name`` was probably meant to be."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a mistake needs it

    found = process.extractOne(name, list(names), scorer=fuzz.WRatio, score_cutoff=60)
    return found[0] if found else None


def verb(name: str) -> Callable[[Callable[..., object]], Verb]:
    """Make a function the command called ``name``."""
    return click.command(name, cls=Verb)


def verbs(name: str) -> Callable[[Callable[..., object]], Verbs]:
    """Make a function the command called ``name`` that others belong to."""
    return click.group(name, cls=Verbs, subcommand_metavar="COMMAND [ARGS]...")
