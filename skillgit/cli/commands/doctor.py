"""``skillgit doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.measuring_options import show_plan, spending_options
from skillgit.cli.options import complete_configs, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render.doctor import lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps


@verb("doctor")
@click.argument("config", required=False, shell_complete=complete_configs)
@override_option
@click.option("--no-call", "call", flag_value=False, default=True, help="Ask no model, look only")
@spending_options()
@document_form
@click.pass_obj
def command(
    session: Session,
    config: str | None,
    overrides: tuple[str, ...],
    *,
    call: bool,
    caps: Caps,
    dry_run: bool,
    form: Form,
) -> int:
    """Check this machine and the models of CONFIG.

    Each model gets one tiny call. It tells whether they answer and how fast, which variable a key comes from, whether
    tokens are counted, what they cost, and whether the longest prompt fits. It never shows a key. Exits with 5 if a
    model cannot be called.
    """
    from skillgit.app.doctor import doctor  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - as above

    if overrides and config is None:
        raise click.UsageError("-o goes with a CONFIG", click.get_current_context())
    found = doctor(session.context, config, overrides, call=call, caps=caps, dry_run=dry_run)
    if isinstance(found, Plan):
        return show_plan(session, found, form)
    for note in found.notes:
        session.diagnostics.note(note)
    if form is Form.JSON:
        session.output.document("doctor/1", found)
    else:
        session.output.text(lines(found, session.screen))
    return int(found.exit_code)
