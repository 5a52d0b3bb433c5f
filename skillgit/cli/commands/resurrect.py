"""``skillgit resurrect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.gated_options import looking_on, terms_options
from skillgit.cli.measuring_options import show_plan
from skillgit.cli.options import complete_models, document_form, run_argument
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.gating.measuring import Terms
    from skillgit.cli.session import Session

SPLITS = ("train", "selection", "test")


@verb("resurrect")
@run_argument
@click.option(
    "--model",
    metavar="M",
    shell_complete=complete_models,
    help="The target, as BACKEND/MODEL or as a model of the run's backend",
)
@click.option(
    "--split", type=click.Choice(SPLITS), default="selection", show_default=True, help="Which items to measure on"
)
@click.option(
    "-n", "most", type=click.IntRange(min=1), metavar="N", default=5, show_default=True, help="Try N that apply"
)
@click.option("--keep", is_flag=True, help="Make the first that passes the gate a version")
@terms_options(short=False)
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    run: str | None,
    model: str | None,
    split: str,
    most: int,
    keep: bool,
    terms: Terms,
    quiet: bool,
    form: Form,
) -> int:
    """Try rejected candidates again, on what the run has become since.

    Their edits are applied to the newest version of RUN and measured, those first that had come closest. What does
    not apply any more is listed with the reason. Exits with 1 if none passes.
    """
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.app.resurrect import ResurrectRequest, resurrect  # noqa: PLC0415 - see the package
    from skillgit.cli.render.resurrected import lines  # noqa: PLC0415 - see the package

    request = ResurrectRequest(run=run, model=model, split=split, most=most, keep=keep, terms=terms)
    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = resurrect(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("resurrect/1", result)
    else:
        session.output.text(lines(result, session.screen))
    return int(result.exit_code)
