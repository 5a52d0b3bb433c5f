"""Commands that check, repair and tidy."""

from __future__ import annotations

import click

from skillgit.cli.options import (
    complete_revisions,
    complete_runs,
    document_form,
    flag,
    list_forms,
    option,
    run_argument,
    skill_option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.errors import ExitCode, UsageError
from skillgit.verbs.verb import Form
from skillgit.view.checks import FSCK, gc_lines, problem_lines, replay_lines
from skillgit.view.lists import LISTS


@verb("fsck")
@run_argument
@flag("--deep", "Ask every gate again, and compare the index with git")
@flag("--repair", "Repair what can be derived from history, and rebuild a bad index")
@list_forms
@click.pass_obj
def fsck_command(session: CommandSession, run: str | None, *, deep: bool, repair: bool) -> ExitCode:
    """Check that history keeps its rules.

    Checks all runs unless you name one. Exits with 1 if there is a problem, after --repair if one is left; remarks do
    not count.

    --repair restores tags, best branches and the ref that keeps evidence, sets damaged objects aside, removes lock
    files of dead processes, and steps a run whose end lacks objects back to its last whole event. It compares the index
    with git and rebuilds one that is missing, damaged or stale; nothing is lost, for history is in git.
    """
    from skillgit.app.upkeep.fsck import fsck  # noqa: PLC0415 - see the package

    report = fsck(session.context, run, deep=deep, repair=repair)
    session.listing(
        LISTS["fsck"], map(FSCK.record, report.problems), problem_lines(report, session.screen), head=report
    )
    if session.form is Form.TEXT and any(problem.repairable for problem in report.problems):
        if repair:
            session.diagnostics.note("what can be repaired in a run waits until nothing in it is broken")
        else:
            session.diagnostics.hint("skillgit fsck --repair")
    return ExitCode.OK if report.sound else ExitCode.NO


@verb("lint")
@click.argument("words", metavar="[PATH|REV]...", nargs=-1)
@flag("--strict", "Count warnings as errors")
@flag("--library", "Check what agents list of all skills together; PATH is a folder of installed skills")
@option("--window", "With --library: tokens of the context window", metavar="N", type=click.IntRange(0))
@skill_option
@document_form
@click.pass_obj
def lint_command(
    session: CommandSession, *, words: tuple[str, ...], strict: bool, library: bool, window: int | None
) -> ExitCode:
    """Check skill folders by the rules of Agent Skills.

    PATH is a skill folder, a SKILL.md, or a folder that holds skills; without one it is the current folder. REV checks
    the skill of a version, or all skills of a commit. Each finding names its rule, the line and what to do. Exits with
    1 if there is an error; warnings leave it at 0.

    With --library it forecasts, without a model, what Claude Code and Codex show of each skill: whole descriptions, cut
    ones, names alone, or nothing. Without PATH it reads the folders where each agent looks.
    """
    from skillgit.app.skill_format.library_lint import lint_library  # noqa: PLC0415 - see the package
    from skillgit.app.skill_format.lint import lint  # noqa: PLC0415 - as above
    from skillgit.view.checks import library_document, library_lines, lint_document, linted  # noqa: PLC0415 - as above

    if library:
        table = lint_library(session.context, words, window)
        session.show("library/1", library_document(table), library_lines(table, session.screen))
        return ExitCode.NO if strict and table.findings.warnings else ExitCode.OK
    if window is not None:
        raise UsageError("--window is about a library", hint="skillgit lint --library --window N")
    report = lint(session.context, words)
    session.show("lint/1", lint_document(report), linted(report, session.screen))
    return ExitCode.NO if report.errors or (strict and report.warnings) else ExitCode.OK


@verb("scan")
@click.argument("revision", metavar="[REV|RANGE]", required=False, shell_complete=complete_revisions)
@flag("--evidence", "Look at evidence and folded candidates too")
@document_form
@click.pass_obj
def scan_command(session: CommandSession, *, revision: str | None, evidence: bool) -> ExitCode:
    """Look for secrets, leaked items and large files in what a push would publish.

    Without REV it looks at every commit of branches and tags that no remote has. With REV it looks at everything that
    REV leads to, with A..B at what came after A. What is found is named with commit, path and line, and with a
    fingerprint that the file .skillgit-allow can hold. Exits with 1 if a push would be stopped; warnings leave it at 0.
    """
    from skillgit.app.exchange.push_check import scan  # noqa: PLC0415 - see the package
    from skillgit.view.checks import scan_document, scanned  # noqa: PLC0415 - see the package

    if revision is not None and evidence:
        raise UsageError("--evidence looks at all runs, and REV at one line", hint="skillgit scan --evidence")
    result = scan(session.context, revision, evidence=evidence)
    session.show("scan/1", scan_document(result), scanned(result, session.screen))
    if session.form is Form.TEXT:
        session.diagnostics.note(*result.unchecked)
    return ExitCode.NO if result.stops else ExitCode.OK


@verb("replay")
@run_argument
@flag("-q --quiet", "Print only what differs, and the summary")
@list_forms
@click.pass_obj
def replay_command(session: CommandSession, run: str | None, *, quiet: bool) -> ExitCode:
    """Make a run again from its commits, and compare.

    Asks no model: it folds all events, asks every gate again with the recorded outcomes of items, applies every patch
    to its base again, and builds the index anew. Exits with 1 if anything comes out otherwise than it is recorded.
    """
    from skillgit.app.upkeep.run_checks import replay  # noqa: PLC0415 - see the package

    result = replay(session.context, run)
    session.listing(LISTS["replay"], result.events, replay_lines(result, session.screen, quiet=quiet), head=result)
    return ExitCode.OK if result.same else ExitCode.NO


@verb("gc")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@flag("--fold", "Fold branches of rejected candidates into an attic")
@flag("--unfold", "Give candidates in the attic their branches back")
@option("--evidence-older", "Drop evidence older than AGE: 30 (days) or a date", metavar="AGE", default="")
@flag("-n --dry-run", "Say what would be done, and do nothing")
@list_forms
@click.pass_obj
def gc_command(
    session: CommandSession, runs: tuple[str, ...], *, fold: bool, unfold: bool, evidence_older: str, dry_run: bool
) -> None:
    """Fold the branches of finished runs, or drop old evidence.

    Takes all finished runs unless you name some. Folded candidates stay in history and keep their names: log, show and
    diff find r17 as before. Evidence that is dropped is gone; that of the first, the best and the last version stays.
    """
    from skillgit.app.upkeep.maintenance import GcRequest, gc  # noqa: PLC0415 - see the package

    request = GcRequest(runs=runs, fold=fold, unfold=unfold, evidence_older=evidence_older, dry_run=dry_run)
    rows = gc(session.context, request)
    session.listing(LISTS["gc"], rows, gc_lines(rows, dry_run=dry_run), head={"dry_run": dry_run})
    if session.form is Form.TEXT and any(row.dropped for row in rows) and not dry_run:
        session.diagnostics.hint("git gc --prune=now frees the space")
