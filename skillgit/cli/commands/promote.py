"""``skillgit promote``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("promote")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--force", is_flag=True, help="Replace what somebody changed on main by hand")
@click.option(
    "--release", metavar="VERSION", default="", help="Release it: write metadata.version, and tag SKILL/vVERSION"
)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@document_form
@click.pass_obj
def command(session: Session, *, revision: str, force: bool, release: str, dry_run: bool, form: Form) -> None:
    """Bring a version to main with a merge commit.

    Only the skill's folder changes on main. If somebody changed it there by hand since the run began, nothing is done
    without --force. A work tree that has main checked out follows as with git merge: it loses no changes.

    --release takes a semantic version such as 1.2.0. It is written to metadata.version in the frontmatter of SKILL.md,
    and no other byte of the skill changes; the merge commit gets the tag SKILL/v1.2.0.
    """
    from skillgit.app.promote import promote  # noqa: PLC0415 - see the package
    from skillgit.cli.render.interventions import promoted  # noqa: PLC0415 - see the package

    result = promote(session.context, revision, force=force, dry_run=dry_run, release=release)
    if form is Form.JSON:
        session.output.document("promote/1", result)
    else:
        session.output.text(promoted(result, session.screen))
