"""The screens on a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfSkill, Opt
from skillgit.app.workspace.revision_range import split_range
from skillgit.errors import UsageError
from skillgit.verbs.verb import Answer, TerminalSession, Verb


@dataclass(frozen=True, kw_only=True)
class TuiRequest(OfSkill):
    """Begins with RUN, else with the default run; A..B compares two versions: text, rules and items. ? lists the keys;
    git config skillgit.tui.keymap.ID changes one, and git config skillgit.tui.theme says dark or light. In a browser,
    skillgit serve shows the same history.
    """

    run: Annotated[str, Arg("[RUN | A..B]", words="revisions")] = ""
    ascii_only: Annotated[bool, Opt("Draw with ASCII signs only", "--ascii")] = False
    mouse: Annotated[bool, Opt("Leave clicks to the terminal", "--no-mouse")] = True


def has_terminal(session: TerminalSession) -> bool:
    return session.screen.terminal and session.notes_screen.terminal


def _tui(session: TerminalSession, request: TuiRequest) -> Answer[object]:
    if not has_terminal(session):
        raise UsageError("tui needs a terminal", hint="skillgit log")
    unicode = session.screen.unicode and not request.ascii_only
    ends = split_range(request.run)
    session.surface("tui").browse_history(
        session.context, "" if ends else request.run, ends, unicode=unicode, mouse=request.mouse
    )
    return Answer()


TUI = Verb("tui", TuiRequest, _tui, forms=())
