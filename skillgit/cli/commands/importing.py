"""``skillgit import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("import")
@click.argument("outputs", metavar="OUTPUTS", type=click.Path(path_type=Path))
@click.option("--run", metavar="NAME", help="What to call the run; by default, environment and date")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@document_form
@click.pass_obj
def command(session: Session, *, outputs: Path, run: str | None, dry_run: bool, form: Form) -> None:
    """Turn the output directory of a SkillOpt run into a run.

    OUTPUTS holds config.json, history.json and skills/. Its steps become versions and rejected candidates, its slow
    updates merges, and its results evidence; times are those of its files. What it does not say stays absent, and what
    it says in two ways is told. A directory that was imported before only brings what is new in it.
    """
    from skillgit.app.importing.outputs import import_outputs  # noqa: PLC0415 - see the package
    from skillgit.cli.render.imported import lines  # noqa: PLC0415 - see the package

    result = import_outputs(session.context, outputs, run, dry_run=dry_run)
    if form is Form.JSON:
        session.output.document("import/1", result)
        return
    session.output.text(lines(result, session.screen))
    for sentence in result.remarks:
        session.diagnostics.note(sentence)
