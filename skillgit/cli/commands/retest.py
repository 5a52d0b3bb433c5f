"""``skillgit retest``."""

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
from skillgit.cli.render.retest import lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.retest import Retested
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps


@verb("retest")
@click.argument("revisions", metavar="REV...", nargs=-1, required=True, shell_complete=complete_revisions)
@click.option("--model", metavar="M", help="The target, as BACKEND/MODEL or as a model of the run's backend")
@split_option(("train", "selection", "test"))
@config_option
@override_option
@note_option()
@spending_options()
@quiet_option
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    revisions: tuple[str, ...],
    model: str | None,
    split: str,
    config: str | None,
    overrides: tuple[str, ...],
    note: bool,
    caps: Caps,
    dry_run: bool,
    quiet: bool,
    form: Form,
) -> int:
    """Measure old versions under another target model.

    Without --model it is the run's own model at a later date: every item is drawn afresh, so that drift and noise show.
    Each version is paired with what its run recorded, and a note on its commit keeps the outcomes. Under another model,
    items that score higher or lower are counted and nothing is tested.

    What it costs at most is told first. Exits with 5 if too few items could be evaluated.
    """
    from skillgit.app.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.app.retest import RetestRequest, retest  # noqa: PLC0415 - see the package
    from skillgit.cli.eval_watchers import watching  # noqa: PLC0415 - see the package

    request = RetestRequest(
        revisions=revisions,
        model=model,
        split=split,
        config=config,
        overrides=overrides,
        note=note,
        caps=caps,
        dry_run=dry_run,
    )

    with watching(session, quiet=quiet or dry_run) as watcher:
        result = retest(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    _report(session, result, form)
    return int(result.exit_code)


def _report(session: Session, result: Retested, form: Form) -> None:
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("retest/2", result)
    else:
        session.output.text(lines(result, session.screen))
