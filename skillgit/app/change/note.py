"""``skillgit note``: what a person says about a version, for the steps that come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.place.revision import event_in, find_run
from skillgit.app.place.workspace import Workspace, open_workspace
from skillgit.domain.feedback import Feedback
from skillgit.domain.untrusted.text import storable
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import queries
from skillgit.index.known import feedback_lines
from skillgit.plugin.redaction import redact
from skillgit.store import notes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.place.context import Context
    from skillgit.index.rows import LogRow

MOST_CHARACTERS = 4000
"""How long a note may be; steps are told about so much in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A note of a person on an event.

    Attributes:
        id: What it is called.
        row: The event.
        text: What it says.
        author: Who wrote it.
        time: When.
    """

    id: str
    row: LogRow
    text: str
    author: str
    time: datetime


def note(context: Context, revision: str, text: str) -> Noted:
    """Write what a person says about an event; credentials in it are masked.

    Raises:
        ConcurrentWriteError: Others kept writing notes at the same time.
        RevisionNotFoundError: The revision names nothing, or no event of a run.
        UsageError: The text is empty or too long.
    """
    said = redact(storable(text)).strip()
    if not said:
        raise UsageError("a note without a text says nothing", hint="skillgit note REV 'TEXT'")
    if len(said) > MOST_CHARACTERS:
        raise UsageError(
            f"the note has {len(said)} characters, and {MOST_CHARACTERS} are allowed", hint="say the most important"
        )
    with open_workspace(context) as workspace:
        row = event_in(workspace, revision)
        given = Feedback(
            commit=row.commit,
            text=said,
            author=workspace.repo.identity().name,
            time=context.clock().replace(microsecond=0),
        )
        notes.give(workspace.repo, given)
        workspace.index.refresh()
        return _noted(row, given)


def remove_note(context: Context, name: str) -> Noted:
    """Withdraw the note whose id is ``name``, or alone begins so, and return it.

    Raises:
        ConcurrentWriteError: Others kept writing notes at the same time.
        NotFoundError: There is no such note, or there are several.
    """
    with open_workspace(context) as workspace:
        found = [one for one in _every(workspace) if name and one.id.startswith(name)]
        if len(found) != 1:
            said = f"{len(found)} notes have ids that begin with '{name}'" if found else f"there is no note '{name}'"
            raise NotFoundError(said, hint="skillgit note --list")
        one = found[0]
        given = Feedback(commit=one.row.commit, text=one.text, author=one.author, time=one.time)
        notes.withdraw(workspace.repo, given, time=context.clock())
        workspace.index.refresh()
        return one


def list_notes(context: Context, name: str | None) -> tuple[Noted, ...]:
    """Return the notes on a run, or on one event, oldest first.

    Args:
        context: Where to look.
        name: A run or a revision; None for the default run.

    Raises:
        RevisionNotFoundError: It names nothing, or no event of a run.
    """
    with open_workspace(context) as workspace:
        if name is None or name in queries.run_names(workspace.index):
            run = find_run(workspace, name)
            return tuple(one for one in _every(workspace) if one.row.run == run)
        commit = event_in(workspace, name).commit
        return tuple(one for one in _every(workspace) if one.row.commit == commit)


def _every(workspace: Workspace) -> Iterator[Noted]:
    """Yield the notes on all events, oldest first."""
    given = notes.feedback_in(feedback_lines(workspace.index))
    rows = {row.commit: row for row in queries.rows_of_commits(workspace.index, [one.commit for one in given])}
    for one in given:
        if one.commit in rows:
            yield _noted(rows[one.commit], one)


def _noted(row: LogRow, given: Feedback) -> Noted:
    return Noted(id=given.id, row=row, text=given.text, author=given.author, time=given.time)
