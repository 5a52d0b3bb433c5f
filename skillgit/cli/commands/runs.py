"""``skillgit runs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, list_forms
from skillgit.cli.output import Form
from skillgit.cli.render.cost import unfinished
from skillgit.cli.render.runs import COLUMNS, lines
from skillgit.cli.unreadable import tell_unreadable
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("runs")
@as_of_option
@list_forms
@click.pass_obj
def command(session: Session, form: Form) -> None:
    """List the runs, newest first."""
    from skillgit.app.runs import runs, spent_on_unfinished  # noqa: PLC0415 - see the package

    rows = runs(session.context)
    making = spent_on_unfinished(session.context) if rows and form in {Form.TEXT, Form.JSON} else None
    tell_unreadable(session)
    if form is not Form.TEXT:
        head = {"unfinished": making}
        session.output.listing(form, rows, schema="runs/1", name="runs", columns=COLUMNS, head=head)
        return
    with session.output.paged():
        session.output.text(lines(rows, session.screen, session.now))
        session.output.text(unfinished(making, session.screen, named=True))
    if not rows:
        session.diagnostics.note("there are no runs yet")
        session.diagnostics.hint("skillgit train CONFIG")
