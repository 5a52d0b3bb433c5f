"""``skillgit fork``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("fork")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@document_form
@click.pass_obj
def command(session: Session, *, revision: str, name: str | None, dry_run: bool, form: Form) -> None:
    """Start a run of its own at a version of another one.

    The fork has the text and the score of REV and the configuration of its run. Training goes on in it with the same
    CONFIG. Without NAME it is called after the run, with -fork behind it.
    """
    from skillgit.app.fork import fork  # noqa: PLC0415 - see the package
    from skillgit.cli.render.interventions import forked  # noqa: PLC0415 - see the package

    result = fork(session.context, revision, name, dry_run=dry_run)
    if form is Form.JSON:
        session.output.document("fork/1", result)
    else:
        session.output.text(forked(result, session.screen))
