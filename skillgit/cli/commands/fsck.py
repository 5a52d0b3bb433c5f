"""``skillgit fsck``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import list_forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.columns import pad
from skillgit.cli.render.words import plural, short
from skillgit.cli.screen import Style
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.fsck import Checked
    from skillgit.cli.screen import Screen
    from skillgit.cli.session import Session

COLUMNS = ("run", "commit", "repairable", "sentence")


@verb("fsck")
@run_argument
@click.option("--deep", is_flag=True, help="Compare the index with a fresh one too")
@list_forms
@click.pass_obj
def command(session: Session, run: str | None, *, deep: bool, form: Form) -> ExitCode:
    """Check that history keeps its rules.

    Checks all runs unless you name one. Exits with 1 if there is a problem.
    """
    from skillgit.app.fsck import fsck  # noqa: PLC0415 - see the package

    checked = fsck(session.context, run, deep=deep)
    if form is Form.TEXT:
        session.output.text(_lines(checked, session.screen))
    else:
        head = {"runs": checked.runs, "commits": checked.commits}
        problems = checked.problems
        session.output.listing(form, problems, schema="fsck/1", name="problems", columns=COLUMNS, head=head)
    return ExitCode.NO if checked.problems else ExitCode.OK


def _lines(checked: Checked, screen: Screen) -> Iterator[str]:
    for problem in checked.problems:
        place = f"{screen.paint(Style.OID, short(problem.commit))}  " if problem.commit else ""
        word, style = ("repairable", Style.REVERTED) if problem.repairable else ("broken", Style.REJECTED)
        kind = pad(screen.paint(style, word), len("repairable"))
        yield f"{kind}  {problem.run}  {place}{problem.sentence}"
    found = plural(len(checked.problems), "problem") if checked.problems else "no problems"
    yield f"checked {plural(checked.runs, 'run')}, {plural(checked.commits, 'event')}: {found}"
