"""``skillgit sql``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, list_forms
from skillgit.cli.output import Form
from skillgit.cli.render.sql import lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("sql")
@click.argument("query")
@as_of_option
@list_forms
@click.pass_obj
def command(session: Session, query: str, form: Form) -> None:
    """Answer an SQL query from the index, which it can only read.

    The views log, scoreboard and item_history are the place to begin; docs/sql.md lists all columns.
    """
    from skillgit.app.sql import sql  # noqa: PLC0415 - see the package

    with sql(session.context, query) as answer:
        named = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
        if form is Form.JSON:
            session.output.document("sql/1", {"columns": answer.columns, "rows": list(named)})
        elif form is Form.JSONL:
            session.output.records(named)
        elif form in {Form.PLAIN, Form.NUL}:
            session.output.table(answer.rows, nul=form is Form.NUL)
        else:
            rows = list(answer.rows)
            with session.output.paged():
                session.output.text(lines(answer.columns, rows, session.screen))
