"""Whether an index says what a rebuilt one would say."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from enum import StrEnum
from typing import Any

from skillgit.errors import HistoryError
from skillgit.index import schema
from skillgit.index.refresh import PATIENCE, Index, is_about_access, path_of
from skillgit.store.repo import Repo


def _content_queries() -> dict[str, str]:
    """Return queries for a run and its rows by table; numbers of events depend on the order in which they came."""
    event = ", ".join(name for name in schema.columns_of("event") if name != "id")
    tally = ", ".join(name for name in schema.columns_of("tally") if not name.endswith("_rest"))
    return {
        **{table: f"SELECT run, * FROM {table}" for table in ("plan", "gauge")},  # noqa: S608 - names are ours
        **{table: f"SELECT e.run, e.oid, t.* FROM event e JOIN {table} t ON t.event = e.id" for table in _NUMBERED},  # noqa: S608 - names are ours
        "run": "SELECT name, * FROM run",
        "event": f"SELECT run, {event} FROM event",  # noqa: S608 - names are ours
        "tally": f"SELECT run, {tally} FROM tally",  # noqa: S608 - names are ours
        "version": """
            SELECT v.run, v.version, e.oid, m.oid, v.inherited, v.hard, v.soft, v.n, v.scored
            FROM version v JOIN event e ON e.id = v.event LEFT JOIN event m ON m.id = v.measured_by""",
        "search": "SELECT e.run, e.oid, t.subject, t.body, t.skill FROM event e JOIN search t ON t.rowid = e.id",
        "note": "SELECT '', oid, position, line FROM note",
        "ref": "SELECT '', name, oid FROM ref",
    }


_NUMBERED = tuple(table for table in schema.BY_EVENT if table != "version")


def content(index: Index) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Return (table, run) to its rows, without what depends on how the index came to be."""
    tables: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for table, rows in ((table, index.select(query)) for table, query in _content_queries().items()):
        for row in rows:
            values = (row[1], *row[3:]) if table in _NUMBERED else row[1:]
            tables.setdefault((table, row[0]), []).append(values)
    return {key: sorted(rows, key=repr) for key, rows in tables.items()}


def differing_runs(index: Index) -> frozenset[str]:
    with Index(index.repo, schema.in_memory(), on_disk=False) as fresh:
        actual, reference = content(index), content(fresh)
    keys = actual.keys() | reference.keys()
    return frozenset(key[1] for key in keys if actual.get(key) != reference.get(key))


OF_ROWS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, sqlite3.Error)
"""The errors that rows lead to which are not as they were written."""


def drop_damaged(repo: Repo, error: BaseException | None = None) -> HistoryError | None:
    """Remove the index on disk if it contradicts git, which takes as long as building it; return the error then.

    ``error`` is what was raised; a wrong use of SQLite, as of an index that is closed, says nothing about the file.
    """
    if isinstance(error, sqlite3.ProgrammingError) or fault(repo) in {None, IndexFault.MISSING, IndexFault.UNUSABLE}:
        return None
    with suppress(OSError):
        schema.discard(path_of(repo))
    return HistoryError(
        "the index of this repository was damaged and has been removed; git has everything that it held",
        hint="run the command again, which rebuilds the index",
    )


class IndexFault(StrEnum):
    MISSING = "missing"
    DAMAGED = "damaged"
    STALE = "stale"
    UNUSABLE = "not usable"  # the file or its folder cannot be opened now, which says nothing about what it holds


def fault(repo: Repo) -> IndexFault | None:
    """Return how the index on disk differs from what git makes it; None where git cannot be read."""
    try:
        with Index(repo, schema.in_memory(), on_disk=False) as fresh:
            reference = content(fresh)
    except Exception:  # noqa: BLE001 - no error here is the file's fault
        return None
    try:
        if not path_of(repo).is_file():
            return IndexFault.MISSING
        with closing(schema.connect(path_of(repo), PATIENCE)) as connection:
            schema.check(connection)
            if not schema.is_current(connection):
                return IndexFault.STALE
            # another process may have written events since
            index = Index(repo, connection, on_disk=True)
            is_same = content(index) == reference
    except Exception as error:  # noqa: BLE001 - rows that are not as they were written fail anywhere
        is_closed = isinstance(error, OSError) or is_about_access(error)
        return IndexFault.UNUSABLE if is_closed else IndexFault.DAMAGED
    if not index.on_disk:
        return IndexFault.DAMAGED
    return None if is_same else IndexFault.STALE
