"""``skillgit cherry-pick``."""

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


@verb("cherry-pick")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--onto", metavar="RUN", shell_complete=complete_runs, help="Put the edits on RUN, not the default run")
@terms_options()
@document_form
@click.pass_obj
def command(session: Session, *, revision: str, onto: str | None, terms: Terms, quiet: bool, form: Form) -> int:
    """Put the edits of one version on another line, if they pass its gate.

    REV may be a version or a rejected candidate. Its edits are applied to the newest version of the run, measured on
    the selection split and judged by the gate of that run. What is refused stays on a side branch, and the exit code
    is 1.
    """
    from skillgit.app.cherry_pick import CherryPickRequest, cherry_pick  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.cli.render.gated import decided  # noqa: PLC0415 - see the package

    request = CherryPickRequest(revision=revision, onto=onto, terms=terms)
    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = cherry_pick(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("cherry-pick/1", result)
    else:
        session.output.text(decided(result, session.screen))
    return ExitCode.OK if result.accepted else ExitCode.NO
