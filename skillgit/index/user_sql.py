"""Queries of other people's making: whatever they say, nothing is changed by them."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from skillgit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.index.refresh import Index

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_TELLING = frozenset(
    {"data_version", "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"}
)
"""Pragmas that only tell."""
_HARMFUL = frozenset({"load_extension", "fts3_tokenizer", "fts5"})
"""Functions that reach beyond the index."""
_FAILURES = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError)
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PACE = 20_000
"""SQLite's own steps between two looks at Ctrl-C."""
_TABLES = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    columns: tuple[str, ...]  # the names of its columns; equal ones are numbered
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def ask(index: Index, query: str) -> Iterator[QueryResult]:
    """Run a query that can only read; its rows exist as long as the block lasts."""
    with _guarded(index) as connection:
        try:
            cursor = connection.execute(query)
        except _FAILURES as error:
            raise _refusal(index, connection, error) from error
        names = [column[0] for column in cursor.description or ()]
        if not names:
            raise UsageError("this is no query", hint=_hint(connection))
        yield QueryResult(columns=_unique(names), rows=_rows(index, connection, cursor))


@contextmanager
def _guarded(index: Index) -> Iterator[sqlite3.Connection]:
    """Yield a connection that cannot write: to the file where there is one, else the index in memory itself."""
    connection = index.connection
    files = [row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"]
    hidden = connection.execute("SELECT 1 FROM temp.sqlite_schema LIMIT 1").fetchone()
    if files and files[0] and not hidden:
        connection = sqlite3.connect(f"file:{quote(files[0])}?mode=ro", uri=True, isolation_level=None)
    try:
        # full text is prepared by statements that no query may make
        connection.execute("SELECT rowid FROM search LIMIT 0")
        connection.execute("PRAGMA query_only = ON")
        # a handler that Python runs lets Ctrl-C through
        connection.set_progress_handler(lambda: 0, _PACE)
        connection.set_authorizer(_may)
        yield connection
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
        if connection is not index.connection:
            connection.close()


def _may(action: int, first: str | None, second: str | None, database: str | None, inside: str | None) -> int:
    del database, inside
    is_allowed = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and first in _TELLING)
    harmful = action == sqlite3.SQLITE_FUNCTION and second in _HARMFUL
    return sqlite3.SQLITE_OK if is_allowed and not harmful else sqlite3.SQLITE_DENY


def _rows(index: Index, connection: sqlite3.Connection, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    try:
        yield from cursor
    except _FAILURES as error:
        raise _refusal(index, connection, error) from error
    finally:
        cursor.close()


def _refusal(index: Index, connection: sqlite3.Connection, error: Exception) -> BaseException:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE or "decode" in str(error):
        from skillgit.index.index_check import drop_damaged  # noqa: PLC0415 - after something went wrong

        # text that is none may be of the query's own making
        damage = drop_damaged(index.today)
        if damage is not None:
            return damage
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return KeyboardInterrupt()
    message = " ".join(str(error).split()).rstrip(".")
    if any(word in message for word in ("not authorized", "authorization denied", "prohibited", "cannot modify")):
        return UsageError("this may only read the index", hint=_hint(connection))
    return UsageError(f"SQL: {message[:1].lower()}{message[1:]}", hint=_hint(connection, message))


def _hint(connection: sqlite3.Connection, message: str = "") -> str:
    """Return the table that is probably meant, or all of them."""
    names = sorted(row[0] for row in connection.execute(_TABLES) if not row[0].startswith("search_"))
    missing = message.partition("no such table: ")[2]
    near = get_close_matches(missing, names, n=1) if missing else []
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(names)}"


def _unique(names: list[str]) -> tuple[str, ...]:
    unique: list[str] = []
    for name in names:
        number = 1
        label = name
        while label in unique:
            number += 1
            label = f"{name}_{number}"
        unique.append(label)
    return tuple(unique)
