"""A page about a run."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from skillgit.app.skill_format.atomic_write import refuse_way_out, write_output
from skillgit.app.workspace.request import MisuseError, OfPast, OfRun, OfSkill, Opt
from skillgit.domain.address import version_label
from skillgit.errors import NotFoundError, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.output_file import STDOUT, refuse_two_answers
from skillgit.verbs.verb import Answer, Effect, Verb, VerbSession
from skillgit.view.numbers import count

with loaded_on_use():
    from skillgit.app.attribution import provenance
    from skillgit.app.deliver import report, summary
    from skillgit.app.history import show
    from skillgit.app.workspace import workspace
    from skillgit.report import page
    from skillgit.view import run_summary


@dataclass(frozen=True, kw_only=True)
class ReportRequest(OfRun, OfSkill, OfPast):
    """One HTML file without scripts and without anything from elsewhere: scores and decisions of the gate, what
    training changed, each rule with its evidence, which item which version solves, rejected candidates, cost and
    settings. The same history gives the same bytes.

    The page quotes tasks, answers and feedback: look through it before you send it to others.
    """

    output: Annotated[str, Opt("Where to write the page; - writes it to stdout", metavar="FILE")] = "report.html"
    opens: Annotated[bool, Opt("Show the page in the browser", "--open")] = False


def _report(session: VerbSession, request: ReportRequest) -> Answer[report.RunReport]:
    refuse_two_answers(session, request.output)
    if request.output == STDOUT and request.opens:
        raise MisuseError(f"--output {STDOUT} cannot be combined with --open")
    result = report.report(session.workspace, request.run)
    content = page.page(result).encode()
    if request.output == STDOUT:
        return Answer(result=result, lines=[content])
    path = _place(session.context.directory / request.output)
    write_output(path, content)
    name, best = result.run.name, result.run.best_version
    document = {"run": name, "version": best, "commit": result.rows[-1].commit, "path": path, "bytes": len(content)}
    parts = (f"wrote {path}", f"run {name}", f"best {version_label(best)}", f"{count(len(content))}B")
    is_shown = not request.opens or webbrowser.open(path.as_uri())
    notes = () if is_shown else [("there is no browser to show it in", "")]
    return Answer("report/1", result, [session.screen.dotted(parts)], notes=notes, document=document)


def _place(path: Path) -> Path:
    """Return the file that ``path`` is or links to."""
    target = refuse_way_out(path.absolute(), follow=True).resolve()
    if target.is_dir():
        raise UsageError(f"{path} is a folder", hint=f"--output {path / 'report.html'}")
    if not target.parent.is_dir():
        raise NotFoundError(f"there is no folder {target.parent}", hint=f"mkdir -p {target.parent}")
    return target


def _read(session: VerbSession, request: ReportRequest) -> Answer[report.RunReport]:
    return Answer(result=report.report(session.workspace, request.run))


RUN_REPORT = Verb("report", ReportRequest, _read)
"""The value that the page is made of."""
REPORT = Verb(
    "report", ReportRequest, _report, lambda request: Effect.READS if request.output == STDOUT else Effect.FILES
)


@dataclass(frozen=True, kw_only=True)
class SummaryRequest(ReportRequest):
    """A run in short has its newest events only."""

    newest: int = 1


def _in_short(session: VerbSession, request: SummaryRequest) -> Answer[run_summary.SummaryFacts]:
    in_short = summary.summary(session.workspace, request.run, most=request.newest)
    run, settings = in_short.run.name, None
    with suppress(UsageError):  # a clone may lack them
        settings = show.run_settings(session.workspace, f"{run}/v0")
    text = workspace.or_none(lambda: provenance.blame(session.workspace, f"{run}/best"))
    result = run_summary.SummaryFacts(summary=in_short, text=text, settings=settings)
    return Answer(result=result, lines=run_summary.lines(result, session.screen))


IN_SHORT = Verb("report", SummaryRequest, _in_short)
"""The run in short, as its page begins: it can be read while someone waits."""
