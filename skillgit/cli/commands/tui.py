"""``skillgit tui``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_runs
from skillgit.cli.terminal import require_terminal
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("tui")
@click.argument("run", required=False, default="", shell_complete=complete_runs)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII signs only")
@click.option("--mouse/--no-mouse", default=True, show_default=True, help="Take clicks, or leave them to the terminal")
@click.pass_obj
def command(session: Session, *, run: str, ascii_only: bool, mouse: bool) -> None:
    """Browse runs and their history on the screen.

    Begins with RUN, else with the default run. ? lists the keys; git config skillgit.tui.keymap.ID changes one, and
    git config skillgit.tui.theme says dark or light.
    """
    require_terminal(session, "tui", instead="skillgit log")
    from skillgit.app.runs import runs  # noqa: PLC0415 - see the package
    from skillgit.tui.app import SkillgitApp  # noqa: PLC0415 - slow to import

    # an error that concerns all screens is told before there are any
    runs(session.context)
    SkillgitApp(session.context, run, unicode=session.screen.unicode and not ascii_only).run(mouse=mouse)
