"""``skillgit tui``: the screens on a terminal."""

from __future__ import annotations

import gc
from functools import partial

import click

from skillgit.cli.options import complete_revisions, flag, option, skill_option, verb
from skillgit.cli.session import CommandSession, require_terminal


@verb("tui")
@click.argument("run", required=False, default="", metavar="[RUN | A..B]", shell_complete=complete_revisions)
@flag("--ascii ascii_only", "Draw with ASCII signs only")
@option("--mouse/--no-mouse", "Take clicks, or leave them to the terminal", default=True, show_default=True)
@skill_option
@click.pass_obj
def tui_command(session: CommandSession, *, run: str, ascii_only: bool, mouse: bool) -> None:
    """Browse runs and their history on the screen.

    Begins with RUN, else with the default run; A..B compares two versions: text, rules and items. ? lists the keys;
    git config skillgit.tui.keymap.ID changes one, and git config skillgit.tui.theme says dark or light. In a browser,
    skillgit serve shows the same history.
    """
    require_terminal(session, "tui", instead="skillgit log")
    from skillgit.tui.start import reading_ahead  # noqa: PLC0415 - see the package

    unicode = session.screen.unicode and not ascii_only
    opening = None
    if ".." in run:
        from skillgit.app.history.diff.text import diff  # noqa: PLC0415 - slow to import
        from skillgit.app.workspace.revision_range import split_range  # noqa: PLC0415 - as above
        from skillgit.tui.screens.compare import CompareScreen  # noqa: PLC0415 - as above

        a, b = split_range(run) or (run, "")
        result = diff(session.context, a, b or f"{a.rpartition('/')[0]}/head".removeprefix("/"))
        sides = [str(row.address) if row is not None else name for row, name in ((result.a, a), (result.b, b))]
        opening, run = partial(CompareScreen, *sides), ""

    # nothing that is loaded from here on is garbage; skillgit.tui.theme looks for some once the first screen stands
    gc.disable()
    with reading_ahead(session.context, run) as reading:
        from skillgit.tui.app import SkillgitApp  # noqa: PLC0415 - slow to import

        # an error that concerns all screens is told before there are any
        start = None if opening else reading()
    return SkillgitApp(session.context, run, start=start, opening=opening, unicode=unicode).run(mouse=mouse)
