"""``skillgit adopt``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.asking import may_replace
from skillgit.cli.options import complete_revisions, list_forms
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.adoption.agents import Scope
    from skillgit.cli.session import Session

AGENTS, SCOPES = ("claude", "codex", "copilot"), ("user", "project")
COLUMNS = ("place", "skill", "name", "state", "newer", "time", "commit")


@verb("adopt")
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_revisions)
@click.option("--to", metavar=f"{'|'.join(AGENTS)}|DIR", help="The agent, or its folder of skills")
@click.option("--scope", type=click.Choice(SCOPES), help="For everything you do, the default, or for this project only")
@click.option("--undo", is_flag=True, help="Bring back what stood there before")
@click.option("--skill", metavar="NAME", help="With --undo: which skill, where several were adopted")
@click.option("--list", "listing", is_flag=True, help="List what was adopted, and what became of it")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@click.option("-y", "--yes", is_flag=True, help="Replace also what somebody changed by hand")
@list_forms
@click.pass_obj
def command(
    session: Session,
    *,
    revision: str | None,
    to: str | None,
    scope: str | None,
    undo: bool,
    skill: str | None,
    listing: bool,
    dry_run: bool,
    yes: bool,
    form: Form,
) -> None:
    """Put the skill of a version where an agent looks for it.

    What stood there is kept outside of the skill's folder, and --undo brings it back as it was. What somebody changed
    by hand is replaced only after its differences were shown: a terminal asks, a pipe needs --yes.

    The user's skills lie in ~/.claude/skills, ~/.agents/skills (codex) and ~/.copilot/skills; those of a project in
    .claude/skills, .agents/skills and .github/skills of this repository.
    """
    _check(revision, to, undo=undo, skill=skill, listing=listing, form=form)
    if listing:
        _list(session, form)
    elif undo:
        _undo(session, to, _scope(scope), skill, form, dry_run=dry_run, yes=yes)
    elif revision is not None and to is not None:
        _adopt(session, revision, to, _scope(scope), form, dry_run=dry_run, yes=yes)


def _check(revision: str | None, to: str | None, *, undo: bool, skill: str | None, listing: bool, form: Form) -> None:
    context = click.get_current_context()
    if undo + listing + (revision is not None) != 1:
        raise click.UsageError("give either REV, --undo or --list", context)
    if revision is not None and to is None:
        raise click.UsageError(f"say where to: --to {', '.join(AGENTS)} or a folder of skills", context)
    if skill is not None and not undo:
        raise click.UsageError("--skill goes with --undo", context)
    if form not in {Form.TEXT, Form.JSON} and not listing:
        raise click.UsageError(f"--{form.value} goes with --list", context)


def _adopt(
    session: Session, revision: str, to: str, scope: Scope | None, form: Form, *, dry_run: bool, yes: bool
) -> None:
    from skillgit.app.adopt import AdoptRequest, adopt  # noqa: PLC0415 - see the package
    from skillgit.cli.render.deployed import adopted, differences  # noqa: PLC0415 - see the package

    request = AdoptRequest(revision=revision, to=to, scope=scope, dry_run=dry_run)
    result = adopt(session.context, request, may_replace(session, yes=yes))
    if form is Form.JSON:
        session.output.document("adopt/1", result)
        return
    session.output.text(adopted(result))
    if dry_run:
        session.output.text(differences(result.changes, session.screen))


def _undo(
    session: Session, to: str | None, scope: Scope | None, skill: str | None, form: Form, *, dry_run: bool, yes: bool
) -> None:
    from skillgit.app.adopted import UndoRequest, undo  # noqa: PLC0415 - see the package
    from skillgit.cli.render.deployed import differences, undone  # noqa: PLC0415 - see the package

    request = UndoRequest(to=to, scope=scope, skill=skill, dry_run=dry_run)
    result = undo(session.context, request, may_replace(session, yes=yes))
    if form is Form.JSON:
        session.output.document("adopt-undo/1", result)
        return
    session.output.text(undone(result))
    if dry_run:
        session.output.text(differences(result.changes, session.screen))


def _list(session: Session, form: Form) -> None:
    from skillgit.app.adopted import list_adopted  # noqa: PLC0415 - see the package
    from skillgit.cli.render.deployed import listed  # noqa: PLC0415 - see the package

    rows = list_adopted(session.context)
    if form is Form.TEXT:
        session.output.text(listed(rows))
    else:
        session.output.listing(form, rows, schema="adopted/1", name="places", columns=COLUMNS)


def _scope(text: str | None) -> Scope | None:
    from skillgit.app.adoption.agents import Scope  # noqa: PLC0415 - see the package

    return None if text is None else Scope(text)
