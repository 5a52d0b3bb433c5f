"""Commands that make or place a version by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

import click

from skillgit.app.workspace.context import Context
from skillgit.cli.options import (
    complete_models,
    complete_revisions,
    complete_runs,
    document_form,
    flag,
    measured,
    option,
    run_argument,
    skill_option,
    split_option,
    terms_options,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from skillgit.app.interventions.cherry_pick import EditsRequest
    from skillgit.app.interventions.intervention import Decided
    from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
    from skillgit.app.setup.plan import Plan


@verb("restore")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@option("--run", "Take REV as a version of RUN", metavar="RUN", shell_complete=complete_runs)
@flag("--gate", "Measure the text and let the gate decide")
@terms_options
@skill_option
@document_form
@click.pass_obj
def restore_command(
    session: CommandSession, *, revision: str, run: str | None, gate: bool, terms: MeasuringTerms
) -> int:
    """Make an older version's text the newest version of its run.

    History only grows: the versions in between stay; revert takes back a single one. The new version inherits the score
    of REV. With --gate it is measured and judged against the newest version; what is refused stays on a side branch,
    and the exit code is 1.
    """
    from skillgit.app.interventions.restore import RestoreRequest, restore  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import restored  # noqa: PLC0415 - see the package

    request = RestoreRequest(revision=revision, run=run, dry_run=terms.dry_run, gate=terms if gate else None)
    result = measured(session if gate else replace(session, quiet=True), restore, request, "restore/1", restored)
    return ExitCode.OK if result is None or result.accepted else ExitCode.NO


@verb("revert")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@option("--run", "Take REV as a version of RUN", metavar="RUN", shell_complete=complete_runs)
@flag("--gate", "An option of restore", hidden=True)
@terms_options
@skill_option
@document_form
@click.pass_obj
def revert_command(
    session: CommandSession, *, revision: str, run: str | None, gate: bool, terms: MeasuringTerms
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
    return _edited(session, revert, request, "revert/2")


@verb("cherry-pick")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@option("--run", "Put the edits on RUN, not the default run", metavar="RUN", shell_complete=complete_runs)
@terms_options
@skill_option
@document_form
@click.pass_obj
def cherry_pick_command(session: CommandSession, *, revision: str, run: str | None, terms: MeasuringTerms) -> int:
    """Put the edits of one version on another line, if they pass its gate.

    REV may be a version or a rejected candidate. Its edits are applied to the newest version of the run, measured on
    the selection split and judged by the gate of that run. What is refused stays on a side branch, and the exit code
    is 1.
    """
    from skillgit.app.interventions.cherry_pick import EditsRequest, cherry_pick  # noqa: PLC0415 - see the package

    request = EditsRequest(revision=revision, run=run, terms=terms)
    return _edited(session, cherry_pick, request, "cherry-pick/1")


def _edited(
    session: CommandSession,
    change: Callable[[Context, EditsRequest, EvalWatcher], Decided | Plan],
    request: EditsRequest,
    schema: str,
) -> int:
    from skillgit.view.gate import decided  # noqa: PLC0415 - see the package

    result = measured(session, change, request, schema, decided)
    return ExitCode.OK if result is None or result.accepted else ExitCode.NO


@verb("merge")
@click.argument("run", shell_complete=complete_runs)
@click.argument("other", shell_complete=complete_revisions)
@terms_options
@skill_option
@document_form
@click.pass_obj
def merge_command(session: CommandSession, *, run: str, other: str, terms: MeasuringTerms) -> int:
    """Merge another run into RUN, where scores decide what both changed.

    OTHER is a run, whose best version is merged, or a version as RUN/v7. Where both lines changed the same place, the
    texts of RUN, of OTHER, of both and of neither are measured, and the one that scores best stays. The whole has to
    pass the gate of RUN. What is refused stays on a side branch, and the exit code is 1.
    """
    from skillgit.app.interventions.merge import MergeRequest, merge  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import merge_lines  # noqa: PLC0415 - see the package

    result = measured(session, merge, MergeRequest(into=run, source=other, terms=terms), "merge/2", merge_lines)
    return ExitCode.OK if result is None or result.decided.accepted else ExitCode.NO


@verb("retry")
@run_argument
@option(
    "--model",
    "The target, as BACKEND/MODEL or as a model of the run's backend",
    metavar="M",
    shell_complete=complete_models,
)
@split_option(("train", "selection", "test"))
@option("--limit", "Try N that apply at most", type=click.IntRange(min=1), metavar="N", default=5, show_default=True)
@flag("--keep", "Make the first that passes the gate a version")
@terms_options
@skill_option
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
) -> int:
    """Try rejected candidates again, on what the run has become since.

    Their edits are applied to the newest version of RUN and measured, those first that had come closest. What does
    not apply any more is listed with the reason. Exits with 1 if none passes.
    """
    from skillgit.app.interventions.retry import RetryRequest, retry  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import retry_lines  # noqa: PLC0415 - see the package

    request = RetryRequest(run=run, model=model, split=split, most=limit, keep=keep, terms=terms)
    result = measured(session, retry, request, "resurrect/1", retry_lines)
    return int(result.exit_code) if result else ExitCode.OK


@verb("promote")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@flag("--force", "Replace what someone changed on the trunk by hand")
@option("--release", "Release it: write metadata.version, and tag SKILL/vVERSION", metavar="VERSION", default="")
@flag("-n --dry-run", "Say what would be done, and do nothing")
@skill_option
@document_form
@click.pass_obj
def promote_command(session: CommandSession, *, revision: str, force: bool, release: str, dry_run: bool) -> None:
    """Bring a version to the trunk with a merge commit.

    The trunk is the branch that you are on. Only the skill's folder changes there. If someone changed it by hand since
    the run began, nothing is done without --force. A work tree that has the trunk checked out follows as with git
    merge: it loses no changes.

    --release takes a semantic version such as 1.2.0. It is written to metadata.version in the frontmatter of SKILL.md,
    and no other byte of the skill changes; the merge commit gets the tag SKILL/v1.2.0.
    """
    from skillgit.app.interventions.promote import promote  # noqa: PLC0415 - see the package
    from skillgit.view.interventions import promoted  # noqa: PLC0415 - see the package

    result = promote(session.context, revision, force=force, dry_run=dry_run, release=release)
    session.show("promote/1", result, promoted(result, session.screen))
