"""``skillgit scan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("scan")
@click.argument("revision", metavar="[REV|RANGE]", required=False, shell_complete=complete_revisions)
@click.option("--evidence", is_flag=True, help="Look at evidence and folded candidates too")
@document_form
@click.pass_obj
def command(session: Session, *, revision: str | None, evidence: bool, form: Form) -> ExitCode:
    """Look for secrets, leaked items and large files in what a push would publish.

    Without REV it looks at every commit of branches and tags that no remote has. With REV it looks at everything that
    REV leads to, with A..B at what came after A. What is found is named with commit, path and line, and with a
    fingerprint that the file .skillgit-allow can hold. Exits with 1 if a push would be stopped; warnings leave it at 0.
    """
    from skillgit.app.scan import scan  # noqa: PLC0415 - see the package
    from skillgit.cli.render.scan import scanned  # noqa: PLC0415 - see the package

    if revision is not None and evidence:
        raise UsageError("--evidence looks at all runs, and REV at one line", hint="skillgit scan --evidence")
    result = scan(session.context, revision, evidence=evidence)
    if form is Form.JSON:
        session.output.document("scan/1", result)
    else:
        session.output.text(scanned(result, session.screen))
        for sentence in result.unchecked:
            session.diagnostics.note(sentence)
    return ExitCode.NO if result.stops else ExitCode.OK
