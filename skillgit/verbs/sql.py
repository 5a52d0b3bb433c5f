"""Queries of the index."""

from __future__ import annotations

from collections.abc import Iterator
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
    """The views log, scoreboard and item_history are the place to begin; docs/scripting.md lists all columns."""

    query: Annotated[str, Arg("QUERY")]


def _sql(session: VerbSession, request: SqlRequest) -> Answer[object]:
    if session.tabular or session.form is Form.JSONL:
        return Answer(rows=_rows(session, request.query))
    with plumbing.sql(session.workspace, request.query) as answer:
        columns, rows = answer.columns, [*answer.rows]
    if session.form is Form.JSON:
        return Answer("sql/1", {"columns": columns, "rows": [dict(zip(columns, row, strict=True)) for row in rows]})
    return Answer(lines=sql_lines(columns, rows, session.screen), pager=True)


def _rows(session: VerbSession, query: str) -> Iterator[object]:
    """Yield rows as they are read: an answer may be larger than memory, and its reader may leave."""
    with plumbing.sql(session.workspace, query) as answer:
        for row in answer.rows:
            yield row if session.tabular else dict(zip(answer.columns, row, strict=True))


SQL = Verb("sql", SqlRequest, _sql, forms=(Form.JSON, Form.JSONL, Form.PLAIN))
