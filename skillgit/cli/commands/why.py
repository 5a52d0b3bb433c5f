"""``skillgit why``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("why")
@click.argument("what", metavar="LINE|TEXT")
@click.option("--rev", "revision", metavar="REV", default="", shell_complete=complete_revisions, help="Look at REV")
@click.option("--file", "path", metavar="PATH", default="", help="Look in this file of the skill only")
@as_of_option
@document_form
@click.pass_obj
def command(session: Session, what: str, revision: str, path: str, form: Form) -> None:
    """Tell why a rule stands in a skill, from the rollouts that failed to the gate.

    Name the rule by the number of its line in SKILL.md, or by some of its words. Words that no rule has now are
    looked for in history, so that a rule that was removed or never accepted is found, too.

    REV is the newest version of the default run unless you name one.
    """
    from skillgit.app.absent_evidence import BRING  # noqa: PLC0415 - see the package
    from skillgit.app.why import why  # noqa: PLC0415 - see the package
    from skillgit.cli.render.why import lines  # noqa: PLC0415 - it reads events, which help does not need

    story = why(session.context, what, revision, path)
    if form is Form.JSON:
        session.output.document("why/1", story)
    else:
        with session.output.paged():
            session.output.text(lines(story, session.screen, session.now))
    if story.absent:
        session.diagnostics.hint(f"the evidence is not here, so that failures and findings are not known: {BRING}")
