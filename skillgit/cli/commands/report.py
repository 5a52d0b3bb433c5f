"""``skillgit report``."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

import click

from skillgit.app.folders.typed import refuse_way_out
from skillgit.cli.options import as_of_option, document_form, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render.words import count
from skillgit.cli.verb import verb
from skillgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.cli.session import Session

_STDOUT = "-"


@verb("report")
@run_argument
@click.option(
    "-o",
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
def command(session: Session, run: str | None, *, target: str, opens: bool, form: Form) -> None:
    """Write a page that tells a run to people who have no repository.

    One HTML file without scripts and without anything from elsewhere: scores and decisions of the gate, what training
    changed, each rule with its evidence, which item which version solves, rejected candidates, cost and settings. The
    same history gives the same bytes.

    The page quotes tasks, answers and feedback: look through it before you send it to others.
    """
    from skillgit.app.report.report import report  # noqa: PLC0415 - see the package
    from skillgit.cli.output_file import output_to  # noqa: PLC0415 - as above
    from skillgit.report.page import page  # noqa: PLC0415 - it loads the templates

    if target == _STDOUT and (opens or form is Form.JSON):
        raise click.UsageError("-o - goes without --open and --json", click.get_current_context())
    found = report(session.context, run)
    content = page(found).encode()
    if target == _STDOUT:
        session.output.raw(content)
        return
    path = _place(session.context.directory / target)
    with output_to(path) as file:
        file.raw(content)
    name, best = found.run.name, found.run.best_version
    if form is Form.JSON:
        document = {"run": name, "version": best, "commit": found.rows[-1].commit, "path": path, "bytes": len(content)}
        session.output.document("report/1", document)
    else:
        told = f" {session.screen.glyphs.dot} ".join(
            (str(path), f"run {name}", f"best v{best}", f"{count(len(content))}B")
        )
        session.output.text([f"wrote {told}"])
    if opens and not webbrowser.open(path.as_uri()):
        session.diagnostics.note("there is no browser to show it in")


def _place(path: Path) -> Path:
    """Return the file that ``path`` is or links to.

    Raises:
        UsageError: It is a folder.
        NotFoundError: It would lie in a folder that does not exist.
    """
    found = refuse_way_out(path.absolute(), followed=True).resolve()
    if found.is_dir():
        raise UsageError(f"{path} is a folder", hint=f"-o {path / 'report.html'}")
    if not found.parent.is_dir():
        raise NotFoundError(f"there is no folder {found.parent}", hint=f"mkdir -p {found.parent}")
    return found
