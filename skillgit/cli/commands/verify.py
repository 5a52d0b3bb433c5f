"""``skillgit verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.measuring_options import (
    config_option,
    note_option,
    quiet_option,
    show_plan,
    spending_options,
    split_option,
)
from skillgit.cli.options import complete_revisions, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render.verify import lines
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps


@verb("verify")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option(
    "--sample", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many items to draw"
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="S",
    help="Decides which items are drawn",
)
@split_option(("selection", "test"), "Which items to draw from")
@config_option
@override_option
@note_option("the commit")
@spending_options()
@quiet_option
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    revision: str,
    sample: int,
    seed: int,
    split: str,
    config: str | None,
    overrides: tuple[str, ...],
    note: bool,
    caps: Caps,
    dry_run: bool,
    quiet: bool,
    form: Form,
) -> ExitCode:
    """Measure a version again and say whether its recorded score holds.

    A sample of the items is drawn and measured afresh, and compared item by item with what was recorded. The answer is
    consistent, lower, higher or not comparable; the last if items, environment or target are not those of the run, and
    then nothing is spent. Exits with 1 unless it is consistent.
    """
    from skillgit.app.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.app.verify import VerifyRequest, verify  # noqa: PLC0415 - see the package
    from skillgit.cli.eval_watchers import watching  # noqa: PLC0415 - see the package

    request = VerifyRequest(
        revision=revision,
        sample=sample,
        seed=seed,
        split=split,
        config=config,
        overrides=overrides,
        note=note,
        caps=caps,
        dry_run=dry_run,
    )

    with watching(session, quiet=quiet or dry_run) as watcher:
        result = verify(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("verify/2", result)
    else:
        session.output.text(lines(result, session.screen))
    return ExitCode.OK if result.verdict.word == "consistent" else ExitCode.NO
