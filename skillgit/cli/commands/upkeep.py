"""Commands that check, repair and tidy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, complete_runs, document_form, list_forms, run_argument, verb
from skillgit.cli.output import Form
from skillgit.errors import ExitCode, UsageError
from skillgit.view.checks import replay_lines
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Style
from skillgit.view.text import pad

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.upkeep.fsck import Checked, Problem
    from skillgit.app.upkeep.maintenance import Tidied
    from skillgit.cli.session import CommandSession
    from skillgit.view.surface import Screen


FSCK_COLUMNS = ("run", "commit", "repairable", "sentence", "remark")
_WIDTH = len("repairable")


@verb("fsck")
@run_argument
@click.option("--deep", is_flag=True, help="Ask every gate again, and compare the index with a fresh one")
@click.option("--repair", is_flag=True, help="Mend what follows from the rest of the history, and say what")
@list_forms
@click.pass_obj
def fsck_command(session: CommandSession, run: str | None, *, deep: bool, repair: bool, form: Form) -> ExitCode:
    """Check that history keeps its rules.

    Checks all runs unless you name one. Exits with 1 if there is a problem, after --repair if one is left; a remark is
    none. What can be mended are tags and best branches, the ref that keeps evidence, the index, damaged objects, which
    are set aside, lock files of dead processes, and the end of a run that lacks objects: it steps back to its last
    whole event.
    """
    from skillgit.app.upkeep.fsck import fsck  # noqa: PLC0415 - see the package

    report = fsck(session.context, run, deep=deep, repair=repair)
    if form is Form.TEXT:
        session.output.text(_problem_lines(report, session.screen))
        if any(problem.repairable for problem in report.problems):
            if repair:
                session.diagnostics.note("what can be repaired in a run waits until nothing in it is broken")
            else:
                session.diagnostics.hint("skillgit fsck --repair")
    else:
        head = {"runs": report.runs, "commits": report.commits, "mended": report.mended}
        problems = report.problems
        session.output.listing(form, problems, schema="fsck/1", name="problems", columns=FSCK_COLUMNS, head=head)
    return ExitCode.OK if report.sound else ExitCode.NO


def _problem_lines(report: Checked, screen: Screen) -> Iterator[str]:
    for repair in report.mended:
        yield f"{pad(screen.paint(Style.ACCEPTED, 'mended'), _WIDTH)}  {repair}"
    for problem in report.problems:
        commit = f"{screen.paint(Style.OID, short(problem.commit))}  " if problem.commit else ""
        word, style = _severity(problem)
        run = f"{problem.run}  " if problem.run else ""
        yield f"{pad(screen.paint(style, word), _WIDTH)}  {run}{commit}{problem.sentence}"
    remarks = sum(problem.remark for problem in report.problems)
    count = "no problems" if report.sound else plural(len(report.problems) - remarks, "problem")
    also = f", {plural(remarks, 'remark')}" if remarks else ""
    yield f"checked {plural(report.runs, 'run')}, {plural(report.commits, 'event')}: {count}{also}"


def _severity(problem: Problem) -> tuple[str, Style]:
    if problem.remark:
        return "remark", Style.SKIPPED
    return ("repairable", Style.REVERTED) if problem.repairable else ("broken", Style.REJECTED)


@verb("lint")
@click.argument("words", metavar="[PATH|REV]...", nargs=-1)
@click.option("--strict", is_flag=True, help="Count warnings as errors")
@document_form
@click.pass_obj
def lint_command(session: CommandSession, *, words: tuple[str, ...], strict: bool, form: Form) -> ExitCode:
    """Check skill folders by the rules of Agent Skills.

    PATH is a skill folder, a SKILL.md, or a folder that holds skills; without one it is the current folder. REV checks
    the skill of a version, or all skills of a commit. Each finding names its rule, the line and what to do. Exits with
    1 if there is an error; warnings leave it at 0.
    """
    from skillgit.app.skill_format.lint import lint  # noqa: PLC0415 - see the package
    from skillgit.view.checks import linted  # noqa: PLC0415 - see the package

    report = lint(session.context, words)
    if form is Form.JSON:
        counts = {"errors": report.errors, "warnings": report.warnings}
        session.output.document("lint/1", {**counts, "skills": report.skills})
    else:
        session.output.text(linted(report, session.screen))
    return ExitCode.NO if report.errors or (strict and report.warnings) else ExitCode.OK


@verb("scan")
@click.argument("revision", metavar="[REV|RANGE]", required=False, shell_complete=complete_revisions)
@click.option("--evidence", is_flag=True, help="Look at evidence and folded candidates too")
@document_form
@click.pass_obj
def scan_command(session: CommandSession, *, revision: str | None, evidence: bool, form: Form) -> ExitCode:
    """Look for secrets, leaked items and large files in what a push would publish.

    Without REV it looks at every commit of branches and tags that no remote has. With REV it looks at everything that
    REV leads to, with A..B at what came after A. What is found is named with commit, path and line, and with a
    fingerprint that the file .skillgit-allow can hold. Exits with 1 if a push would be stopped; warnings leave it at 0.
    """
    from skillgit.app.exchange.push_check import scan  # noqa: PLC0415 - see the package
    from skillgit.view.exchange import scanned  # noqa: PLC0415 - see the package

    if revision is not None and evidence:
        raise UsageError("--evidence looks at all runs, and REV at one line", hint="skillgit scan --evidence")
    result = scan(session.context, revision, evidence=evidence)
    if form is Form.JSON:
        session.output.document("scan/1", result)
    else:
        session.output.text(scanned(result, session.screen))
        for sentence in result.unchecked:
            session.diagnostics.note(sentence)
    return ExitCode.NO if result.stops else ExitCode.OK


REPLAY_COLUMNS = ("commit", "label", "kind", "gate", "patch", "differing", "lacking", "title")


@verb("replay")
@run_argument
@click.option("-q", "--quiet", is_flag=True, help="Print only what differs, and the summary")
@list_forms
@click.pass_obj
def replay_command(session: CommandSession, run: str | None, *, quiet: bool, form: Form) -> ExitCode:
    """Make a run again from its commits, and compare.

    Asks no model: it folds all events, asks every gate again with the recorded outcomes of items, applies every patch
    to its base again, and builds the index anew. Exits with 1 if anything comes out otherwise than it is recorded.
    """
    from skillgit.app.upkeep.replay import replay  # noqa: PLC0415 - see the package

    result = replay(session.context, run)
    if form is Form.TEXT:
        session.output.text(replay_lines(result, session.screen, quiet=quiet))
    else:
        head = {
            "run": result.run,
            "same": result.same,
            "differing": result.differing,
            "index": result.index,
            "history": result.history,
        }
        session.output.listing(form, result.events, schema="replay/1", name="events", columns=REPLAY_COLUMNS, head=head)
    return ExitCode.OK if result.same else ExitCode.NO


GC_COLUMNS = ("run", "folded", "unfolded", "attic", "dropped", "freed", "left")
_KILO = 1000
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@verb("gc")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@click.option("--fold", is_flag=True, help="Fold branches of rejected candidates into an attic")
@click.option("--unfold", is_flag=True, help="Give candidates in the attic their branches back")
@click.option("--evidence-older", metavar="AGE", default="", help="Drop evidence older than AGE: 30 (days) or a date")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@list_forms
@click.pass_obj
def gc_command(
    session: CommandSession,
    runs: tuple[str, ...],
    *,
    fold: bool,
    unfold: bool,
    evidence_older: str,
    dry_run: bool,
    form: Form,
) -> None:
    """Fold the branches of finished runs, or drop old evidence.

    Takes all finished runs unless you name some. Folded candidates stay in history and keep their names: log, show and
    diff find r17 as before. Evidence that is dropped is gone; that of the first, the best and the last version stays.
    """
    from skillgit.app.upkeep.maintenance import GcRequest, gc  # noqa: PLC0415 - see the package

    request = GcRequest(runs=runs, fold=fold, unfold=unfold, evidence_older=evidence_older, dry_run=dry_run)
    rows = gc(session.context, request)
    if form is not Form.TEXT:
        session.output.listing(form, rows, schema="gc/1", name="runs", columns=GC_COLUMNS, head={"dry_run": dry_run})
        return
    session.output.text(_gc_lines(rows, dry_run=dry_run))
    if any(row.dropped for row in rows) and not dry_run:
        session.diagnostics.hint("git gc --prune=now frees the space")


def _gc_lines(rows: Sequence[Tidied], *, dry_run: bool) -> Iterator[str]:
    width = max((len(row.run) for row in rows), default=0)
    for row in rows:
        for sentence in _told(row, dry_run=dry_run):
            yield f"{row.run.ljust(width)}  {sentence}"
    if not rows:
        yield "there are no runs yet"


def _told(row: Tidied, *, dry_run: bool) -> Iterator[str]:
    would = "would " if dry_run else ""
    if row.left:
        yield f"left as it is: {row.left}"
        return
    if row.folded:
        verb_of = "fold" if dry_run else "folded"
        yield f"{would}{verb_of} {plural(row.folded, 'candidate')}; undo: skillgit gc --unfold {row.run}"
    if row.unfolded:
        verb_of = "give back" if dry_run else "gave back"
        yield f"{would}{verb_of} {plural(row.unfolded, 'branch', 'branches')}"
    if row.dropped:
        verb_of = "drop" if dry_run else "dropped"
        yield f"{would}{verb_of} the evidence of {plural(row.dropped, 'event')}, {_size(row.freed)} uncompressed"
    if not (row.folded or row.unfolded or row.dropped):
        yield "nothing to do" + (f", {plural(row.attic, 'candidate')} in the attic" if row.attic else "")


def _size(count: int) -> str:
    """Return a number of bytes as people read it."""
    value, unit = float(count), 0
    while value >= _KILO and unit + 1 < len(_UNITS):
        value, unit = value / _KILO, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} {_UNITS[0]}"
