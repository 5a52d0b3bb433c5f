"""``skillgit eval``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.eval_watchers import watching
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
from skillgit.cli.render.eval import lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps

SPLITS = ("train", "selection", "test", "all")


@verb("eval")
@click.argument("revisions", metavar="REV...", nargs=-1, required=True, shell_complete=complete_revisions)
@config_option
@override_option
@split_option(SPLITS)
@click.option(
    "--against",
    multiple=True,
    metavar="REV,...",
    shell_complete=complete_revisions,
    help="Compare with these versions, item by item; none is no skill",
)
@note_option()
@spending_options()
@quiet_option
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    revisions: tuple[str, ...],
    config: str | None,
    overrides: tuple[str, ...],
    split: str,
    against: tuple[str, ...],
    note: bool,
    caps: Caps,
    dry_run: bool,
    quiet: bool,
    form: Form,
) -> int:
    """Measure versions side by side and note the scores on their commits.

    They are measured as the run of the first one was: same items, same model, same seed. What was measured before costs
    nothing. Exits with 5 if too few items could be evaluated.

    The test split is for the end. Each evaluation on it is counted, and show tells how many a version has had.
    """
    from skillgit.app.eval import EvalRequest, evaluate  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above

    request = EvalRequest(
        revisions=revisions,
        against=tuple(name for names in against for name in names.split(",") if name),
        config=config,
        overrides=overrides,
        split=split,
        note=note,
        caps=caps,
        dry_run=dry_run,
    )
    with watching(session, quiet=quiet or dry_run) as watcher:
        result = evaluate(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("eval/1", result)
    else:
        session.output.text(lines(result, session.screen))
    return int(result.exit_code)
