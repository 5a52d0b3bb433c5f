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

    from skillgit.app.fsck import Checked, Problem
    from skillgit.cli.screen import Screen
    from skillgit.cli.session import Session

COLUMNS = ("run", "commit", "repairable", "sentence", "remark")
_WIDTH = len("repairable")


@verb("fsck")
@run_argument
@click.option("--deep", is_flag=True, help="Ask every gate again, and compare the index with a fresh one")
@click.option("--repair", is_flag=True, help="Mend what follows from the rest of the history, and say what")
@list_forms
@click.pass_obj
def command(session: Session, run: str | None, *, deep: bool, repair: bool, form: Form) -> ExitCode:
    """Check that history keeps its rules.

    Checks all runs unless you name one. Exits with 1 if there is a problem, after --repair if one is left; a remark is
    none. What can be mended are tags and best branches, the ref that keeps evidence, the index, damaged objects, which
    are set aside, lock files of dead processes, and the end of a run that lacks objects: it steps back to its last
    whole event.
    """
    from skillgit.app.fsck import fsck  # noqa: PLC0415 - see the package

    checked = fsck(session.context, run, deep=deep, repair=repair)
    if form is Form.TEXT:
        session.output.text(_lines(checked, session.screen))
        if any(problem.repairable for problem in checked.problems):
            if repair:
                session.diagnostics.note("what can be repaired in a run waits until nothing in it is broken")
            else:
                session.diagnostics.hint("skillgit fsck --repair")
    else:
        head = {"runs": checked.runs, "commits": checked.commits, "mended": checked.mended}
        problems = checked.problems
        session.output.listing(form, problems, schema="fsck/1", name="problems", columns=COLUMNS, head=head)
    return ExitCode.OK if checked.sound else ExitCode.NO


def _lines(checked: Checked, screen: Screen) -> Iterator[str]:
    for told in checked.mended:
        yield f"{pad(screen.paint(Style.ACCEPTED, 'mended'), _WIDTH)}  {told}"
    for problem in checked.problems:
        place = f"{screen.paint(Style.OID, short(problem.commit))}  " if problem.commit else ""
        word, style = _severity(problem)
        run = f"{problem.run}  " if problem.run else ""
        yield f"{pad(screen.paint(style, word), _WIDTH)}  {run}{place}{problem.sentence}"
    remarks = sum(problem.remark for problem in checked.problems)
    count = "no problems" if checked.sound else plural(len(checked.problems) - remarks, "problem")
    also = f", {plural(remarks, 'remark')}" if remarks else ""
    yield f"checked {plural(checked.runs, 'run')}, {plural(checked.commits, 'event')}: {count}{also}"


def _severity(problem: Problem) -> tuple[str, Style]:
    if problem.remark:
        return "remark", Style.SKIPPED
    return ("repairable", Style.REVERTED) if problem.repairable else ("broken", Style.REJECTED)
