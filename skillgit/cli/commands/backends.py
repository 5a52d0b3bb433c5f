"""``skillgit backends``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_backends, list_forms
from skillgit.cli.output import Form
from skillgit.cli.render import plugins as render
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("backends")
@click.argument("name", required=False, shell_complete=complete_backends)
@list_forms
@click.pass_obj
def command(session: Session, name: str | None, form: Form) -> None:
    """List the model backends, or describe one.

    NAME is a backend of the list, or path/to/file.py:Class.
    """
    from skillgit.app.plugins import backend, backends  # noqa: PLC0415 - see the package

    entries = backends(session.context) if name is None else (backend(session.context, name),)
    if form is not Form.TEXT:
        session.output.listing(form, entries, schema="backends/1", name="backends", columns=render.COLUMNS)
    elif name is None:
        session.output.text(render.listed(entries, session.screen))
    else:
        session.output.text(render.backend(entries[0], session.screen))
