"""Commands that talk to other repositories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.app.exchange.connection import Listener
from skillgit.cli.options import complete_runs, document_form, flag, list_forms, option, quiet_option, verb
from skillgit.cli.session import CommandSession
from skillgit.errors import RemoteError, SkillgitError
from skillgit.view.lists import LISTS

if TYPE_CHECKING:
    from skillgit.app.exchange.push import Pushed, PushRequest


@verb("push")
@click.argument("remote", required=False)
@click.argument("names", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@option("--run runs", "Push RUN; repeat it for more", multiple=True, metavar="RUN", shell_complete=complete_runs)
@option(
    "--rejected",
    "How rejected candidates go; as before unless you say, and at first in the attic",
    type=click.Choice(["branches", "attic", "none"]),
)
@flag("--evidence", "Push evidence too: trajectories, patches, outcomes")
@flag("-n --dry-run", "Say what would be pushed, and push nothing")
@option(
    "--no-verify --no-scan verify",
    "Neither look for secrets nor ask git's pre-push hook",
    flag_value=False,
    default=True,
)
@flag("-y --yes", "Create the repository on GitHub if there is none, without asking")
@quiet_option
@list_forms
@click.pass_obj
def push_command(
    session: CommandSession,
    remote: str | None,
    names: tuple[str, ...],
    *,
    runs: tuple[str, ...],
    rejected: str | None,
    evidence: bool,
    dry_run: bool,
    verify: bool,
    yes: bool,
) -> None:
    """Send runs to another repository.

    REMOTE is origin unless you say. The trunk, notes and all runs of this repository go, or only the runs that you
    name. Nothing that is there is overwritten: what the other side has changed meanwhile is told, and skillgit pull
    brings it in. Before anything goes, it is looked through for secrets.
    """
    from skillgit.app.exchange.push import PushRequest  # noqa: PLC0415 - see the package
    from skillgit.app.exchange.push_check import Scan  # noqa: PLC0415 - see the package
    from skillgit.cli.session import listener  # noqa: PLC0415 - see the package
    from skillgit.view.checks import SCAN  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import pushed  # noqa: PLC0415 - see the package

    request = PushRequest(
        remote=remote, runs=(*names, *runs), rejected_mode=rejected, evidence=evidence, verify=verify, dry_run=dry_run
    )
    try:
        result = _push(session, request, listener(session), yes=yes)
    except SkillgitError as error:
        if isinstance(error.result, Scan):
            findings = (*error.result.stops, *error.result.warnings)
            session.diagnostics.note(*SCAN.lines(findings, session.diagnostics.screen))
        raise
    session.diagnostics.note(*(f"warning: {warning}" for warning in result.warnings))
    session.listing(LISTS["push"], result.refs, pushed(result, session.screen), head=result)
    if result.error is not None:
        raise result.error


def _push(session: CommandSession, request: PushRequest, person: Listener, *, yes: bool) -> Pushed:
    """Push; where GitHub has no repository of that name, offer to create it first."""
    from skillgit.app.exchange.push import push  # noqa: PLC0415 - see the package
    from skillgit.app.exchange.remote import creatable, create  # noqa: PLC0415 - see the package

    try:
        return push(session.context, request, person)
    except RemoteError as error:
        repository = creatable(session.context, request.remote) if error.missing and not request.dry_run else None
        if repository is None:
            raise
        question = f"GitHub has no repository {repository.name}. Create it, private, with gh?"
        # where nobody can answer, the answer is no
        if not repository.by_gh or not (yes or (sys.stdin.isatty() and click.confirm(question, err=True))):
            raise RemoteError(error.message, hint=repository.hint) from error
        create(session.context, repository)
        session.diagnostics.note(f"created the private repository {repository.name} on GitHub")
        return push(session.context, request, person)


@verb("pull")
@click.argument("remote", required=False)
@option(
    "--rejected",
    "Which rejected candidates come: all, those in attics, or none",
    type=click.Choice(["branches", "attic", "none"]),
    default="branches",
    show_default=True,
)
@flag("--evidence", "Bring evidence too")
@flag("-n --dry-run", "Say what would come, and move nothing of this repository")
@quiet_option
@document_form
@click.pass_obj
def pull_command(session: CommandSession, remote: str | None, *, rejected: str, evidence: bool, dry_run: bool) -> None:
    """Take in the runs of another repository.

    REMOTE is origin unless you say. Runs that are unknown here are made, others go forward, notes of both sides are put
    together, and the trunk goes forward where it can. A run that both sides went on with is left as it is, and told.

    With --dry-run only the copies of the other repository's refs are updated, as git fetch does. A run that is not here
    can be looked at then, and candidates that others rejected are known to a run that goes on from there.
    """
    from skillgit.app.exchange.pull import PullRequest, pull  # noqa: PLC0415 - see the package
    from skillgit.cli.session import listener  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import pulled  # noqa: PLC0415 - see the package

    request = PullRequest(remote=remote, rejected_mode=rejected, evidence=evidence, dry_run=dry_run)
    result = pull(session.context, request, listener(session))
    session.show("pull/1", result, pulled(result, session.screen))
    if result.error is not None:
        raise result.error


@verb("clone")
@click.argument("url")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@flag("--evidence", "Bring evidence too")
@quiet_option
@document_form
@click.pass_obj
def clone_command(session: CommandSession, url: str, directory: Path | None, *, evidence: bool) -> None:
    """Copy a repository with its runs, notes and rejected candidates.

    It is copied into DIR, which is called as the repository is unless you say. Its runs can be looked at, continued and
    forked; the commands and files that their configurations name are never used.
    """
    from skillgit.app.exchange.pull import clone  # noqa: PLC0415 - see the package
    from skillgit.cli.session import listener  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import cloned  # noqa: PLC0415 - see the package

    result = clone(session.context, url, directory, evidence=evidence, listener=listener(session))
    session.show("clone/1", result, cloned(result, session.screen))
