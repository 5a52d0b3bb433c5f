"""``skillgit revert``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.gated_options import looking_on, terms_options
from skillgit.cli.measuring_options import show_plan
from skillgit.cli.options import complete_revisions, complete_runs, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.app.gating.measuring import Terms
    from skillgit.cli.session import Session


@verb("revert")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="Take REV as a version of RUN")
@click.option("--gate", is_flag=True, help="Measure the text and let the gate decide")
@terms_options()
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    revision: str,
    run: str | None,
    gate: bool,
    terms: Terms,
    quiet: bool,
    form: Form,
) -> int:
    """Make an older version's text the newest version of its run.

    History only grows: the versions in between stay. The new version inherits the score of REV. With --gate it is
    measured and judged against the newest version; what is refused stays on a side branch, and the exit code is 1.
    """
    from skillgit.app.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.app.revert import RevertRequest, revert  # noqa: PLC0415 - see the package
    from skillgit.cli.render.interventions import reverted  # noqa: PLC0415 - see the package

    request = RevertRequest(revision=revision, run=run, dry_run=terms.dry_run, gate=terms if gate else None)
    with looking_on(session, quiet=quiet or not gate or terms.dry_run) as watcher:
        result = revert(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("revert/1", result)
    else:
        session.output.text(reverted(result, session.screen))
    return ExitCode.OK if result.accepted else ExitCode.NO
