"""Commands about whole runs."""

from __future__ import annotations

import webbrowser
from functools import partial
from itertools import chain
from pathlib import Path

import click

from skillgit.app.skill_format.atomic_write import refuse_way_out
from skillgit.cli.diagnostics import no_runs, tell_unreadable
from skillgit.cli.options import (
    as_of_option,
    complete_runs,
    document_form,
    flag,
    list_forms,
    option,
    run_argument,
    skill_option,
    verb,
)
from skillgit.cli.output import Form
from skillgit.cli.session import CommandSession
from skillgit.domain.address import version_label
from skillgit.domain.cost import Grouping
from skillgit.errors import NotFoundError, UsageError
from skillgit.view.numbers import count, score
from skillgit.view.plan import COST, cost_lines, unfinished
from skillgit.view.runs import RUNS, standing
from skillgit.view.text import sql_lines


@verb("runs")
@option("--sort", "Sort by KEY; -KEY begins with the highest", metavar="KEY")
@option("--filter filters", "Only matching runs, e.g. score>.6 or part of a name", multiple=True, metavar="CONDITION")
@skill_option
@as_of_option
@list_forms
@click.pass_obj
def runs_command(session: CommandSession, sort: str | None, filters: tuple[str, ...]) -> None:
    """List the runs, newest first.

    Runs that are being trained come before the others. KEY is name, skill, state, environment, model, optimizer, score,
    gain, test, test-gain, steps, cost, calls, tokens, started or updated; runs without such a value come last.

    A CONDITION is a key, a sign (= > < >= <=) and a value: model=qwen, state=running, test>=.5, cost<2. Texts need to
    contain the value only; a state is running, stopped, or how the run ended. Text without a sign is looked for in
    names, skills, states, environments and models. Runs match every CONDITION.
    """
    from skillgit.app.history.run_list import run_list  # noqa: PLC0415 - see the package
    from skillgit.app.history.status import spent_on_unfinished  # noqa: PLC0415 - as above

    listing = run_list(session.context, partial(RUNS.chosen, filters=filters, sort=sort or ""))
    rows = listing.rows
    making = spent_on_unfinished(session.context) if rows and session.form in {Form.TEXT, Form.JSON} else None
    tell_unreadable(session)
    lines = chain(RUNS.lines(rows, session.screen, now=session.now), unfinished(making, session.screen, with_run=True))
    session.listing(RUNS, rows, lines, head={"unfinished": making}, pager=True)
    if not rows and session.form is Form.TEXT:
        if listing.total:
            session.diagnostics.note(f"no run matches ({listing.total:,} in total)", hint="skillgit runs")
        else:
            no_runs(session)


@verb("status")
@skill_option
@as_of_option
@document_form
@click.pass_obj
def status_command(session: CommandSession) -> None:
    """Show the default run, its newest and its best version."""
    from skillgit.app.history.status import status  # noqa: PLC0415 - see the package

    result = status(session.context)
    tell_unreadable(session)
    session.show("status/1", result, standing(result, session.screen, session.now))
    if session.form is Form.JSON:
        return
    if result.run is None:
        no_runs(session)
    if not result.index_fresh:
        session.diagnostics.note(
            "the index on disk cannot be used; this was read from git", hint="skillgit fsck --repair"
        )


@verb("use")
@click.argument("run", shell_complete=complete_runs)
@document_form
@click.pass_obj
def use_command(session: CommandSession, run: str) -> None:
    """Make RUN the default run.

    Names like v7, best and head refer to it. Any beginning of a name that fits one run only will do.
    """
    from skillgit.app.workspace.revision_range import use  # noqa: PLC0415 - see the package

    row = use(session.context, run)
    best = f"best {version_label(row.best_version)} {score(row.best_score)}"
    session.show("use/1", {"run": row}, [f"default run is now {row.name}, {best}; next: skillgit log"])


