"""``skillgit tui``: the screens on a terminal."""

from __future__ import annotations

import gc

import click

from skillgit.cli.options import complete_runs, flag, option, skill_option, verb
from skillgit.cli.session import CommandSession, require_terminal


@verb("tui")
@click.argument("run", required=False, default="", shell_complete=complete_runs)
@flag("--ascii ascii_only", "Draw with ASCII signs only")
@option("--mouse/--no-mouse", "Take clicks, or leave them to the terminal", default=True, show_default=True)
@skill_option
@click.pass_obj
def tui_command(session: CommandSession, *, run: str, ascii_only: bool, mouse: bool) -> None:
    """Browse runs and their history on the screen.

    Begins with RUN, else with the default run. ? lists the keys; git config skillgit.tui.keymap.ID changes one, and
    git config skillgit.tui.theme says dark or light. In a browser, skillgit serve shows the same history.
    """
    require_terminal(session, "tui", instead="skillgit log")
    from skillgit.tui.start import reading_ahead  # noqa: PLC0415 - see the package

    # nothing that is loaded from here on is garbage; skillgit.tui.theme looks for some once the first screen stands
    gc.disable()
    with reading_ahead(session.context, run) as reading:
        from skillgit.tui.app import SkillgitApp  # noqa: PLC0415 - slow to import

        # an error that concerns all screens is told before there are any
        start = reading()
    unicode = session.screen.unicode and not ascii_only
    return SkillgitApp(session.context, run, start=start, unicode=unicode).run(mouse=mouse)
