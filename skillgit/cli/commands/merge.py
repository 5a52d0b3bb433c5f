"""``skillgit merge``."""

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


@verb("merge")
@click.argument("run", shell_complete=complete_runs)
@click.argument("other", shell_complete=complete_revisions)
@terms_options()
@document_form
@click.pass_obj
def command(session: Session, *, run: str, other: str, terms: Terms, quiet: bool, form: Form) -> int:
    """Merge another run into RUN, where scores decide what both changed.

    OTHER is a run, whose best version is merged, or a version as RUN/v7. Where both lines changed the same place, the
    texts of RUN, of OTHER, of both and of neither are measured, and the one that scores best stays. The whole has to
    pass the gate of RUN. What is refused stays on a side branch, and the exit code is 1.
    """
    from skillgit.app.merge import MergeRequest, merge  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.cli.render.merged import lines  # noqa: PLC0415 - see the package

    request = MergeRequest(into=run, other=other, terms=terms)
    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = merge(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("merge/2", result)
    else:
        session.output.text(lines(result, session.screen))
    return ExitCode.OK if result.decided.accepted else ExitCode.NO
