"""``skillgit prune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.gated_options import looking_on, terms_options
from skillgit.cli.measuring_options import show_plan
from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.app.gating.measuring import Terms
    from skillgit.cli.session import Session


@verb("prune")
@click.argument("revision", metavar="[REV]", default="head", shell_complete=complete_revisions)
@terms_options()
@document_form
@click.pass_obj
def command(session: Session, *, revision: str, terms: Terms, quiet: bool, form: Form) -> int:
    """Drop the rules that change nothing, if the score does not fall.

    REV is the newest version of a run, that of the default run unless you name one. Which rules can go is taken from
    the notes of ablate, and measured where they do not tell. The gate accepts the shorter text if its score is not
    lower. What is refused stays on a side branch, and the exit code is 1.
    """
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.app.prune import PruneRequest, prune  # noqa: PLC0415 - see the package
    from skillgit.cli.render.ablated import pruned  # noqa: PLC0415 - see the package

    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = prune(session.context, PruneRequest(revision=revision, terms=terms), watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("prune/1", result)
    else:
        session.output.text(pruned(result, session.screen))
    return ExitCode.OK if result.decided.accepted else ExitCode.NO
