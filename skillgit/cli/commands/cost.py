"""``skillgit cost``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, list_forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.cost import COLUMNS, lines
from skillgit.cli.verb import verb
from skillgit.domain.cost import Grouping

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("cost")
@run_argument
@click.option(
    "--by",
    type=click.Choice([grouping.value for grouping in Grouping]),
    metavar="WHAT",
    help=f"Add up by WHAT: {' '.join(Grouping)}; by role and stage unless you say",
)
@click.option("--all", "all_runs", is_flag=True, help="Show what each run has cost")
@as_of_option
@list_forms
@click.pass_obj
def command(session: Session, run: str | None, by: str | None, *, all_runs: bool, form: Form) -> None:
    """Show what a run has cost, and where it went.

    A version costs everything since the version before it, rejected candidates included. The time of a role, a stage or
    a model is that of its calls, side by side ones added up; that of a step, a version or a run is wall time. Calls
    whose price is not known count as nothing, and are named.

    What a stopped run has spent on an event that is not recorded yet stands below, apart from the sums.

    It tells what the history holds, and not what ablate, resurrect, eval and others measured beside it, or what a merge
    that brought nothing spent; each of them prints that.
    """
    from skillgit.app.cost import cost  # noqa: PLC0415 - see the package

    if all_runs and (run is not None or by is not None):
        raise click.UsageError("--all goes without RUN and --by", click.get_current_context())
    result = cost(session.context, run, by=None if by is None else Grouping(by), all_runs=all_runs)
    if form is not Form.TEXT:
        head = {
            "run": result.run,
            "by": result.by,
            "share_of": result.share_of,
            "total": result.total,
            "unpriced": result.unpriced,
            "unfinished": result.unfinished,
        }
        session.output.listing(form, result.rows, schema="cost/1", name="rows", columns=COLUMNS, head=head)
        return
    if not result.run and not result.rows:
        session.diagnostics.note("there are no runs yet")
        session.diagnostics.hint("skillgit train CONFIG")
        return
    with session.output.paged():
        session.output.text(lines(result, session.screen))
