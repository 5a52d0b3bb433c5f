"""``skillgit eval``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.eval_watchers import watching
from skillgit.cli.measuring_options import (
    config_option,
    max_calls_option,
    max_tokens_option,
    max_usd_option,
    note_option,
    quiet_option,
    split_option,
)
from skillgit.cli.options import complete_revisions, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render.eval import lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session

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
@max_calls_option
@max_tokens_option
@max_usd_option
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
    max_calls: int | None,
    max_tokens: int | None,
    max_usd: float | None,
    quiet: bool,
    form: Form,
) -> int:
    """Measure versions side by side and note the scores on their commits.

    They are measured as the run of the first one was: same items, same model, same seed. What was measured before costs
    nothing. Exits with 5 if too few items could be evaluated.

    The test split is for the end. Each evaluation on it is counted, and show tells how many a version has had.
    """
    from skillgit.app.eval import EvalRequest, evaluate  # noqa: PLC0415 - see the package

    request = EvalRequest(
        revisions=revisions,
        against=tuple(name for names in against for name in names.split(",") if name),
        config=config,
        overrides=overrides,
        split=split,
        note=note,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_usd=max_usd,
    )
    with watching(session, quiet=quiet) as watcher:
        result = evaluate(session.context, request, watcher)
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("eval/1", result)
    else:
        session.output.text(lines(result, session.screen))
    return int(result.exit_code)
