"""``skillgit best``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.log import COLUMNS, line
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("best")
@run_argument
@as_of_option
@forms(Form.JSON, Form.PLAIN, Form.NUL)
@click.pass_obj
def command(session: Session, run: str | None, form: Form) -> ExitCode:
    """Print the best version of a run.

    Exits with 1 if there is none.
    """
    from skillgit.app.best import best  # noqa: PLC0415 - see the package

    row = best(session.context, run)
    if form is Form.JSON:
        session.output.document("best/1", {"best": row})
    elif row is not None and form is Form.TEXT:
        session.output.text([line(row, session.screen, session.now)])
    elif row is not None:
        session.output.table([[getattr(row, column) for column in COLUMNS]], nul=form is Form.NUL)
    if row is None:
        session.diagnostics.note("there is no best version")
    return ExitCode.OK if row is not None else ExitCode.NO
