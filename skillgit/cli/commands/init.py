"""``skillgit init``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_environments, document_form
from skillgit.cli.output import Form
from skillgit.cli.render.words import short
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.init import Initialised
    from skillgit.cli.screen import Screen
    from skillgit.cli.session import Session


@verb("init")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option(
    "--skill",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Take the seed from a skill folder, a SKILL.md or a Markdown file",
)
@click.option(
    "--env",
    "environment",
    metavar="NAME",
    shell_complete=complete_environments,
    help="Take the seed that environment NAME brings",
)
@document_form
@click.pass_obj
def command(session: Session, directory: Path | None, skill: Path | None, environment: str | None, form: Form) -> None:
    """Create a repository for skills, or prepare an existing one.

    The seed skill stands on branch main. Files of your own are left alone.
    """
    from skillgit.app.init import init  # noqa: PLC0415 - see the package

    result = init(session.context, directory, skill, environment=environment)
    if form is Form.JSON:
        session.output.document("init/1", result)
    else:
        session.output.text(_lines(result, session.screen))


def _lines(result: Initialised, screen: Screen) -> Iterator[str]:
    made = "created" if result.created else "prepared"
    seed = "seed" if result.added else "skill there before"
    yield f"{made} {result.path}, {seed} {result.skill_path} on main {screen.glyphs.dot} {short(result.commit)}"
    yield "next: skillgit train CONFIG"
