"""The index as it stood right after an event: its tables seen through views that leave out what came later.

Nothing is read from git again and nothing is copied. Temporary views hide the tables behind the same names, so that
every question to the index is answered from the past without knowing it. Of the event's own run, all that stands
before it in the order of the run is kept; of other runs, all that was committed by then.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillgit.index import table_writer
from skillgit.index.log_filter import KEY, key_of
from skillgit.index.refresh import Index
from skillgit.store import refs
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_CUT = f"""
    CREATE TEMP TABLE past AS SELECT e.id FROM main.event e WHERE CASE WHEN e.run = :run
        THEN ({", ".join(f"e.{name}" for name in KEY)}) <= ({", ".join(f":{name}" for name in KEY)})
        ELSE e.time <= :time END"""  # noqa: S608 - names are ours
_NOTES = """
    CREATE TEMP VIEW note AS SELECT * FROM main.note
    WHERE oid IN (SELECT oid FROM temp.event)
      AND (NOT json_valid(line) OR COALESCE(json_extract(line, '$.time'), '') <= '{time}')"""
_RUN_TIPS = """
    SELECT run, oid FROM (SELECT run, oid, ROW_NUMBER() OVER (PARTITION BY run ORDER BY {order}) AS place
                          FROM temp.event WHERE {kinds}) WHERE place = 1"""
_ON_THE_LINE = "kind NOT IN ('rejected', 'slow-proposed')"
_VIEW = re.compile(r"^CREATE VIEW", re.IGNORECASE)


class PastRepo(Repo):
    """A repository with the refs of a past moment; its objects are those of today."""

    def __init__(self, repo: Repo, tips: dict[str, str]) -> None:
        super().__init__(repo.raw)
        self._tips = tips

    def tip(self, name: str) -> str | None:
        return self._tips.get(name) if refs.parse(name) is not None else super().tip(name)

    def tips(self, run: str = "") -> dict[str, str]:
        return {name: oid for name, oid in self._tips.items() if not run or refs.run_of(name) == run}


class PastIndex(Index):
    """An index that ends with an event; today's index gives its connection away."""

    def __init__(self, index: Index, commit: str) -> None:
        self.connection, self.on_disk, self.broken = index.connection, index.on_disk, index.broken
        self.today, self._commit = index.repo, commit
        self.repo: Repo = PastRepo(index.repo, _cut(index, commit))

    def refresh(self) -> None:
        """Do nothing: what happens now is not of the past."""

    def _leave_disk(self, error: Exception) -> None:
        self.repo, past = self.today, self.repo
        super()._leave_disk(error)
        _cut(self, self._commit)
        self.repo = past


def _cut(index: Index, commit: str) -> dict[str, str]:
    """Hide what came after the event in ``commit``; return the refs as they were."""
    connection = index.connection
    run, time = index.select("SELECT run, time FROM event WHERE oid = ?", (commit,))[0]
    key = dict(zip(KEY, key_of(index, commit), strict=True))
    connection.execute(_CUT, {"run": run, "time": time, **key})
    connection.execute("CREATE UNIQUE INDEX temp.past_id ON past (id)")
    connection.execute("CREATE TEMP VIEW event AS SELECT * FROM main.event WHERE id IN (SELECT id FROM temp.past)")
    for table in table_writer.BY_EVENT:
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE event IN (SELECT id FROM temp.past)"  # noqa: S608 - names are ours
        )
    moment = datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")
    connection.execute(_NOTES.format(time=moment))
    _summarise(connection)
    tips = dict(_tips(connection))
    connection.execute("CREATE TEMP TABLE ref AS SELECT * FROM main.ref WHERE 0")
    entries = ((name, oid, refs.parse(name)) for name, oid in tips.items())
    rows = ((name, oid, ref.run if ref else "") for name, oid, ref in entries)
    connection.executemany("INSERT INTO temp.ref (name, oid, run) VALUES (?, ?, ?)", rows)
    for (query,) in connection.execute("SELECT sql FROM main.sqlite_schema WHERE type = 'view'").fetchall():
        connection.execute(_VIEW.sub("CREATE TEMP VIEW", query))
    return tips


def _summarise(connection: sqlite3.Connection) -> None:
    """Make the rows of runs anew; those of runs that had ended are taken as they are."""
    connection.execute("CREATE TEMP TABLE run AS SELECT * FROM main.run WHERE name IN (SELECT run FROM temp.event)")
    connection.execute("CREATE UNIQUE INDEX temp.run_name ON run (name)")
    cut = connection.execute(
        "SELECT DISTINCT run FROM main.event WHERE id NOT IN (SELECT id FROM temp.past)"
        " AND run IN (SELECT name FROM temp.run)"
    ).fetchall()
    table_writer.summarise(connection, [run for (run,) in cut])


def _tips(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield the refs as they were: those that still point to what was there, and where moving ones pointed."""
    for name, oid in connection.execute(
        "SELECT name, oid FROM main.ref WHERE oid IN (SELECT oid FROM temp.event) OR name = :main", {"main": refs.MAIN}
    ):
        ref = refs.parse(name)
        if ref is None or ref.kind in {refs.RefKind.REJECTED, refs.RefKind.TAG}:
            yield name, oid
    order = ", ".join(f"{name} DESC" for name in KEY)
    for name_of, kinds in ((refs.run_branch, _ON_THE_LINE), (refs.slow_branch, "kind = 'slow-proposed'")):
        for run, oid in connection.execute(_RUN_TIPS.format(order=order, kinds=kinds)):
            yield name_of(run), oid
    for run, oid in connection.execute(
        "SELECT r.name, e.oid FROM temp.run r JOIN temp.event e ON e.run = r.name AND e.version = r.best_version"
        " WHERE e.kind <> 'measured'"
    ):
        yield refs.best_branch(run), oid
