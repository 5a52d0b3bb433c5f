"""What the first picture of the screens shows; it is read before any widget is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace, change_stamp, git_settings
from skillgit.index.event_pages import Point
from skillgit.index.log_filter import Selection
from skillgit.index.rows import RunRow
from skillgit.tui.keymap import KEYS
from skillgit.verbs import browse
from skillgit.verbs.browse import EventPage, Overview

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
