"""``skillgit compress``."""

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


@verb("compress")
@click.argument("revision", metavar="[REV]", default="head", shell_complete=complete_revisions)
@terms_options()
@document_form
@click.pass_obj
def command(session: Session, *, revision: str, terms: Terms, quiet: bool, form: Form) -> int:
    """Say the same in fewer words, if the score does not fall.

    REV is the newest version of a run, that of the default run unless you name one. The optimizer's model is asked
    once for a shorter text; frontmatter and protected regions stay. The gate accepts it if its score is not lower.
    What is refused stays on a side branch, and the exit code is 1; the same command then asks anew.
    """
    from skillgit.app.compress import CompressRequest, compress  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.cli.render.gated import decided  # noqa: PLC0415 - see the package

    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = compress(session.context, CompressRequest(revision=revision, terms=terms), watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("compress/1", result)
    else:
        session.output.text(decided(result, session.screen))
    return ExitCode.OK if result.accepted else ExitCode.NO
