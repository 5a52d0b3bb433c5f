"""``skillgit remote`` and what it does: ``add``, ``remove``, ``set-url`` and ``show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import document_form, list_forms
from skillgit.cli.output import Form
from skillgit.cli.verb import Verb, Verbs

if TYPE_CHECKING:
    from skillgit.cli.session import Session

COLUMNS = ("name", "url", "push_url")


@click.group("remote", cls=Verbs, invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@click.option("-v", "--verbose", is_flag=True, help="Show addresses")
@list_forms
@click.pass_context
def command(ctx: click.Context, *, verbose: bool, form: Form) -> None:
    """List the other repositories that this one knows, or change them.

    An address that holds a password or a token is refused, for git would write it down.
    """
    if ctx.invoked_subcommand is not None:
        return
    from skillgit.app.remote import remotes  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exchange import addresses  # noqa: PLC0415 - see the package

    session: Session = ctx.obj
    rows = remotes(session.context)
    if form is not Form.TEXT:
        session.output.listing(form, rows, schema="remote/1", name="remotes", columns=COLUMNS)
        return
    session.output.text(addresses(rows) if verbose else (row.name for row in rows))
    if not rows:
        session.diagnostics.note("there are no remotes yet")
        session.diagnostics.hint("skillgit remote add origin URL")


@command.command(cls=Verb, name="add", short_help="Call the repository at URL NAME")
@click.argument("name")
@click.argument("url")
@click.pass_obj
def add_command(session: Session, name: str, url: str) -> None:
    """Call the repository at URL NAME."""
    from skillgit.app.remote import add  # noqa: PLC0415 - see the package

    row = add(session.context, name, url)
    session.output.text([f"{row.name} is {row.url}; next: skillgit push {row.name}"])


@command.command(cls=Verb, name="remove", short_help="Forget NAME and the copies of its refs")
@click.argument("name")
@click.pass_obj
def remove_command(session: Session, name: str) -> None:
    """Forget NAME and the copies of its refs.

    Nothing of this repository's own goes. Runs that were only fetched, not pulled, go with the copies.
    """
    from skillgit.app.remote import remove  # noqa: PLC0415 - see the package
    from skillgit.cli.render.words import plural  # noqa: PLC0415 - see the package

    gone = remove(session.context, name)
    session.output.text([f"{name} is forgotten, with {plural(gone, 'copy of its refs', 'copies of its refs')}"])


@command.command(cls=Verb, name="set-url", short_help="Give NAME the address URL")
@click.argument("name")
@click.argument("url")
@click.pass_obj
def set_url_command(session: Session, name: str, url: str) -> None:
    """Give NAME the address URL."""
    from skillgit.app.remote import set_url  # noqa: PLC0415 - see the package

    row = set_url(session.context, name, url)
    session.output.text([f"{row.name} is {row.url}"])


@command.command(cls=Verb, name="show", short_help="Ask NAME what it has, and compare")
@click.argument("name", required=False)
@document_form
@click.pass_obj
def show_command(session: Session, name: str | None, form: Form) -> None:
    """Ask NAME what it has, and compare it with what is here."""
    from skillgit.app.remote import show  # noqa: PLC0415 - see the package
    from skillgit.cli.connection import listener  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exchange import remote_shown  # noqa: PLC0415 - see the package

    result = show(session.context, name, listener(session))
    if form is Form.JSON:
        session.output.document("remote-show/1", result)
    else:
        session.output.text(remote_shown(result, session.screen))
