"""``skillgit help``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from skillgit.cli.catalogue import ENTRIES
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    found = ctx.params.get(param.name or "")
    if found:
        return []
    return [CompletionItem(name, help=entry.summary) for name, entry in ENTRIES.items() if name.startswith(incomplete)]


@verb("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete)
@click.option("--man", "manual", is_flag=True, help="Print its manual page, for man -l -")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], *, manual: bool) -> None:
    """Show the help of a command.

    It is what skillgit COMMAND --help shows; without COMMAND all commands are listed.
    """
    here = _context_of(ctx, words)
    session: Session = ctx.obj
    if manual:
        from skillgit.cli.man import page  # noqa: PLC0415 - rarely asked for

        session.output.raw(page(here).encode())
    else:
        session.output.text(here.get_help().split("\n"))


def _context_of(ctx: click.Context, words: tuple[str, ...]) -> click.Context:
    root = ctx.find_root()
    here, found = root, root.command
    for word in words:
        if not isinstance(found, click.Group):
            raise click.UsageError(f"{here.command_path} has no commands of its own", here)
        # it tells what was meant if there is no such command
        name, inner, _ = found.resolve_command(here, [word])
        if inner is None:
            raise click.UsageError(f"there is no command '{word}'", here)
        here = click.Context(inner, info_name=name, parent=here)
        found = inner
    return here
