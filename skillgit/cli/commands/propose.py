"""The command that trains on reviewed tasks and leaves what is better for someone to merge."""

from __future__ import annotations

import click

from skillgit.cli.options import (
    complete_configs,
    complete_revisions,
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
from skillgit.cli.watchers import LiveWatcher, watching
from skillgit.domain.cost import Caps


@verb("propose")
@click.argument("skills", metavar="[SKILL]...", nargs=-1)
@option("--config", "Train as CONFIG says, not as tasks/default", metavar="CONFIG", shell_complete=complete_configs)
@override_option
@option(
    "--base",
    "What skills are taken from, and proposals are for",
    metavar="REV",
    default="",
    show_default="the trunk",
    shell_complete=complete_revisions,
)
@option(
    "--branch",
    "The branch of a proposal; NAME is the skill",
    metavar="BRANCH",
    default="propose/NAME",
    show_default=True,
)
@flag("--pull-request", "Push the branch and open a pull request, with gh")
@spending_options
@quiet_option
@skill_option
@document_form
@click.pass_obj
def propose_command(
    session: CommandSession,
    *,
    skills: tuple[str, ...],
    config: str | None,
    overrides: tuple[str, ...],
    base: str,
    branch: str,
    pull_request: bool,
    caps: Caps,
    dry_run: bool,
) -> int:
    """Train skills on reviewed tasks, and leave what is better as a branch.

    Each SKILL, or every one with tasks in tasks/SKILL.jsonl and something new, is trained from what it is at the base.
    If the best version passes the paired test on items that chose no version, propose/SKILL gets one commit with the
    evidence. Work tree and trunk stay as they are, and nothing is pushed without --pull-request.

    A process that was stopped or killed is followed by the same command, which does what is left. The caps are for all
    skills together.

    Exits with 0 if something is proposed or nothing is new, with 1 if no version is better, with 21 if that cannot be
    told, and with the code of the error if a skill failed; the others go on.
    """
    from skillgit.app.proposals.jobs import ProposeRequest  # noqa: PLC0415 - see the package
    from skillgit.app.proposals.propose import plan_propose, propose  # noqa: PLC0415 - as above
    from skillgit.view.deliveries import proposed  # noqa: PLC0415 - as above

    request = ProposeRequest(
        skills=skills,
        config=config,
        overrides=overrides,
        caps=caps,
        base=base,
        branch=branch,
        pull_request=pull_request,
    )
    if dry_run:
        return show_plan(session, plan_propose(session.context, request))
    with watching(session, LiveWatcher) as watcher:
        report = propose(session.context, request, watcher)
    session.show("propose/1", report, proposed(report, session.screen))
    return int(report.exit_code)
