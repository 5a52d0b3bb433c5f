"""Commands that make or place a version by hand."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import click

from skillgit.cli.measuring_options import looking_on, show_plan, terms_options
from skillgit.cli.options import complete_models, complete_revisions, complete_runs, document_form, run_argument, verb
from skillgit.cli.output import Form
from skillgit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.interventions.cherry_pick import EditsRequest
    from skillgit.app.interventions.intervention import Decided, GateWatcher
    from skillgit.app.setup.model_session import MeasuringTerms
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.cli.session import CommandSession


@verb("restore")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="Take REV as a version of RUN")
@click.option("--gate", is_flag=True, help="Measure the text and let the gate decide")
@terms_options()
@document_form
@click.pass_obj
def restore_command(
    session: CommandSession,
    *,
    revision: str,
    run: str | None,
    gate: bool,
    terms: MeasuringTerms,
    quiet: bool,
    form: Form,
) -> int:
    """Make an older version's text the newest version of its run.

    History only grows: the versions in between stay; revert takes back a single one. The new version inherits the score
    of REV. With --gate it is measured and judged against the newest version; what is refused stays on a side branch,
    and the exit code is 1.
    """
    from skillgit.app.interventions.restore import RestoreRequest, restore  # noqa: PLC0415 - see the package
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import restored  # noqa: PLC0415 - see the package

    request = RestoreRequest(revision=revision, run=run, dry_run=terms.dry_run, gate=terms if gate else None)
    with looking_on(session, quiet=quiet or not gate or terms.dry_run) as watcher:
        result = restore(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("restore/1", result)
    else:
        session.output.text(restored(result, session.screen))
    return ExitCode.OK if result.accepted else ExitCode.NO


@verb("revert")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="Take REV as a version of RUN")
@click.option("--gate", is_flag=True, hidden=True, help="An option of restore")
@terms_options()
@document_form
@click.pass_obj
def revert_command(
    session: CommandSession,
    *,
    revision: str,
    run: str | None,
    gate: bool,
    terms: MeasuringTerms,
    quiet: bool,
    form: Form,
) -> int:
    """Take back the edits of one version and keep the later ones.

    As with git, only what REV itself changed goes from the newest version of its run; restore brings back the whole
    text of an older version, which is what revert did before. The text is measured on the selection split, and the gate
    accepts it if its score is not lower. What is refused stays on a side branch, and the exit code is 1. Where later
    versions changed the same lines, they are named and nothing is written.
    """
    from skillgit.app.interventions.cherry_pick import EditsRequest, revert  # noqa: PLC0415 - see the package

    if gate:
        raise UsageError(
            "revert always asks the gate, and takes back the edits of one version",
            hint=f"skillgit restore {quote(revision)} --gate makes its text the newest version",
        )
    request = EditsRequest(revision=revision, run=run, terms=terms)
    return _edited(session, revert, request, "revert/2", form, quiet=quiet)


@verb("cherry-pick")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="Put the edits on RUN, not the default run")
@terms_options()
@document_form
@click.pass_obj
def cherry_pick_command(
    session: CommandSession, *, revision: str, run: str | None, terms: MeasuringTerms, quiet: bool, form: Form
) -> int:
    """Put the edits of one version on another line, if they pass its gate.

    REV may be a version or a rejected candidate. Its edits are applied to the newest version of the run, measured on
    the selection split and judged by the gate of that run. What is refused stays on a side branch, and the exit code
    is 1.
    """
    from skillgit.app.interventions.cherry_pick import EditsRequest, cherry_pick  # noqa: PLC0415 - see the package

    request = EditsRequest(revision=revision, run=run, terms=terms)
    return _edited(session, cherry_pick, request, "cherry-pick/1", form, quiet=quiet)


def _edited(
    session: CommandSession,
    change: Callable[[Context, EditsRequest, GateWatcher], Decided | Plan],
    request: EditsRequest,
    schema: str,
    form: Form,
    *,
    quiet: bool,
) -> int:
    """Change a run by the edits of one version, and print what its gate decided."""
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.view.gate import decided  # noqa: PLC0415 - see the package

    with looking_on(session, quiet=quiet or request.terms.dry_run) as watcher:
        result = change(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document(schema, result)
    else:
        session.output.text(decided(result, session.screen))
    return ExitCode.OK if result.accepted else ExitCode.NO


@verb("merge")
@click.argument("run", shell_complete=complete_runs)
@click.argument("other", shell_complete=complete_revisions)
@terms_options()
@document_form
@click.pass_obj
def merge_command(
    session: CommandSession, *, run: str, other: str, terms: MeasuringTerms, quiet: bool, form: Form
) -> int:
    """Merge another run into RUN, where scores decide what both changed.

    OTHER is a run, whose best version is merged, or a version as RUN/v7. Where both lines changed the same place, the
    texts of RUN, of OTHER, of both and of neither are measured, and the one that scores best stays. The whole has to
    pass the gate of RUN. What is refused stays on a side branch, and the exit code is 1.
    """
    from skillgit.app.interventions.merge import MergeRequest, merge  # noqa: PLC0415 - see the package
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.view.interventions import merge_lines  # noqa: PLC0415 - see the package

    request = MergeRequest(into=run, other=other, terms=terms)
    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = merge(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    if form is Form.JSON:
        session.output.document("merge/2", result)
    else:
        session.output.text(merge_lines(result, session.screen))
    return ExitCode.OK if result.decided.accepted else ExitCode.NO


SPLITS = ("train", "selection", "test")


@verb("retry")
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
    "--limit", type=click.IntRange(min=1), metavar="N", default=5, show_default=True, help="Try N that apply at most"
)
@click.option("--keep", is_flag=True, help="Make the first that passes the gate a version")
@terms_options()
@document_form
@click.pass_obj
def retry_command(
    session: CommandSession,
    *,
    run: str | None,
    model: str | None,
    split: str,
    limit: int,
    keep: bool,
    terms: MeasuringTerms,
    quiet: bool,
    form: Form,
) -> int:
    """Try rejected candidates again, on what the run has become since.

    Their edits are applied to the newest version of RUN and measured, those first that had come closest. What does
    not apply any more is listed with the reason. Exits with 1 if none passes.
    """
    from skillgit.app.interventions.retry import RetryRequest, retry  # noqa: PLC0415 - see the package
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.view.interventions import retry_lines  # noqa: PLC0415 - see the package

    request = RetryRequest(run=run, model=model, split=split, most=limit, keep=keep, terms=terms)
    with looking_on(session, quiet=quiet or terms.dry_run) as watcher:
        result = retry(session.context, request, watcher)
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    for warning in result.warnings:
        session.diagnostics.note(warning)
    if form is Form.JSON:
        session.output.document("resurrect/1", result)
    else:
        session.output.text(retry_lines(result, session.screen))
    return int(result.exit_code)


@verb("promote")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--force", is_flag=True, help="Replace what someone changed on main by hand")
@click.option(
    "--release", metavar="VERSION", default="", help="Release it: write metadata.version, and tag SKILL/vVERSION"
)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@document_form
@click.pass_obj
def promote_command(
    session: CommandSession, *, revision: str, force: bool, release: str, dry_run: bool, form: Form
) -> None:
    """Bring a version to main with a merge commit.

    Only the skill's folder changes on main. If someone changed it there by hand since the run began, nothing is done
    without --force. A work tree that has main checked out follows as with git merge: it loses no changes.

    --release takes a semantic version such as 1.2.0. It is written to metadata.version in the frontmatter of SKILL.md,
    and no other byte of the skill changes; the merge commit gets the tag SKILL/v1.2.0.
    """
    from skillgit.app.interventions.promote import promote  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import promoted  # noqa: PLC0415 - see the package

    result = promote(session.context, revision, force=force, dry_run=dry_run, release=release)
    if form is Form.JSON:
        session.output.document("promote/1", result)
    else:
        session.output.text(promoted(result, session.screen))