@verb("cost")
@run_argument
@option(
    "--by",
    f"Add up by WHAT: {' '.join(Grouping)}; by role and stage unless you say",
    type=click.Choice([grouping.value for grouping in Grouping]),
    metavar="WHAT",
)
@flag("--all all_runs", "Show what each run has cost")
@skill_option
@as_of_option
@list_forms
@click.pass_obj
def cost_command(session: CommandSession, run: str | None, by: str | None, *, all_runs: bool) -> None:
    """Show what a run has cost, and where it went.

    A version costs everything since the version before it, rejected candidates included. The time of a role, a stage or
    a model is that of its calls, side by side ones added up; that of a step, a version or a run is wall time. Calls
    whose price is not known are in no sum of dollars, and are named.

    What a stopped run has spent on an event that is not recorded yet is below, apart from the sums.

    It says what the history holds, and not what ablate, retry, eval and others measured beside it, or what a merge
    that brought nothing spent; each of them prints that.
    """
    from skillgit.app.history.cost import cost  # noqa: PLC0415 - see the package

    if all_runs and (run is not None or by is not None):
        raise click.UsageError("--all goes without RUN and --by", click.get_current_context())
    result = cost(session.context, run, by=None if by is None else Grouping(by), all_runs=all_runs)
    if session.form is Form.TEXT and not (result.run or result.rows):
        return no_runs(session)
    return session.listing(COST, result.rows, cost_lines(result, session.screen), head=result, pager=True)


@verb("sql")
@click.argument("query")
@as_of_option
@list_forms
@click.pass_obj
def sql_command(session: CommandSession, query: str) -> None:
    """Answer an SQL query from the index, which it can only read.

    The views log, scoreboard and item_history are the place to begin; docs/sql.md lists all columns.
    """
    from skillgit.app.history.plumbing import sql  # noqa: PLC0415 - see the package

    with sql(session.context, query) as answer:
        records = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
        if session.form is Form.JSON:
            session.output.document("sql/1", {"columns": answer.columns, "rows": list(records)})
        elif session.form is Form.JSONL:
            session.output.records(records)
        elif session.tabular:
            session.output.table(answer.rows, nul=session.form is Form.NUL)
        else:
            session.page(sql_lines(answer.columns, list(answer.rows), session.screen))


@verb("report")
@run_argument
@option(
    "--output target",
    "Where to write the page; - writes it to stdout",
    type=click.Path(),
    metavar="FILE",
    default="report.html",
    show_default=True,
)
@flag("--open opens", "Show the page in the browser")
@skill_option
@as_of_option
@document_form
@click.pass_obj
def report_command(session: CommandSession, run: str | None, *, target: str, opens: bool) -> None:
    """Write a page about a run for people without the repository.

    One HTML file without scripts and without anything from elsewhere: scores and decisions of the gate, what training
    changed, each rule with its evidence, which item which version solves, rejected candidates, cost and settings. The
    same history gives the same bytes.

    The page quotes tasks, answers and feedback: look through it before you send it to others.
    """
    from skillgit.app.deliver.report import report  # noqa: PLC0415 - see the package
    from skillgit.cli.output import output_to  # noqa: PLC0415 - as above
    from skillgit.report.page import page  # noqa: PLC0415 - it loads the templates

    if target == "-" and (opens or session.form is Form.JSON):
        raise click.UsageError("--output - goes without --open and --json", click.get_current_context())
    result = report(session.context, run)
    content = page(result).encode()
    if target == "-":
        session.output.raw(content)
        return
    path = _place(session.context.directory / target)
    with output_to(path) as file:
        file.raw(content)
    name, best = result.run.name, result.run.best_version
    document = {"run": name, "version": best, "commit": result.rows[-1].commit, "path": path, "bytes": len(content)}
    parts = (f"wrote {path}", f"run {name}", f"best {version_label(best)}", f"{count(len(content))}B")
    session.show("report/1", document, [session.screen.dotted(parts)])
    if opens and not webbrowser.open(path.as_uri()):
        session.diagnostics.note("there is no browser to show it in")


def _place(path: Path) -> Path:
    """Return the file that ``path`` is or links to."""
    target = refuse_way_out(path.absolute(), follow=True).resolve()
    if target.is_dir():
        raise UsageError(f"{path} is a folder", hint=f"--output {path / 'report.html'}")
    if not target.parent.is_dir():
        raise NotFoundError(f"there is no folder {target.parent}", hint=f"mkdir -p {target.parent}")
    return target
