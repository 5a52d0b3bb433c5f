"""Checks of history, of skills and of what would be published, with their repair, and what is tidied up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from skillgit.app.upkeep.requests import GcRequest
from skillgit.app.workspace.request import Arg, MisuseError, OfRun, OfSkill, Opt, refuse_together, refuse_without
from skillgit.domain.finding import REPAIR, exit_code
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import LIST, Answer, Effect, Form, Verb, VerbSession
from skillgit.view import findings as shown
from skillgit.view.lists import LISTS

with loaded_on_use():
    from skillgit.app.exchange import push_check
    from skillgit.app.measure import library_gate
    from skillgit.app.skill_format import library_lint, lint
    from skillgit.app.upkeep import fsck, maintenance
    from skillgit.view import gate


@dataclass(frozen=True, kw_only=True)
class FsckRequest(OfRun):
    """Checks all runs unless you name one. Exits with 1 if there is a problem, after --repair if one is left; remarks
    do not count.

    --deep makes each run again from its commits, without asking a model: it folds all events, asks every gate again
    with the recorded outcomes of items, and applies every patch to its base again. It says what it could not make again
    for want of evidence, and ends each run with the digest of its commits, which two copies share exactly if they are
    equal.

    --repair restores tags, best branches and the ref that keeps evidence, sets damaged objects aside, removes lock
    files of dead processes, and steps a run whose end lacks objects back to its last whole event. It compares the index
    with git and rebuilds one that is missing, damaged or stale; nothing is lost, for history is in git.
    """

    deep: Annotated[bool, Opt("Make every gate and patch again, and compare the index with git")] = False
    repair: Annotated[bool, Opt("Repair what can be derived from history, and rebuild a bad index")] = False


def _fsck(session: VerbSession, request: FsckRequest) -> Answer[object]:
    report = fsck.fsck(session.context, request.run, deep=request.deep, repair=request.repair)
    notes = []
    if session.form is Form.TEXT and any(problem.repairable for problem in report.problems):
        waits = "what can be repaired in a run waits until nothing in it is broken"
        notes = [(waits, "") if request.repair else ("", REPAIR)]
    return Answer(
        table=LISTS["fsck"],
        rows=[*map(shown.FSCK.record, report.problems)],
        result=report,
        lines=shown.problem_lines(report, session.screen),
        exit_code=exit_code(report.problems),
        notes=notes,
    )


FSCK = Verb("fsck", FsckRequest, _fsck, lambda request: Effect.HISTORY if request.repair else Effect.READS, forms=LIST)


@dataclass(frozen=True, kw_only=True)
class LintRequest(OfSkill):
    """PATH is a skill folder, a SKILL.md, or a folder that holds skills; the default is the current folder. REV checks
    the skill of a version, or all skills of a commit. Each finding names its rule, the line and what to do. Exits with
    1 if there is an error; warnings leave it at 0.

    With --library it forecasts, without a model, what Claude Code and Codex show of each skill: whole descriptions, cut
    ones, names alone, or nothing. Without PATH it reads the folders where each agent looks. With --base it says what
    the skills that changed since REV take from the other skills of the library in PATH: agents show less of one, or
    name or description are nearly the same. Exits with 1 if they take something.

    With --secrets it looks for secrets, leaked items and large files in what a push would publish: every commit of
    branches and tags that no remote has; of REV, everything that REV leads to; of A..B, what came after A. What it
    finds is named with commit, path and line, and with a fingerprint that the file .skillgit-allow can hold. A push
    looks for the same, and push --dry-run sends nothing.
    """

    words: Annotated[tuple[str, ...], Arg("[PATH|REV]...")] = ()
    strict: Annotated[bool, Opt("Count warnings as errors")] = False
    library: Annotated[
        bool, Opt("Check what agents list of all skills together; PATH is a folder of installed skills")
    ] = False
    window: Annotated[int | None, Opt("With --library: tokens of the context window", metavar="N", least=0)] = None
    base: Annotated[
        str | None,
        Opt("With --library: judge what changed since REV", metavar="REV", words="revisions"),
    ] = None
    head: Annotated[str, Opt("With --base: the changed skills", metavar="REV", words="revisions")] = "HEAD"
    secrets: Annotated[bool, Opt("Look for secrets, leaked items and large files in what a push would publish")] = False
    evidence: Annotated[bool, Opt("With --secrets: look at evidence and folded candidates too")] = False


def _lint(session: VerbSession, request: LintRequest) -> Answer[object]:
    refuse_together(request, "library", "secrets")
    refuse_without(request, "library", "window", "base")
    refuse_without(request, "base", "head")
    refuse_together(request, "base", "window")
    refuse_without(request, "secrets", "evidence")
    if request.secrets:
        if request.words[1:]:
            raise MisuseError("--secrets takes one REV or RANGE")
        if request.words and request.evidence:
            raise MisuseError("--evidence looks at all runs, and REV at one line")
        result = push_check.scan(session.workspace, next(iter(request.words), None), evidence=request.evidence)
        return Answer(
            "scan/1",
            shown.scan_document(result),
            shown.scanned(result, session.screen),
            exit_code=exit_code(result.findings, strict=request.strict),
            notes=[(sentence, "") for sentence in result.unchecked] if session.form is Form.TEXT else (),
        )
    if request.base is not None:
        if len(request.words) != 1:
            raise MisuseError("--base takes one PATH, a folder of installed skills")
        verdict = library_gate.library_gate(session.workspace, request.base, request.head, Path(request.words[0]))
        lines = gate.library_lines(verdict, session.screen)
        return Answer("library-gate/1", verdict, lines, exit_code=verdict.exit_code)
    if request.library:
        table = library_lint.lint_library(session.context, request.words, request.window)
        findings = table.findings.findings
        document, lines, schema = shown.library_document(table), shown.library_lines(table, session.screen), "library/1"
    else:
        report = lint.lint(session.workspace, request.words)
        findings = report.findings
        document, lines, schema = shown.lint_document(report), shown.linted(report, session.screen), "lint/1"
    return Answer(schema, document, lines, exit_code=exit_code(findings, strict=request.strict))


LINT = Verb("lint", LintRequest, _lint)


def _gc(session: VerbSession, request: GcRequest) -> Answer[object]:
    rows = maintenance.gc(session.context, request)
    has_space = session.form is Form.TEXT and any(row.dropped for row in rows) and not request.dry_run
    return Answer(
        table=LISTS["gc"],
        rows=rows,
        result={"dry_run": request.dry_run},
        lines=shown.gc_lines(rows, dry_run=request.dry_run),
        notes=[("", "git gc --prune=now frees the space")] if has_space else (),
    )


GC = Verb("gc", GcRequest, _gc, Effect.HISTORY, forms=LIST)
