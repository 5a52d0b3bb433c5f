"""``skillgit events``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, complete_revisions, forms
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("events")
@click.argument("revisions", nargs=-1, metavar="[RUN | REV | REV..REV]", shell_complete=complete_revisions)
@click.option("--all", "all_runs", is_flag=True, help="Print the events of all runs, run by run")
@as_of_option
@forms(Form.JSONL)
@click.pass_obj
def command(session: Session, revisions: tuple[str, ...], *, all_runs: bool, form: Form) -> None:
    """Print the events of a run as they stand in git, oldest first.

    Each is one JSON object a line, with or without --jsonl: the commit, and every field of its trailers and its text.
    """
    del form
    from skillgit.app.events import events  # noqa: PLC0415 - see the package

    session.output.records(events(session.context, revisions, all_runs=all_runs))
