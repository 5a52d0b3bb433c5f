"""The top-level command: it finds the others by name and imports only the one that runs."""

from __future__ import annotations

import importlib
from typing import cast

import click

from skillgit.cli.catalogue import ENTRIES, SECTIONS
from skillgit.cli.verb import refuse_unknown, reworded


class LazyGroup(click.Group):
    """A group whose commands are rows of the catalogue."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        del ctx
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        del ctx
        entry = ENTRIES.get(cmd_name)
        return cast("click.Command", importlib.import_module(entry.module).command) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that ``args`` begin with, or say which one was meant."""
        refuse_unknown(ctx, args, ENTRIES)
        return super().resolve_command(ctx, args)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option."""
        return reworded(super().get_help_option(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the catalogue by sections."""
        del ctx
        widest = max(map(len, ENTRIES))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(entry.name.ljust(widest), entry.summary) for entry in entries])
