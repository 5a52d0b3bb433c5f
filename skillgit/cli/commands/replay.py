"""``skillgit replay``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import list_forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.replay import lines
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.cli.session import Session

COLUMNS = ("commit", "label", "kind", "gate", "patch", "differing", "lacking", "title")


@verb("replay")
@run_argument
@click.option("-q", "--quiet", is_flag=True, help="Print only what differs, and the summary")
@list_forms
@click.pass_obj
def command(session: Session, run: str | None, *, quiet: bool, form: Form) -> ExitCode:
    """Make a run again from its commits, and compare.

    Asks no model: it folds all events, asks every gate again with the recorded outcomes of items, applies every patch
    to its base again, and builds the index anew. Exits with 1 if anything comes out otherwise than it is recorded.
    """
    from skillgit.app.replay import replay  # noqa: PLC0415 - see the package

    done = replay(session.context, run)
    if form is Form.TEXT:
        session.output.text(lines(done, session.screen, quiet=quiet))
    else:
        head = {
            "run": done.run,
            "same": done.same,
            "differing": done.differing,
            "index": done.index,
            "history": done.history,
        }
        session.output.listing(form, done.events, schema="replay/1", name="events", columns=COLUMNS, head=head)
    return ExitCode.OK if done.same else ExitCode.NO
