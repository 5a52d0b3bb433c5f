"""How the screens begin: what the first picture shows is read while they are loaded.

Loading the widgets of a screen takes longer than reading what they show, and both take a processor each where there are
two. This module loads neither before.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from skillgit.app.workspace.command_journal import CommandRecord
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.forks import made_ahead
from skillgit.lazy import loaded_on_use
from skillgit.tui.first_picture import StartPicture, read_start
from skillgit.verbs.diff import TEXT_DIFF, DiffRequest

with loaded_on_use():
    from skillgit.app.workspace import live as trainings
    from skillgit.tui import app
    from skillgit.tui.screens import compare, drafts, live


@contextmanager
def reading_ahead(context: Context, run: str) -> Iterator[Callable[[], StartPicture]]:
    """Begin to read the first picture, in another process if one can be forked, and yield what waits for it."""
    with made_ahead([partial(read_start, context, run)], 1) as (wait,):
        yield wait


def browse_history(context: Context, run: str, ends: tuple[str, str] | None, *, unicode: bool, mouse: bool) -> None:
    """Show the screens until the user leaves them: the history of ``run``, or the versions ``ends`` side by side."""
    if ends is not None:
        a, b = ends
        request = DiffRequest(a=a, b=b or f"{a.rpartition('/')[0]}/head".removeprefix("/"))
        with Workspace(context, still=True) as workspace:
            diff = TEXT_DIFF.ask(workspace, request)
        sides = [str(row.address) if row is not None else name for row, name in ((diff.a, a), (diff.b, b))]
        app.SkillgitApp(context, opening=partial(compare.CompareScreen, *sides), unicode=unicode).run(mouse=mouse)
        return
    # nothing that is loaded from here on is garbage; skillgit.tui.theme looks for some once the first screen is painted
    gc.disable()
    with reading_ahead(context, run) as reading:
        screens = app.SkillgitApp
        # an error that concerns all screens is shown before there are any
        start = reading()
    screens(context, run, start=start, unicode=unicode).run(mouse=mouse)


def review_drafts(context: Context, skill: str, into: Path | None, *, unicode: bool) -> None:
    """Show the drafts of ``skill`` until the user leaves them."""
    opening = partial(drafts.DraftsScreen, skill, into, is_alone=True)
    app.SkillgitApp(context, opening=opening, unicode=unicode).run()


def watch(context: Context, trainer: CommandRecord, *, unicode: bool) -> str:
    """Show the run of ``trainer`` until the user closes the screen, and return the run; empty before it has one."""
    screen: list[live.LiveScreen] = []

    def opening() -> live.LiveScreen:
        screen.append(live.LiveScreen(trainer=trainer))
        return screen[0]

    app.SkillgitApp(context, opening=opening, unicode=unicode).run()
    if screen and screen[0].look is not None and screen[0].look.standing is trainings.Standing.ENDED:
        trainer.wait()
    return screen[0].run_name if screen else ""
