"""``skillgit bisect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.measuring_options import quiet_option, show_plan, spending_options
from skillgit.cli.options import (
    as_of_option,
    complete_configs,
    complete_items,
    complete_revisions,
    complete_runs,
    document_form,
    override_option,
)
from skillgit.cli.output import Form
from skillgit.cli.render.bisect import lines
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.app.bisect import Bisected, BisectRequest
    from skillgit.app.plan import Plan
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps


@verb("bisect")
@click.option("--item", metavar="ID", required=True, shell_complete=complete_items, help="The item")
@click.argument("good", required=False, shell_complete=complete_revisions)
@click.argument("bad", required=False, shell_complete=complete_revisions)
@click.option("--of", "run", metavar="RUN", shell_complete=complete_runs, help="Look at RUN, not at the default run")
@click.option("--run", "measure", is_flag=True, help="Roll the item out where an outcome is missing, and note it")
@click.option("--config", metavar="CONFIG", shell_complete=complete_configs, help="With --run: measure as CONFIG says")
@override_option
@spending_options()
@quiet_option
@as_of_option
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    item: str,
    good: str | None,
    bad: str | None,
    run: str | None,
    measure: bool,
    config: str | None,
    overrides: tuple[str, ...],
    caps: Caps,
    dry_run: bool,
    quiet: bool,
    form: Form,
) -> ExitCode:
    """Find the version that fixed or broke an item.

    It looks between two versions that differ on the item, in either order; without them at the newest flip of the run.
    What the run recorded answers, so that nothing is spent; --run asks for what is missing, one item at a time. Exits
    with 1 if the outcome is the same at both ends.
    """
    from skillgit.app.bisect import BisectRequest  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above

    if dry_run and not measure:
        raise click.UsageError("--dry-run goes with --run: nothing else spends", click.get_current_context())
    if (good is None) != (bad is None):
        raise click.UsageError("name two versions, or none", click.get_current_context())
    request = BisectRequest(
        item=item,
        run=run,
        ends=(good, bad) if good is not None and bad is not None else None,
        measure=measure,
        config=config,
        overrides=overrides,
        caps=caps,
        dry_run=dry_run,
    )
    found = _bisected(session, request, quiet=quiet or dry_run)
    if isinstance(found, Plan):
        return show_plan(session, found, form)
    if form is Form.JSON:
        session.output.document("bisect/1", found)
    else:
        session.output.text(lines(found, session.screen, session.now))
    return ExitCode.OK if found.flip is not None else ExitCode.NO


def _bisected(session: Session, request: BisectRequest, *, quiet: bool) -> Bisected | Plan:
    from skillgit.app.bisect import bisect  # noqa: PLC0415 - see the package

    if not request.measure:
        return bisect(session.context, request)
    from skillgit.cli.eval_watchers import watching  # noqa: PLC0415 - only measuring is watched

    with watching(session, quiet=quiet) as watcher:
        return bisect(session.context, request, watcher)
