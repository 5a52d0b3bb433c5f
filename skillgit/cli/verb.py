"""What all commands have in common as click objects: the words of their help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable


class Verb(click.Command):
    """A command whose help option is worded like all others."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option."""
        return reworded(super().get_help_option(ctx))


class Verbs(click.Group):
    """A command that has commands of its own."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option."""
        return reworded(super().get_help_option(ctx))


def reworded(option: click.Option | None) -> click.Option | None:
    """Return click's help option with our words, which end without a full stop."""
    if option is not None:
        option.help = "Show this help"
    return option


def verb(name: str) -> Callable[[Callable[..., object]], Verb]:
    """Make a function the command called ``name``."""
    return click.command(name, cls=Verb)


def verbs(name: str) -> Callable[[Callable[..., object]], Verbs]:
    """Make a function the command called ``name`` that others belong to."""
    return click.group(name, cls=Verbs, subcommand_metavar="COMMAND [ARGS]...")
