"""``skillgit reindex``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import document_form
from skillgit.cli.output import Form
from skillgit.cli.render.words import plural
from skillgit.cli.unreadable import tell_unreadable
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("reindex")
@document_form
@click.pass_obj
def command(session: Session, form: Form) -> None:
    """Drop the index and rebuild it from git.

    Nothing is lost: history is in git, the index only makes reading fast.
    """
    from skillgit.app.reindex import reindex  # noqa: PLC0415 - see the package

    result = reindex(session.context)
    tell_unreadable(session)
    if form is Form.JSON:
        session.output.document("reindex/1", result)
    else:
        counted = f"{plural(result.runs, 'run')}, {plural(result.events, 'event')}"
        session.output.text([f"indexed {counted} in {result.seconds:.2f} s"])
