"""Commands around a training run: train, note, fork."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    complete_revisions,
    document_form,
    flag,
    list_forms,
    option,
    skill_option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.view.lists import LISTS

if TYPE_CHECKING:
    pass


@verb("note")
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_revisions)
@click.argument("text", metavar="[TEXT]", required=False)
@option("-m --message", "The text; REV is then head unless you name one", metavar="TEXT")
@flag("--list listing", "List the notes on REV, or on a run")
@option("--remove", "Withdraw the note called ID", metavar="ID")
@skill_option
@list_forms
@click.pass_obj
def note_command(
    session: CommandSession,
    *,
    revision: str | None,
    text: str | None,
    message: str | None,
    listing: bool,
    remove: str | None,
) -> None:
    """Say something about a version, for the steps that come.

    The steps that begin after it read the note as advice, and so do forks of the version. It moves no score and no
    gate, and no target model sees it. TEXT may be - for what stands on stdin; without it a terminal opens your editor.
    """
    context = click.get_current_context()
    if message is not None:
        if text is not None:
            raise click.UsageError("give the text once, as TEXT or with -m", context)
        revision, text = revision or "head", message
    if listing + (remove is not None) + (revision is not None and not listing) != 1 or (text and listing):
        raise click.UsageError("give either REV and TEXT, --list or --remove ID", context)
    session.refuse_rows(listing=listing)
    from skillgit.app.interventions import note  # noqa: PLC0415 - see the package
    from skillgit.view import show  # noqa: PLC0415 - see the package

    if listing:
        notes = note.list_notes(session.context, revision)
        lines = show.listed(notes, session.screen, session.now)
        session.listing(LISTS["note --list"], show.rows(notes) if session.tabular else notes, lines)
    elif remove is not None:
        result = note.remove_note(session.context, remove)
        session.show("note/1", result, show.removed(result))
    elif revision is not None:
        message = _written(context) if text is None else sys.stdin.read() if text == "-" else text
        result = note.note(session.context, revision, message)
        if result.text != message.strip():
            session.diagnostics.note("something in it looked like a credential and was masked")
        session.show("note/1", result, show.noted(result))


def _written(context: click.Context) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError("give TEXT, or - to read it from stdin", context)
    return click.edit("", extension=".md") or ""


@verb("fork")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.argument("name", metavar="[NAME]", required=False)
@flag("-n --dry-run", "Say what would be done, and do nothing")
@skill_option
@document_form
@click.pass_obj
def fork_command(session: CommandSession, *, revision: str, name: str | None, dry_run: bool) -> None:
    """Start a run of its own at a version of another one.

    The fork has the text and the score of REV and the configuration of its run. Training goes on in it with the same
    CONFIG. Without NAME it is called after the run, with -fork behind it.
    """
    from skillgit.app.interventions.fork import fork  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import forked  # noqa: PLC0415 - see the package

    result = fork(session.context, revision, name, dry_run=dry_run)
    session.show("fork/1", result, forked(result, session.screen))
