"""``skillgit use``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_runs, document_form
from skillgit.cli.output import Form
from skillgit.cli.render.words import score
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("use")
@click.argument("run", shell_complete=complete_runs)
@document_form
@click.pass_obj
def command(session: Session, run: str, form: Form) -> None:
    """Make RUN the default run.

    Names like v7, best and head refer to it. Any beginning of a name that fits one run only will do.
    """
    from skillgit.app.use import use  # noqa: PLC0415 - see the package

    row = use(session.context, run)
    if form is Form.JSON:
        session.output.document("use/1", {"run": row})
    else:
        best = f"best v{row.best_version} {score(row.best_score)}"
        session.output.text([f"default run is now {row.name}, {best}; next: skillgit log"])
