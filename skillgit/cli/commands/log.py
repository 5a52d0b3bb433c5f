"""``skillgit log``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import list_forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.log import COLUMNS, lines
from skillgit.cli.verb import verb
from skillgit.domain.event import EVENT_NAMES

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("log")
@run_argument
@click.option("--graph", is_flag=True, help="Draw how the events hang together")
@click.option("--rejected/--no-rejected", default=True, show_default=True, help="Show rejected candidates")
@click.option("-n", "--max-count", "limit", type=click.IntRange(min=0), metavar="N", help="Show N events at most")
@click.option(
    "--grep", metavar="TEXT", default="", help="Show events whose text holds words that begin like those of TEXT"
)
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice(list(EVENT_NAMES.values())),
    metavar="KIND",
    help=f"Show events of KIND: {' '.join(EVENT_NAMES.values())}; repeat it for more",
)
@click.option("--all", "all_runs", is_flag=True, help="Show the events of all runs")
@list_forms
@click.pass_obj
def command(
    session: Session,
    run: str | None,
    limit: int | None,
    grep: str,
    events: tuple[str, ...],
    *,
    graph: bool,
    rejected: bool,
    all_runs: bool,
    form: Form,
) -> None:
    """Show the events of a run, newest first.

    A score in brackets was inherited, not measured.

    \b
    ●  new best   ○  accepted   ×  rejected   ◆  slow update   ·  skipped   ↩  reverted
    """  # noqa: D301, RUF002 - click reads the mark; the sign of the screens
    from skillgit.app.log import log  # noqa: PLC0415 - see the package

    result = log(
        session.context,
        run,
        rejected=rejected,
        limit=limit,
        events=frozenset(events),
        grep=grep,
        all_runs=all_runs,
    )
    if form is not Form.TEXT:
        head = {"run": result.run}
        session.output.listing(form, result.rows, schema="log/1", name="events", columns=COLUMNS, head=head)
        return
    with session.output.paged():
        session.output.text(lines(result.rows, session.screen, session.now, graph=graph, runs=all_runs))
    if not result.rows:
        session.diagnostics.note("there are no such events" if result.run or all_runs else "there are no runs yet")
