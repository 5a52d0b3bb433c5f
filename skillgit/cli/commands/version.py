"""``skillgit version``."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import click

from skillgit import __version__
from skillgit.cli.options import document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("version")
@document_form
@click.pass_obj
def command(session: Session, form: Form) -> None:
    """Print the version of skillgit."""
    if form is Form.JSON:
        session.output.document("version/1", {"version": __version__, "python": platform.python_version()})
    else:
        session.output.text([f"skillgit {__version__} (Python {platform.python_version()})"])
