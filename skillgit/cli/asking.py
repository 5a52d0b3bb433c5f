"""Questions before something is replaced: on a terminal a person answers, on a pipe only an option does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillgit.cli.render import text_diff
from skillgit.cli.render.inert import inert, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.app.folders.changes import Change
    from skillgit.cli.session import Session


def may_replace(session: Session, *, yes: bool) -> Callable[[Path, tuple[Change, ...]], bool]:
    """Return what shows the differences on stderr and says whether they may be made.

    Args:
        session: The invocation.
        yes: Whether the user has said so already.
    """

    def agreed(place: Path, changes: tuple[Change, ...]) -> bool:
        screen = session.diagnostics.screen
        for change in changes:
            text = inert(change.diff)
            for line in text_diff.coloured(text, screen) if screen.colour else text_diff.plain(text):
                session.diagnostics.note(line)
        if yes or not sys.stdin.isatty():
            return yes
        return click.confirm(f"{one_line(str(place))} was changed by hand. Replace it?", default=False, err=True)

    return agreed
