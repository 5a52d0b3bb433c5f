"""Commands about whole runs."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

import click

from skillgit.app.skill_format.atomic_write import refuse_way_out
from skillgit.cli.diagnostics import tell_unreadable
from skillgit.cli.options import as_of_option, complete_runs, document_form, list_forms, run_argument, verb
from skillgit.cli.output import Form
from skillgit.domain.address import version_label
from skillgit.domain.cost import Grouping
from skillgit.errors import NotFoundError, UsageError
from skillgit.view.numbers import count, plural, score
from skillgit.view.plan import COST_COLUMNS, cost_lines, unfinished
from skillgit.view.runs import RUN_COLUMNS, run_lines, standing
from skillgit.view.text import sql_lines

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.cli.session import CommandSession


@verb("runs")
@as_of_option
@list_forms
@click.pass_obj
def runs_command(session: CommandSession, form: Form) -> None:
    """List the runs, newest first."""
    from skillgit.app.history.status import runs, spent_on_unfinished  # noqa: PLC0415 - see the package

    rows = runs(session.context)
    making = spent_on_unfinished(session.context) if rows and form in {Form.TEXT, Form.JSON} else None
    tell_unreadable(session)
    if form is not Form.TEXT:
        head = {"unfinished": making}
        session.output.listing(form, rows, schema="runs/1", name="runs", columns=RUN_COLUMNS, head=head)
        return
    with session.output.paged():
        session.output.text(run_lines(rows, session.screen, session.now))
        session.output.text(unfinished(making, session.screen, with_run=True))
    if not rows:
        session.diagnostics.note("there are no runs yet")
        session.diagnostics.hint("skillgit train CONFIG")


@verb("status")
@as_of_option
@document_form
@click.pass_obj
def status_command(session: CommandSession, form: Form) -> None:
    """Show the default run, its newest and its best version."""
    from skillgit.app.history.status import status  # noqa: PLC0415 - see the package

    result = status(session.context)
    tell_unreadable(session)
    if form is Form.JSON:
        session.output.document("status/1", result)
        return
    session.output.text(standing(result, session.screen, session.now))
    if result.run is None:
        session.diagnostics.note("there are no runs yet")
        session.diagnostics.hint("skillgit train CONFIG")
    if not result.index_fresh:
        session.diagnostics.note("the index on disk is stale; this was read from git")
        session.diagnostics.hint("skillgit reindex")


@verb("use")
@click.argument("run", shell_complete=complete_runs)
@document_form
@click.pass_obj
def use_command(session: CommandSession, run: str, form: Form) -> None:
    """Make RUN the default run.

    Names like v7, best and head refer to it. Any beginning of a name that fits one run only will do.
    """
    from skillgit.app.workspace.revision_range import use  # noqa: PLC0415 - see the package

    row = use(session.context, run)
    if form is Form.JSON:
        session.output.document("use/1", {"run": row})
    else:
        best = f"best {version_label(row.best_version)} {score(row.best_score)}"
        session.output.text([f"default run is now {row.name}, {best}; next: skillgit log"])


@verb("cost")
@run_argument
@click.option(
    "--by",
    type=click.Choice([grouping.value for grouping in Grouping]),
    metavar="WHAT",
    help=f"Add up by WHAT: {' '.join(Grouping)}; by role and stage unless you say",
)
@click.option("--all", "all_runs", is_flag=True, help="Show what each run has cost")
@as_of_option
@list_forms
@click.pass_obj
def cost_command(session: CommandSession, run: str | None, by: str | None, *, all_runs: bool, form: Form) -> None:
    """Show what a run has cost, and where it went.

    A version costs everything since the version before it, rejected candidates included. The time of a role, a stage or
    a model is that of its calls, side by side ones added up; that of a step, a version or a run is wall time. Calls
    whose price is not known count as nothing, and are named.

    What a stopped run has spent on an event that is not recorded yet is below, apart from the sums.

    It says what the history holds, and not what ablate, retry, eval and others measured beside it, or what a merge
    that brought nothing spent; each of them prints that.
    """
    from skillgit.app.history.cost import cost  # noqa: PLC0415 - see the package

    if all_runs and (run is not None or by is not None):
        raise click.UsageError("--all goes without RUN and --by", click.get_current_context())
    result = cost(session.context, run, by=None if by is None else Grouping(by), all_runs=all_runs)
    if form is not Form.TEXT:
        head = {
            "run": result.run,
            "by": result.by,
            "share_of": result.share_of,
            "total": result.total,
            "unpriced": result.unpriced,
            "unfinished": result.unfinished,
        }
        session.output.listing(form, result.rows, schema="cost/1", name="rows", columns=COST_COLUMNS, head=head)
        return
    if not result.run and not result.rows:
        session.diagnostics.note("there are no runs yet")
        session.diagnostics.hint("skillgit train CONFIG")
        return
    with session.output.paged():
        session.output.text(cost_lines(result, session.screen))


@verb("sql")
@click.argument("query")
@as_of_option
@list_forms
@click.pass_obj
def sql_command(session: CommandSession, query: str, form: Form) -> None:
    """Answer an SQL query from the index, which it can only read.

    The views log, scoreboard and item_history are the place to begin; docs/sql.md lists all columns.
    """
    from skillgit.app.history.plumbing import sql  # noqa: PLC0415 - see the package

    with sql(session.context, query) as answer:
        records = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
        if form is Form.JSON:
            session.output.document("sql/1", {"columns": answer.columns, "rows": list(records)})
        elif form is Form.JSONL:
            session.output.records(records)
        elif form in {Form.PLAIN, Form.NUL}:
            session.output.table(answer.rows, nul=form is Form.NUL)
        else:
            rows = list(answer.rows)
            with session.output.paged():
                session.output.text(sql_lines(answer.columns, rows, session.screen))


@verb("reindex")
@document_form
@click.pass_obj
def reindex_command(session: CommandSession, form: Form) -> None:
    """Drop the index and rebuild it from git.

    Nothing is lost: history is in git, the index only makes reading fast.
    """
    from skillgit.app.upkeep.maintenance import reindex  # noqa: PLC0415 - see the package

    result = reindex(session.context)
    tell_unreadable(session)
    if form is Form.JSON:
        session.output.document("reindex/1", result)
    else:
        counts = f"{plural(result.runs, 'run')}, {plural(result.events, 'event')}"
        session.output.text([f"indexed {counts} in {result.seconds:.2f} s"])


_STDOUT = "-"


@verb("report")
@run_argument
@click.option(
    "--output",
    "target",
    type=click.Path(),
    metavar="FILE",
    default="report.html",
    show_default=True,
    help="Where to write the page; - writes it to stdout",
)
@click.option("--open", "opens", is_flag=True, help="Show the page in the browser")
@as_of_option
@document_form
@click.pass_obj
def report_command(session: CommandSession, run: str | None, *, target: str, opens: bool, form: Form) -> None:
    """Write a page about a run for people without the repository.

    One HTML file without scripts and without anything from elsewhere: scores and decisions of the gate, what training
    changed, each rule with its evidence, which item which version solves, rejected candidates, cost and settings. The
    same history gives the same bytes.

    The page quotes tasks, answers and feedback: look through it before you send it to others.
    """
    from skillgit.app.deliver.report import report  # noqa: PLC0415 - see the package
    from skillgit.cli.output import output_to  # noqa: PLC0415 - as above
    from skillgit.report.page import page  # noqa: PLC0415 - it loads the templates

    if target == _STDOUT and (opens or form is Form.JSON):
        raise click.UsageError("--output - goes without --open and --json", click.get_current_context())
    result = report(session.context, run)
    content = page(result).encode()
    if target == _STDOUT:
        session.output.raw(content)
        return
    path = _place(session.context.directory / target)
    with output_to(path) as file:
        file.raw(content)
    name, best = result.run.name, result.run.best_version
    if form is Form.JSON:
        document = {"run": name, "version": best, "commit": result.rows[-1].commit, "path": path, "bytes": len(content)}
        session.output.document("report/1", document)
    else:
        summary = f" {session.screen.glyphs.dot} ".join(
            (str(path), f"run {name}", f"best {version_label(best)}", f"{count(len(content))}B")
        )
        session.output.text([f"wrote {summary}"])
    if opens and not webbrowser.open(path.as_uri()):
        session.diagnostics.note("there is no browser to show it in")


def _place(path: Path) -> Path:
    """Return the file that ``path`` is or links to.

    Raises:
        NotFoundError: It would lie in a folder that does not exist.
    """
    target = refuse_way_out(path.absolute(), follow=True).resolve()
    if target.is_dir():
        raise UsageError(f"{path} is a folder", hint=f"--output {path / 'report.html'}")
    if not target.parent.is_dir():
        raise NotFoundError(f"there is no folder {target.parent}", hint=f"mkdir -p {target.parent}")
    return target
