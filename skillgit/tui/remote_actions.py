"""Pushing and pulling: which remote, then skillgit's own command, shown before it runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.exchange.remote import RemoteRow
    from skillgit.tui.app import SkillgitApp

Exchange = Literal["push", "pull"]
_TITLES: Mapping[Exchange, str] = {"push": "Push to", "pull": "Pull from"}


def exchange(app: SkillgitApp, verb: Exchange) -> None:
    """Ask for the remote if there are several, and push to it or pull from it."""
    from skillgit.app.exchange.remote import remotes  # noqa: PLC0415 - few sessions push or pull

    app.read(remotes, then=partial(_choose, app, verb), group="remotes")


def _choose(app: SkillgitApp, verb: Exchange, found: tuple[RemoteRow, ...]) -> None:
    from skillgit.tui.screens.copy import ChoiceScreen, numbered  # noqa: PLC0415 - few have several remotes

    if not found:
        app.notify("there are no remotes yet\nhint: skillgit remote add origin URL", severity="warning")
    elif len(found) == 1:
        _run(app, verb, found[0].name)
    else:
        choices = numbered(verb, [f"{row.name}  {row.url}" for row in found])
        app.push_screen(ChoiceScreen(_TITLES[verb], choices), partial(_run, app, verb))


def _run(app: SkillgitApp, verb: Exchange, chosen: str | None) -> None:
    if chosen:
        app.command([verb, chosen.split()[0]], look=True)
