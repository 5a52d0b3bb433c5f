"""Queries of the index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfPast
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import Answer, Form, Verb, VerbSession
from skillgit.view.text import sql_lines

with loaded_on_use():
    from skillgit.app.history import plumbing


@dataclass(frozen=True, kw_only=True)
class SqlRequest(OfPast):
    """The views log, scoreboard and item_history are the place to begin; docs/sql.md lists all columns."""

    query: Annotated[str, Arg("QUERY")]


def _sql(session: VerbSession, request: SqlRequest) -> Answer:
    with plumbing.sql(session.context, request.query) as answer:
        columns, rows = answer.columns, [*answer.rows]
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return Answer(
        "sql/1",
        {"columns": columns, "rows": records},
        sql_lines(columns, rows, session.screen),
        rows=rows if session.tabular else records,
        pager=True,
    )


SQL = Verb("sql", SqlRequest, _sql, forms=(Form.JSON, Form.JSONL, Form.PLAIN))
