"""``skillgit train``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from skillgit.cli.measuring_options import show_plan, spending_options
from skillgit.cli.options import complete_configs, complete_revisions, complete_runs, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render.plan import stopped, trained
from skillgit.cli.verb import verb
from skillgit.cli.watchers import watching
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from skillgit.app.train import TrainRequest
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps


@verb("train")
@click.argument("config", shell_complete=complete_configs)
@click.option("--run", metavar="NAME", shell_complete=complete_runs, help="Name the run, or continue the run NAME")
@click.option("--from", "start", metavar="REV", shell_complete=complete_revisions, help="Start from the skill at REV")
@override_option
@spending_options()
@click.option(
    "--placebo", type=click.IntRange(min=0), metavar="N", help="Send N no-op candidates through the gate at the end"
)
@click.option("--ask-again", is_flag=True, help="Ask once more what models refused to answer before")
@click.option("--exit-code", "strict", is_flag=True, help="Exit with a code of its own for each outcome")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress")
@click.option("--tui", "screen", is_flag=True, help="Watch the run on the screen; it goes on when the screen is closed")
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    config: str,
    run: str | None,
    start: str | None,
    overrides: tuple[str, ...],
    caps: Caps,
    placebo: int | None,
    ask_again: bool,
    dry_run: bool,
    strict: bool,
    quiet: bool,
    screen: bool,
    form: Form,
) -> int:
    """Train a skill as CONFIG says, one commit for each decision.

    CONFIG is a file, or the name of a configuration that comes with skillgit. A run that was stopped goes on where it
    stood when it is trained again under its name. Ctrl-C stops after the current call and loses nothing.

    With --tui the run is a process of its own, which no key reaches by mistake: K asks it to stop after its step, q
    closes the screen and leaves it at work.
    """
    from skillgit.app.train import TrainRequest  # noqa: PLC0415 - see the package

    request = TrainRequest(
        config=config,
        overrides=overrides if placebo is None else (*overrides, f"train.placebo={placebo}"),
        run=run,
        start=start,
        caps=caps,
        ask_again=ask_again,
    )
    if dry_run:
        from skillgit.app.train_plan import plan_train  # noqa: PLC0415 - see the package

        return show_plan(session, plan_train(session.context, request), form)
    if screen:
        from skillgit.cli.watched import watched  # noqa: PLC0415 - see the package

        return watched(session, request, form, strict=strict)
    return _train(session, request, form, quiet=quiet, strict=strict)


def _train(session: Session, request: TrainRequest, form: Form, *, quiet: bool, strict: bool) -> int:
    from skillgit.app.outcome import Trained, exit_code  # noqa: PLC0415 - see the package
    from skillgit.app.train import train  # noqa: PLC0415 - see the package

    try:
        with watching(session, quiet=quiet) as watcher:
            result = train(session.context, request, watcher)
    except SkillgitError as error:
        if form is Form.JSON and error.result is not None:
            session.output.document("train/1", error.result)
            session.output.flush()
        elif isinstance(error.result, Trained):
            for line in stopped(error.result, session.diagnostics.screen):
                session.diagnostics.note(line)
        raise
    result = replace(result, exit_code=exit_code(result.outcome, strict=strict))
    if form is Form.JSON:
        session.output.document("train/1", result)
    else:
        session.output.text(trained(result, session.screen))
    return int(result.exit_code)
