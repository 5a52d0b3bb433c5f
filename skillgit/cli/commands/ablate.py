"""``skillgit ablate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.gated_options import looking_on, terms_options
from skillgit.cli.measuring_options import show_plan
from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.gating.measuring import Terms
    from skillgit.cli.session import Session

SPLITS = ("train", "selection", "test")


@verb("ablate")
@click.argument("revision", metavar="[REV]", default="head", shell_complete=complete_revisions)
@click.option("--rule", type=click.IntRange(min=1), metavar="N", help="Leave out rule N only")
@click.option(
    "--split", type=click.Choice(SPLITS), default="selection", show_default=True, help="Which items to measure on"
)
@click.option("--no-note", "note", flag_value=False, default=True, help="Leave no note on the commit")
@terms_options()
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    revision: str,
    rule: int | None,
    split: str,
    note: bool,
    terms: Terms,
    quiet: bool,
    form: Form,
) -> int:
    """Leave out each rule of a version and measure what it is worth.

    A rule is a list item or a sentence of SKILL.md. The skill is measured without it, on the same items and with the
    same model as its run, and compared item by item; p is the chance of so many broken items if every change were a
    coin flip. Dead rules, without which nothing changes, stand last. The result is noted on the commit, where prune
    finds it.

    REV is the newest version of the default run unless you name one.
    """
    from skillgit.app.ablate import AblateRequest, ablate  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.cli.render.ablated import ablated  # noqa: PLC0415 - see the package

    request = AblateRequest(revision=revision, rule=rule, split=split, note=note, terms=terms)
    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = ablate(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("ablate/1", result)
    else:
        session.output.text(ablated(result, session.screen))
    return int(result.exit_code)
