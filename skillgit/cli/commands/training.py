"""Commands around a training run: train, note, fork."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    complete_configs,
    complete_revisions,
    complete_runs,
    document_form,
    flag,
    option,
    override_option,
    quiet_option,
    show_plan,
    skill_option,
    spending_options,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.cli.watchers import LiveWatcher, watched, watching
from skillgit.domain.cost import Caps
from skillgit.errors import SkillgitError
from skillgit.verbs.verb import Form
from skillgit.view.plan import stopped, trained

if TYPE_CHECKING:
    from skillgit.app.train.train import TrainRequest


@verb("train")
@click.argument("config", required=False, shell_complete=complete_configs)
@option("--run", "Name the run, or continue the run NAME", metavar="NAME", shell_complete=complete_runs)
@option("--from start", "Start from the skill at REV, or WORKTREE", metavar="REV", shell_complete=complete_revisions)
@override_option
@spending_options
@option("--placebo", "Send N no-op candidates through the gate at the end", type=click.IntRange(min=0), metavar="N")
@flag("--fresh", "Ask again what other runs have asked already; their answers stay in the ledger")
@flag("--ask-again", "Ask once more what models refused to answer before")
@flag("--exit-code strict", "Exit with a code of its own for each outcome")
@quiet_option
@flag("--tui screen", "Watch the run on the screen; it goes on when the screen is closed")
@skill_option
@document_form
@click.pass_obj
def train_command(
    session: CommandSession,
    *,
    config: str | None,
    run: str | None,
    start: str | None,
    overrides: tuple[str, ...],
    caps: Caps,
    placebo: int | None,
    fresh: bool,
    ask_again: bool,
    dry_run: bool,
    strict: bool,
    screen: bool,
) -> int:
    """Train a skill as CONFIG says, one commit for each decision.

    The skill is that of HEAD, or with --from that of REV; WORKTREE is the work tree, committed or not.

    CONFIG is a file, or the name of a configuration that comes with skillgit. Without it, the run NAME, or the run of
    REV, lends its own. A run that was stopped goes on where it stood when it is trained again under its name. Ctrl-C
    stops after the current call and loses nothing.

    With --tui the run is a process of its own, which no key reaches by mistake: K asks it to stop after its step, q
    closes the screen and leaves it at work.
    """
    from skillgit.app.train.train import TrainRequest  # noqa: PLC0415 - see the package

    request = TrainRequest(
        config=config,
        overrides=overrides if placebo is None else (*overrides, f"train.placebo={placebo}"),
        run=run,
        start=start,
        caps=caps,
        ask_again=ask_again,
        fresh=fresh,
    )
    if dry_run:
        from skillgit.app.train.train import plan_train  # noqa: PLC0415 - see the package

        return show_plan(session, plan_train(session.context, request))
    if screen:
        return watched(session, request, strict=strict)
    return _train(session, request, strict=strict)


def _train(session: CommandSession, request: TrainRequest, *, strict: bool) -> int:
    from skillgit.app.train.run_report import Trained, exit_code  # noqa: PLC0415 - see the package
    from skillgit.app.train.train import train  # noqa: PLC0415 - see the package

    try:
        with watching(session, LiveWatcher) as watcher:
            result = train(session.context, request, watcher)
    except SkillgitError as error:
        if session.form is Form.JSON and error.result is not None:
            session.output.document("train/1", error.result)
            session.output.flush()
        elif isinstance(error.result, Trained):
            session.diagnostics.note(*stopped(error.result, session.diagnostics.screen))
        raise
    result = replace(result, exit_code=exit_code(result.outcome, strict=strict))
    session.show("train/1", result, trained(result, session.screen))
    return int(result.exit_code)
