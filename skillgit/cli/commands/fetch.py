"""``skillgit fetch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import list_forms
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session

COLUMNS = ("ref", "run", "old", "new")


@verb("fetch")
@click.argument("remote", required=False)
@click.option("--rejected", is_flag=True, help="Bring rejected candidates too")
@click.option("--evidence", is_flag=True, help="Bring evidence too")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress")
@list_forms
@click.pass_obj
def command(session: Session, remote: str | None, *, rejected: bool, evidence: bool, quiet: bool, form: Form) -> None:
    """Bring in what another repository has, beside what is here.

    REMOTE is origin unless you say. Nothing of this repository's own moves; skillgit pull does that. A run that is not
    here can be looked at all the same. Candidates that others rejected are told to the optimizer of a run that goes on
    from there.
    """
    from skillgit.app.fetch import fetch  # noqa: PLC0415 - see the package
    from skillgit.cli.connection import listener  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exchange import fetched  # noqa: PLC0415 - see the package

    person = listener(session, quiet=quiet)
    result = fetch(session.context, remote, rejected=rejected, evidence=evidence, listener=person)
    if form is Form.TEXT:
        session.output.text(fetched(result, session.screen))
    else:
        head = {"remote": result.remote, "url": result.url}
        session.output.listing(form, result.refs, schema="fetch/1", name="refs", columns=COLUMNS, head=head)
