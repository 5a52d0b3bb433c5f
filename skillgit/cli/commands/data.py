"""``skillgit data`` and what it does: ``check`` and ``fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_configs, complete_environments, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render import data as render
from skillgit.cli.verb import Verb, verbs

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verbs("data")
def command() -> None:
    """Check the items of CONFIG, or fetch public ones."""


@command.command(cls=Verb, name="check", short_help="Load every item of CONFIG and look for what spoils a measurement")
@click.argument("config", shell_complete=complete_configs)
@override_option
@document_form
@click.pass_obj
def check_command(session: Session, config: str, overrides: tuple[str, ...], form: Form) -> int:
    """Load every item of CONFIG and look for what spoils a measurement.

    It tells all faults of the files and not the first one only, ids and contents that repeat, items that are almost the
    same, answers of selection and test items in the seed skill or beside train items, and the gain that a split of such
    a size can show. No model is asked. Exits with 1 if there is a fault; warnings leave it at 0.
    """
    from skillgit.app.data.check import check_data  # noqa: PLC0415 - see the package

    found = check_data(session.context, config, overrides)
    if form is Form.JSON:
        session.output.document("data-check/1", found)
    else:
        session.output.text(render.checked(found, session.screen))
    return int(found.exit_code)


@command.command(cls=Verb, name="fetch", short_help="Write the public data of environment NAME to a folder")
@click.argument("name", shell_complete=complete_environments)
@click.option("--to", metavar="DIR", type=click.Path(path_type=Path), help="The new folder; data/NAME if not given")
@click.option("--revision", metavar="REV", help="Take another commit of the public data than the pinned one")
@click.option(
    "--ids",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Take only the items of this manifest, divided as it says",
)
@document_form
@click.pass_obj
def fetch_command(
    session: Session, /, *, name: str, to: Path | None, revision: str | None, ids: Path | None, form: Form
) -> None:
    """Write the public data of environment NAME to a folder.

    The rows are those of a pinned commit, so that everybody gets the same ones; SOURCE.md in the folder names it. It
    needs a network and the extra 'data' of skillgit. Where data cannot be fetched, it says what to place where. Exits
    with 2 without the extra, with 3 if the data are not on a hub, and with 5 if the hub cannot be reached.
    """
    from skillgit.app.data.fetch import fetch  # noqa: PLC0415 - see the package

    found = fetch(session.context, name, to=to, revision=revision, ids=ids, remark=session.diagnostics.note)
    if form is Form.JSON:
        session.output.document("data-fetch/1", found)
    else:
        session.output.text(render.fetched(found, session.screen))
