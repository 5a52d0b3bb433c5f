"""``skillgit push``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_runs, list_forms
from skillgit.cli.output import Form
from skillgit.cli.verb import verb
from skillgit.errors import RemoteError, SkillgitError

if TYPE_CHECKING:
    from skillgit.app.connection import Listener
    from skillgit.app.push import Pushed, PushRequest
    from skillgit.cli.session import Session

COLUMNS = ("ref", "run", "state", "old", "new", "cause", "reason")


@verb("push")
@click.argument("remote", required=False)
@click.option(
    "--run", "runs", multiple=True, metavar="RUN", shell_complete=complete_runs, help="Push RUN; repeat it for more"
)
@click.option(
    "--rejected",
    type=click.Choice(["branches", "attic", "none"]),
    help="How rejected candidates go; as before unless you say, and at first in the attic",
)
@click.option("--evidence", is_flag=True, help="Push evidence too: trajectories, patches, outcomes")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be pushed, and push nothing")
@click.option(
    "--no-verify",
    "--no-scan",
    "verify",
    flag_value=False,
    default=True,
    help="Neither look for secrets nor ask git's pre-push hook",
)
@click.option("-y", "--yes", is_flag=True, help="Create the repository on GitHub if there is none, without asking")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress")
@list_forms
@click.pass_obj
def command(
    session: Session,
    remote: str | None,
    *,
    runs: tuple[str, ...],
    rejected: str | None,
    evidence: bool,
    dry_run: bool,
    verify: bool,
    yes: bool,
    quiet: bool,
    form: Form,
) -> None:
    """Send runs to another repository.

    REMOTE is origin unless you say. main, all runs of this repository and notes go; --run names runs instead. Nothing
    that is there is overwritten: what the other side has changed meanwhile is told, and skillgit pull brings it in.
    Before anything goes, it is looked through for secrets.
    """
    from skillgit.app.push import PushRequest  # noqa: PLC0415 - see the package
    from skillgit.cli.connection import listener  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exchange import pushed  # noqa: PLC0415 - see the package

    request = PushRequest(
        remote=remote, runs=runs, rejected=rejected, evidence=evidence, verify=verify, dry_run=dry_run
    )
    try:
        result = _push(session, request, listener(session, quiet=quiet), yes=yes)
    except SkillgitError as error:
        _tell_findings(session, error)
        raise
    for warning in result.warnings:
        session.diagnostics.note(f"warning: {warning}")
    if form is Form.TEXT:
        session.output.text(pushed(result, session.screen))
    else:
        head = {"remote": result.remote, "url": result.url, "dry_run": result.dry_run}
        session.output.listing(form, result.refs, schema="push/1", name="refs", columns=COLUMNS, head=head)
    if result.error is not None:
        raise result.error


def _push(session: Session, request: PushRequest, person: Listener, *, yes: bool) -> Pushed:
    """Push; where GitHub has no repository of that name, offer to create it first."""
    from skillgit.app.github import creatable, create  # noqa: PLC0415 - see the package
    from skillgit.app.push import push  # noqa: PLC0415 - see the package

    try:
        return push(session.context, request, person)
    except RemoteError as error:
        found = creatable(session.context, request.remote) if error.missing and not request.dry_run else None
        if found is None:
            raise
        if not found.by_gh or not (yes or _agreed(found.name)):
            raise RemoteError(error.message, hint=found.hint) from error
        create(session.context, found)
        session.diagnostics.note(f"created the private repository {found.name} on GitHub")
        return push(session.context, request, person)


def _tell_findings(session: Session, error: SkillgitError) -> None:
    """Tell what stopped the push, if that was something which must not leave."""
    from skillgit.app.scan import Scan  # noqa: PLC0415 - see the package
    from skillgit.cli.render.scan import found  # noqa: PLC0415 - see the package

    if isinstance(error.result, Scan):
        for line in found(error.result, session.diagnostics.screen):
            session.diagnostics.note(line)


def _agreed(name: str) -> bool:
    """Ask; where nobody can answer, the answer is no."""
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"GitHub has no repository {name}. Create it, private, with gh?", err=True)
