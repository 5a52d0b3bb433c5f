"""``skillgit retest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_configs, complete_revisions, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render.retest import lines, planned
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.retest import Retested, RetestPlan
    from skillgit.cli.session import Session


@verb("retest")
@click.argument("revisions", metavar="REV...", nargs=-1, required=True, shell_complete=complete_revisions)
@click.option("--model", metavar="M", help="The target, as BACKEND/MODEL or as a model of the run's backend")
@click.option(
    "--split",
    type=click.Choice(("train", "selection", "test")),
    default="selection",
    show_default=True,
    help="Which items to measure on",
)
@click.option(
    "--config", metavar="CONFIG", shell_complete=complete_configs, help="Measure as CONFIG says, not as the run did"
)
@override_option
@click.option("--no-note", "note", flag_value=False, default=True, help="Leave no note on the commits")
@click.option("--dry-run", is_flag=True, help="Tell what it would cost, and measure nothing")
@click.option("--max-calls", type=click.IntRange(min=1), metavar="N", help="Stop before it makes more model calls")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Stop before it uses more tokens")
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Stop before it spends more US dollars",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress")
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
    dry_run: bool,
    max_calls: int | None,
    max_tokens: int | None,
    max_usd: float | None,
    quiet: bool,
    form: Form,
) -> int:
    """Measure old versions under another target model.

    Without --model it is the run's own model at a later date: every item is drawn afresh, so that drift and noise show.
    Each version is paired with what its run recorded, and a note on its commit keeps the outcomes. What it costs at
    most is told first. Exits with 5 if too few items could be evaluated.
    """
    from skillgit.app.retest import RetestRequest, retest  # noqa: PLC0415 - see the package
    from skillgit.cli.eval_watchers import watching  # noqa: PLC0415 - see the package

    request = RetestRequest(
        revisions=revisions,
        model=model,
        split=split,
        config=config,
        overrides=overrides,
        note=note,
        dry_run=dry_run,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_usd=max_usd,
    )

    def told(plan: RetestPlan) -> None:
        if not quiet or dry_run:
            session.diagnostics.note(planned(plan, session.diagnostics.screen))

    with watching(session, quiet=quiet or dry_run) as watcher:
        result = retest(session.context, request, watcher, told)
    _report(session, result, form)
    return int(result.exit_code)


def _report(session: Session, result: Retested, form: Form) -> None:
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("retest/1", result)
    elif result.cost is not None:
        session.output.text(lines(result, session.screen))
