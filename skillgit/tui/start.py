"""How the screens begin: what the first picture shows is read while they are loaded.

Loading the widgets of a screen takes longer than reading what they show, and both take a processor each where there are
two. This module loads neither before.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace, change_stamp, git_settings
from skillgit.forks import made_ahead
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.rows import RunRow
from skillgit.lazy import loaded_on_use
from skillgit.tui.keymap import KEYS
from skillgit.verbs import browse
from skillgit.verbs.browse import EventPage, Overview
from skillgit.verbs.diff import TEXT_DIFF, DiffRequest

with loaded_on_use():
    from skillgit.tui import app
    from skillgit.tui.screens import compare

PAGE: Final = 200
"""Events that are read at once."""
STEPS: Final = 400
"""Steps that the plot shows at most, evenly apart: it has no more columns on any screen."""
THEME: Final = "skillgit.tui.theme"
"""The key of git's configuration that says dark or light."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPicture:
    """What the first picture shows; without runs there is no page."""

    standing: str
    settings: Mapping[str, str]
    overview: Overview
    page: EventPage | None
    scores: tuple[tuple[Point, ...], int]


def setting_names() -> list[str]:
    return [THEME, *(key.setting for key in KEYS)]


def named(runs: Sequence[RunRow], name: str) -> str:
    """Return the run that is called ``name``, or the only one whose name begins so; empty if there is none."""
    near = [run.name for run in runs if name and run.name.startswith(name)]
    return name if name in near else near[0] if len(near) == 1 else ""


def read_start(context: Context, run: str) -> StartPicture:
    """Read what the first picture shows; ``run`` is the run to begin with, empty for the default run."""
    before = change_stamp(context)
    with Workspace(context, still=True) as workspace:
        overview = browse.overview(workspace)
        first = named(overview.runs, run) or overview.run
        return StartPicture(
            standing=before,
            settings=git_settings(context, setting_names()),
            overview=overview,
            page=browse.page(workspace, Selection(run=first), 0, PAGE) if overview.runs else None,
            scores=browse.score_line(workspace, first, STEPS) if overview.runs else ((), 1),
        )


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
