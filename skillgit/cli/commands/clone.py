"""``skillgit clone``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("clone")
@click.argument("url")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--evidence", is_flag=True, help="Bring evidence too")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress")
@document_form
@click.pass_obj
def command(session: Session, url: str, directory: Path | None, *, evidence: bool, quiet: bool, form: Form) -> None:
    """Copy a repository with its runs, notes and rejected candidates.

    It is copied into DIR, which is called as the repository is unless you say. Its runs can be looked at, continued and
    forked; the commands and files that their configurations name are never used.
    """
    from skillgit.app.clone import clone  # noqa: PLC0415 - see the package
    from skillgit.cli.connection import listener  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exchange import cloned  # noqa: PLC0415 - see the package

    result = clone(session.context, url, directory, evidence=evidence, listener=listener(session, quiet=quiet))
    if form is Form.JSON:
        session.output.document("clone/1", result)
    else:
        session.output.text(cloned(result, session.screen))
