"""``skillgit diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, forms
from skillgit.cli.output import Form
from skillgit.cli.render import text_diff
from skillgit.cli.render.items import COLUMNS, change, flips, name
from skillgit.cli.verb import verb
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("diff")
@click.argument("a", shell_complete=complete_revisions)
@click.argument("b", required=False, shell_complete=complete_revisions)
@click.option("--stat", "what", flag_value="stat", help="Show how much changed in which file, and the scores")
@click.option("--items", "what", flag_value="items", help="Show which items were fixed and which were broken")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a difference, with 0 if there is none")
@forms(Form.JSON, Form.PLAIN, Form.NUL)
@click.pass_obj
def command(session: Session, a: str, b: str | None, what: str | None, *, exit_code: bool, form: Form) -> ExitCode:
    """Show the difference of two versions.

    Name them as A B or as A..B.

    On a pipe the text is what git diff prints, byte for byte, so that git apply takes it.
    """
    if b is None:
        a, dots, b = a.partition("..")
        if not (a and dots and b):
            raise click.UsageError("name two versions, as in v3 v7 or v3..v7", click.get_current_context())
    if form in {Form.PLAIN, Form.NUL} and what != "items":
        raise click.UsageError("--plain and -z go with --items", click.get_current_context())
    show = {"stat": _stat, "items": _items}.get(what or "", _text)
    differs = show(session, a, b, form)
    return ExitCode.NO if differs and exit_code else ExitCode.OK


def _text(session: Session, a: str, b: str, form: Form) -> bool:
    from skillgit.app.diff import diff  # noqa: PLC0415 - see the package

    result = diff(session.context, a, b)
    screen = session.screen_for_diff()
    if form is Form.JSON:
        session.output.document("diff/1", result)
    elif screen.colour or screen.terminal:
        text = result.text.decode(errors="replace")
        with session.output.paged():
            session.output.text(text_diff.coloured(text) if screen.colour else text_diff.plain(text))
    else:
        session.output.raw(result.text)
    return bool(result.text)


def _stat(session: Session, a: str, b: str, form: Form) -> bool:
    from skillgit.app.diff import stat  # noqa: PLC0415 - see the package

    result = stat(session.context, a, b)
    if form is Form.JSON:
        session.output.document("diff-stat/1", result)
    else:
        arrow = session.screen.glyphs.arrow
        session.output.text(result.text.rstrip("\n").split("\n") if result.text else ())
        session.output.text(
            [f" {name(result.a)} {arrow} {name(result.b)}   {change(result.a, result.b, session.screen)}"]
        )
    return bool(result.text)


def _items(session: Session, a: str, b: str, form: Form) -> bool:
    from skillgit.app.diff import items  # noqa: PLC0415 - see the package

    result = items(session.context, a, b)
    if form is Form.TEXT:
        session.output.text(flips(result, session.screen))
    else:
        head = {
            "a": result.a,
            "b": result.b,
            "metric": result.metric,
            "fixed": result.fixed,
            "broken": result.broken,
            "stable_pass": result.stable_pass,
            "stable_fail": result.stable_fail,
            "missing": result.missing,
            "p": result.p,
        }
        session.output.listing(form, result.rows, schema="diff-items/1", name="items", columns=COLUMNS, head=head)
    return bool(result.fixed or result.broken)
