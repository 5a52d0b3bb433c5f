"""``skillgit rev-parse``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, complete_revisions
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("rev-parse")
@click.argument("revisions", nargs=-1, required=True, metavar="REV...", shell_complete=complete_revisions)
@click.option("--short", is_flag=True, help="Shorten ids as git does, so far as they stay unambiguous")
@as_of_option
@click.pass_obj
def command(session: Session, revisions: tuple[str, ...], *, short: bool) -> None:
    """Print the commit that REV names.

    Of a range A..B it prints the commit of B, then that of A with a ^ in front, as git does.
    """
    from skillgit.app.rev_parse import rev_parse  # noqa: PLC0415 - see the package

    named = rev_parse(session.context, revisions, short=short)
    session.output.text(f"{'^' if one.excluded else ''}{one.commit}" for one in named)
