"""``skillgit matrix``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, list_forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.matrix import COLUMNS, lines, records
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("matrix")
@run_argument
@click.option(
    "--split",
    type=click.Choice(("train", "selection", "test")),
    default="selection",
    show_default=True,
    help="Which items the scores are of",
)
@as_of_option
@list_forms
@click.pass_obj
def command(session: Session, run: str | None, split: str, form: Form) -> None:
    """Show what each version scored under each target model.

    Scores are those of the run and of the notes that eval, retest and verify left; of several the newest. What was
    measured on other items, in another environment or by another judge is marked.
    """
    from skillgit.app.matrix import matrix  # noqa: PLC0415 - see the package

    found = matrix(session.context, run, split)
    if form is not Form.TEXT:
        head = {"run": found.run, "split": found.split, "metric": found.metric, "models": found.models}
        session.output.listing(form, records(found), schema="matrix/1", name="scores", columns=COLUMNS, head=head)
    elif found.rows:
        session.output.text(lines(found, session.screen))
    else:
        session.diagnostics.note(f"no version of run {found.run} has a score on the {found.split} split")
        session.diagnostics.hint(f"skillgit eval {found.run} --split {found.split}")
