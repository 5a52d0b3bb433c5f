"""``skillgit pull``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("pull")
@click.argument("remote", required=False)
@click.option(
    "--rejected",
    type=click.Choice(["branches", "attic", "none"]),
    default="branches",
    show_default=True,
    help="Which rejected candidates come: all, those in attics, or none",
)
@click.option("--evidence", is_flag=True, help="Bring evidence too")
@click.option("-n", "--dry-run", is_flag=True, help="Only fetch, and say what would move")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress")
@document_form
@click.pass_obj
def command(
    session: Session,
    remote: str | None,
    *,
    rejected: str,
    evidence: bool,
    dry_run: bool,
    quiet: bool,
    form: Form,
) -> None:
    """Take in the runs of another repository.

    REMOTE is origin unless you say. Runs that are unknown here are made, others go forward, notes of both sides are put
    together, and main goes forward where it can. A run that both sides went on with is left as it is, and told.
    """
    from skillgit.app.pull import PullRequest, pull  # noqa: PLC0415 - see the package
    from skillgit.cli.connection import listener  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exchange import pulled  # noqa: PLC0415 - see the package

    request = PullRequest(remote=remote, rejected=rejected, evidence=evidence, dry_run=dry_run)
    result = pull(session.context, request, listener(session, quiet=quiet))
    if form is Form.JSON:
        session.output.document("pull/1", result)
    else:
        session.output.text(pulled(result, session.screen))
    if result.error is not None:
        raise result.error
