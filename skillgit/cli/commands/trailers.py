"""``skillgit trailers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("trailers")
@click.argument("revision", metavar="COMMIT", shell_complete=complete_revisions)
@document_form
@click.pass_obj
def command(session: Session, revision: str, form: Form) -> None:
    """Print the trailers of a commit, as git reads them.

    COMMIT is any REV. It prints nothing for a commit without trailers.
    """
    from skillgit.app.trailers import trailers  # noqa: PLC0415 - see the package

    commit, found = trailers(session.context, revision)
    if form is Form.JSON:
        pairs = [{"key": trailer.key, "value": trailer.value} for trailer in found]
        session.output.document("trailers/1", {"commit": commit, "trailers": pairs})
    else:
        session.output.text(f"{trailer.key}: {trailer.value}" for trailer in found)
