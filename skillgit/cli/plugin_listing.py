"""What ``envs`` and ``backends`` have in common: they list plug-ins, or describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from skillgit.cli.options import list_forms
from skillgit.cli.output import Form
from skillgit.cli.render import plugins as render
from skillgit.cli.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillgit.app.context import Context
    from skillgit.app.plugins import BackendEntry, EnvironmentEntry
    from skillgit.cli.screen import Screen
    from skillgit.cli.session import Session

Entry = TypeVar("Entry", bound="EnvironmentEntry | BackendEntry")
_SHOW = "show"


class Listing(Verb):
    """A command of an optional NAME, before which the word ``show`` may stand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave the word out; it says nothing that NAME does not say."""
        if args[:1] == [_SHOW]:
            args = args[1:]
            if all(arg.startswith("-") for arg in args) and not ctx.resilient_parsing:
                raise click.UsageError("show which one?", ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Say that the word may stand there."""
        return [f"[[{_SHOW}] NAME]" if piece == "[NAME]" else piece for piece in super().collect_usage_pieces(ctx)]


def plugin_command(
    verb: str,
    text: str,
    *,
    rows: str,
    find: Callable[[Context, str | None], tuple[Entry, ...]],
    describe: Callable[[Entry, Screen], Iterable[str]],
    complete: Callable[[click.Context, click.Parameter, str], list[str]],
) -> Listing:
    """Make the command that lists one kind of plug-in.

    Args:
        verb: Its name, and that of its machine formats.
        text: Its help.
        rows: The field of the JSON document that holds the plug-ins.
        find: Returns all plug-ins, or the one of a name.
        describe: Yields everything about one for people.
        complete: Completes a name.
    """

    @click.command(verb, cls=Listing, help=text)
    @click.argument("name", required=False, shell_complete=complete)
    @list_forms
    @click.pass_obj
    def command(session: Session, name: str | None, form: Form) -> None:
        entries = find(session.context, name)
        if form is not Form.TEXT:
            session.output.listing(form, entries, schema=f"{verb}/1", name=rows, columns=render.COLUMNS)
        elif name is None:
            session.output.text(render.listed(entries, session.screen))
        else:
            session.output.text(describe(entries[0], session.screen))

    return command
