"""``skillgit note``: what a person says about a version, for the steps that come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.credentials.detector import Certainty
from skillgit.domain.proposal import Feedback
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.index.version_queries import feedback_lines
from skillgit.plugin.redaction import redact
from skillgit.store import notes

MOST_CHARACTERS = 4000
"""How long a note may be; the prompts of steps have room for as much in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A note of a person on an event."""

    id: str
    row: LogRow
    text: str
    author: str
    time: datetime

    @classmethod
    def of(cls, row: LogRow, feedback: Feedback) -> Noted:
        return cls(id=feedback.id, row=row, text=feedback.text, author=feedback.author, time=feedback.time)


def note(context: Context, revision: str, text: str) -> Noted:
    """Write what a person says about an event; what looks like a credential is masked, for notes are pushed."""
    words = redact(storable(text), Certainty.LIKELY).strip()
    if not words:
        raise UsageError("a note without a text says nothing", hint="skillgit note REV 'TEXT'")
    if len(words) > MOST_CHARACTERS:
        raise UsageError(
            f"the note has {len(words)} characters, and {MOST_CHARACTERS} are allowed", hint="say the most important"
        )
    with Workspace(context) as workspace:
        row = event_in(workspace, revision)
        feedback = Feedback(
            commit=row.commit,
            text=words,
            author=workspace.repo.identity().name,
            time=context.clock().replace(microsecond=0),
        )
        notes.give(workspace.repo, feedback)
        workspace.index.refresh()
        return Noted.of(row, feedback)


def remove_note(context: Context, name: str) -> Noted:
    """Withdraw the note whose id is ``name``, or alone begins so, and return it."""
    with Workspace(context) as workspace:
        matching = [entry for entry in _every(workspace) if name and entry.id.startswith(name)]
        if len(matching) != 1:
            many = f"{len(matching)} notes have ids that begin with '{name}'"
            raise NotFoundError(many if matching else f"there is no note '{name}'", hint="skillgit note --list")
        entry = matching[0]
        feedback = Feedback(commit=entry.row.commit, text=entry.text, author=entry.author, time=entry.time)
        notes.withdraw(workspace.repo, feedback, time=context.clock())
        workspace.index.refresh()
        return entry


def list_notes(workspace: Workspace, name: str | None) -> tuple[Noted, ...]:
    """Return the notes on a run, by default the default run, or on one event, oldest first."""
    if name is None or name in queries.run_names(workspace.index):
        run = find_run(workspace, name)
        return tuple(entry for entry in _every(workspace) if entry.row.run == run)
    commit = event_in(workspace, name).commit
    return tuple(entry for entry in _every(workspace) if entry.row.commit == commit)


def _every(workspace: Workspace) -> list[Noted]:
    feedbacks = notes.feedback_in(feedback_lines(workspace.index))
    commits = [feedback.commit for feedback in feedbacks]
    rows = {row.commit: row for row in queries.rows_of_commits(workspace.index, commits)}
    return [Noted.of(rows[feedback.commit], feedback) for feedback in feedbacks if feedback.commit in rows]
