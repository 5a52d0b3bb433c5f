"""``skillgit cat``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, complete_revisions
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("cat")
@click.argument("name", metavar="REV[:PATH]", shell_complete=complete_revisions)
@as_of_option
@click.pass_obj
def command(session: Session, name: str) -> None:
    """Print a file of a version, byte for byte.

    PATH lies in the skill folder and is SKILL.md if you leave it out; a path of the repository will do as well.
    """
    from skillgit.app.cat import cat  # noqa: PLC0415 - see the package

    session.output.raw(cat(session.context, name))
