"""``skillgit show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.render.show import lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("show")
@click.argument("revision", metavar="REV", default="head", shell_complete=complete_revisions)
@as_of_option
@document_form
@click.pass_obj
def command(session: Session, revision: str, form: Form) -> None:
    """Show one event: message, scores and diff.

    REV is the newest version of the default run unless you name one.
    """
    from skillgit.app.show import show  # noqa: PLC0415 - see the package

    shown = show(session.context, revision)
    if form is Form.JSON:
        session.output.document("show/1", shown)
        return
    with session.output.paged():
        session.output.text(lines(shown, session.screen, session.now, session.screen_for_diff()))
