"""``skillgit checkout``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.render.items import name
from skillgit.cli.render.words import plural, short
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.checkout import CheckedOut
    from skillgit.cli.session import Session


@verb("checkout")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.argument("paths", nargs=-1, metavar="[-- PATH...]", type=click.Path())
@document_form
@click.pass_obj
def command(session: Session, revision: str, paths: tuple[str, ...], form: Form) -> None:
    """Put a version in the work tree.

    HEAD is detached, as with git; where REV is a branch, like main, it goes to that branch. With PATH only these files
    are written and HEAD stays. Nothing that you changed is overwritten.
    """
    from skillgit.app.checkout import checkout  # noqa: PLC0415 - see the package

    result = checkout(session.context, revision, paths)
    if form is Form.JSON:
        session.output.document("checkout/1", result)
    else:
        session.output.text([_line(result, whole=not paths)])


def _line(result: CheckedOut, *, whole: bool) -> str:
    what = f"{name(result.row)} of {result.row.run}" if result.row else short(result.commit)
    files = f"{plural(len(result.files), 'file')} written"
    if not whole:
        return f"{files} from {what}; see: git diff"
    place = f"is on branch {result.branch}" if result.branch else f"holds {what}"
    back = f"; back: git switch {result.back}" if result.back else ""
    return f"work tree {place}, {files}{back}"
