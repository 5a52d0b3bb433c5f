"""``skillgit note``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, list_forms
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session

COLUMNS = ("id", "name", "commit", "author", "time", "text")
_FROM_STDIN = "-"


@verb("note")
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_revisions)
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--list", "listing", is_flag=True, help="List the notes on REV, or on a run")
@click.option("--remove", metavar="ID", help="Withdraw the note called ID")
@list_forms
@click.pass_obj
def command(
    session: Session, *, revision: str | None, text: str | None, listing: bool, remove: str | None, form: Form
) -> None:
    """Say something about a version, for the steps that come.

    The steps that begin after it read the note as advice, and so do forks of the version. It moves no score and no
    gate, and no target model sees it. TEXT may be - for what stands on stdin; without it a terminal opens your editor.
    """
    context = click.get_current_context()
    if listing + (remove is not None) + (revision is not None and not listing) != 1 or (text and listing):
        raise click.UsageError("give either REV and TEXT, --list or --remove ID", context)
    if form not in {Form.TEXT, Form.JSON} and not listing:
        raise click.UsageError(f"--{form.value} goes with --list", context)
    if listing:
        _list(session, revision, form)
    elif remove is not None:
        _remove(session, remove, form)
    elif revision is not None:
        _note(session, revision, _written(context) if text is None else text, form)


def _note(session: Session, revision: str, text: str, form: Form) -> None:
    from skillgit.app.note import note  # noqa: PLC0415 - see the package
    from skillgit.cli.render.notes import masked, noted  # noqa: PLC0415 - see the package

    said = sys.stdin.read() if text == _FROM_STDIN else text
    result = note(session.context, revision, said)
    if masked(result, said):
        session.diagnostics.note("something in it looked like a credential and was masked")
    if form is Form.JSON:
        session.output.document("note/1", result)
    else:
        session.output.text(noted(result))


def _remove(session: Session, name: str, form: Form) -> None:
    from skillgit.app.note import remove_note  # noqa: PLC0415 - see the package
    from skillgit.cli.render.notes import removed  # noqa: PLC0415 - see the package

    result = remove_note(session.context, name)
    if form is Form.JSON:
        session.output.document("note/1", result)
    else:
        session.output.text(removed(result))


def _list(session: Session, name: str | None, form: Form) -> None:
    from skillgit.app.note import list_notes  # noqa: PLC0415 - see the package
    from skillgit.cli.render.notes import listed, rows  # noqa: PLC0415 - see the package

    notes = list_notes(session.context, name)
    if form is Form.TEXT:
        session.output.text(listed(notes, session.screen, session.now))
    elif form in {Form.JSON, Form.JSONL}:
        session.output.listing(form, notes, schema="notes/1", name="notes", columns=())
    else:
        session.output.listing(form, rows(notes), schema="notes/1", name="notes", columns=COLUMNS)


def _written(context: click.Context) -> str:
    """Return what the user writes in an editor.

    Raises:
        click.UsageError: There is no terminal.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("give TEXT, or - to read it from stdin", context)
    return click.edit("", extension=".md") or ""
