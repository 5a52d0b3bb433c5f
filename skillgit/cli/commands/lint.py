"""``skillgit lint``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("lint")
@click.argument("words", metavar="[PATH|REV]...", nargs=-1)
@click.option("--strict", is_flag=True, help="Count warnings as errors")
@document_form
@click.pass_obj
def command(session: Session, *, words: tuple[str, ...], strict: bool, form: Form) -> ExitCode:
    """Check skill folders by the rules of Agent Skills.

    PATH is a skill folder, a SKILL.md, or a folder that holds skills; without one it is the current folder. REV checks
    the skill of a version, or all skills of a commit. Each finding names its rule, the line and what to do. Exits with
    1 if there is an error; warnings leave it at 0.
    """
    from skillgit.app.lint import lint  # noqa: PLC0415 - see the package
    from skillgit.cli.render.lint import linted  # noqa: PLC0415 - see the package

    found = lint(session.context, words)
    if form is Form.JSON:
        counts = {"errors": found.errors, "warnings": found.warnings}
        session.output.document("lint/1", {**counts, "skills": found.skills})
    else:
        session.output.text(linted(found, session.screen))
    return ExitCode.NO if found.errors or (strict and found.warnings) else ExitCode.OK
