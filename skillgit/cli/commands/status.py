"""``skillgit status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, document_form
from skillgit.cli.output import Form
from skillgit.cli.render.runs import standing
from skillgit.cli.unreadable import tell_unreadable
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("status")
@as_of_option
@document_form
@click.pass_obj
def command(session: Session, form: Form) -> None:
    """Show the default run, its newest and its best version."""
    from skillgit.app.status import status  # noqa: PLC0415 - see the package

    result = status(session.context)
    tell_unreadable(session)
    if form is Form.JSON:
        session.output.document("status/1", result)
        return
    session.output.text(standing(result, session.screen, session.now))
    if result.run is None:
        session.diagnostics.note("there are no runs yet")
        session.diagnostics.hint("skillgit train CONFIG")
    if not result.index_fresh:
        session.diagnostics.note("the index on disk is stale; this was read from git")
        session.diagnostics.hint("skillgit reindex")
