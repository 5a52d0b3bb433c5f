"""How the index follows git: opening it, and bringing it up to date by comparing the tips of refs.

Git is the truth. An index on disk that cannot be used, for any reason, is replaced by one in memory, and one that
is damaged is removed, so that the next command builds it again.

An index as it was right after an event (:class:`PastIndex`) hides in temporary views what came later: of the
event's own run by the order of the run, of other runs by the time of the commit. Nothing is read again and nothing is
copied.

The index keeps the look at the refs that it was made from. As long as git's packed refs are the same file, only loose
ones are compared, and only the runs that they belong to are looked at. A deleted or newly packed ref makes it compare
everything.

Of a run that cannot be read for what its commits say, the error is kept, and the run is read again once a ref of it
moves, or by another skillgit. Where git lacks an object or cannot read it, neither error nor refs are kept, so that the
run is tried again each time: objects come back without a ref that moves.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from math import fsum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skillgit import __version__, errors
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import SkillgitError
from skillgit.files import shortage
from skillgit.index import schema
from skillgit.index.schema import KEY, Key
from skillgit.lazy import loaded_on_use
from skillgit.store import refs
from skillgit.store.refs import RefSnapshot
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk

with loaded_on_use():
    from skillgit.index import table_writer

PATIENCE = 5.0
"""Seconds to wait for another process that writes the index."""
CHECKED_AT_MOST = 4 << 20
"""Bytes of an index that SQLite looks through at every opening, which takes it 10 ms; a larger one is looked through
after something went wrong."""

_NOT_BROKEN = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
    }
)


class Index:
    """An index that is up to date with its repository.

    Attributes:
        today: The repository as it is now, where ``repo`` is a past state.
        broken: Runs whose history cannot be read, with the reason; they have no rows.
    """

    def __init__(self, repo: Repo, connection: sqlite3.Connection, *, on_disk: bool) -> None:
        self.repo = self.today = repo
        self.connection = connection
        self.on_disk = on_disk
        self.is_held = False
        self.broken = refresh(connection, repo)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def hold(self) -> None:
        """Stay at this moment until it is closed: rows in a read transaction, and the refs that they were made from."""
        if self.on_disk:
            self.connection.execute("BEGIN")
        self.repo = FrozenRepo(self.repo, dict(self.select("SELECT name, oid FROM ref")), frozenset(self.broken))
        self.is_held = True

    def refresh(self) -> None:
        """Take in what happened in git since; a file that cannot be used any more is left for an index in memory."""
        if self.is_held:
            return
        try:
            self.broken = refresh(self.connection, self.repo)
        except SkillgitError:
            raise
        except Exception as error:  # git has everything that damaged rows may break
            if not self.on_disk or isinstance(error, OSError):
                raise
            self._leave_disk(error)

    def select(self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        return self._answer(query, parameters)[1]

    def named(self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[dict[str, Any]]:
        """Return each row that a query finds, by the names of its columns."""
        names, rows = self._answer(query, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _answer(
        self, query: str, parameters: Sequence[object] | Mapping[str, object]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        def answer() -> tuple[list[str], list[tuple[Any, ...]]]:
            cursor = self.connection.execute(query, parameters)
            return [column[0] for column in cursor.description or ()], cursor.fetchall()

        try:
            return answer()
        except (sqlite3.DatabaseError, ValueError) as error:
            if not self.on_disk:
                raise
            # damage deep in the file shows only when it is read; text that is none, even in SQLite's own messages
            self._leave_disk(error)
            return answer()

    def column(self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> tuple[Any, ...]:
        """Return the first value of each row that a query finds."""
        return tuple(row[0] for row in self.select(query, parameters))

    def value(self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> Any:  # noqa: ANN401 - columns have types of their own
        """Return the first value that a query finds; None if it finds nothing."""
        return next(iter(self.column(query, parameters)), None)

    def skill_path(self, run: str) -> str:
        """Return the path of the skill folder that ``run`` trains."""
        return str(self.column("SELECT skill FROM run WHERE name = ?", (run,))[0])

    def key_of(self, commit: str) -> Key:
        """Return the place of the event in ``commit`` in its run."""
        query = f"SELECT {', '.join(KEY)} FROM event WHERE oid = ?"  # noqa: S608 - names are ours
        return tuple(self.select(query, (commit,))[0])

    def _leave_disk(self, error: Exception) -> None:
        if isinstance(error, sqlite3.ProgrammingError):  # the connection is closed, say; the file is not at fault
            raise error
        self.connection.close()
        if not is_about_access(error):
            with suppress(OSError):
                schema.discard(path_of(self.repo))
        self.connection, self.on_disk = schema.in_memory(), False
        self.broken = refresh(self.connection, self.repo)


def open_index(repo: Repo, *, patience: float = PATIENCE) -> Index:
    """Open the index of ``repo``, made if necessary, and update it; waits ``patience`` seconds for another writer."""
    for _ in range(2):
        try:
            path = path_of(repo)
            return _on_disk(repo, path, schema.connect(path, patience))
        except OSError:
            break
        except SkillgitError:
            raise
        except Exception as error:  # noqa: BLE001 - git has everything that damaged rows and messages may break
            if is_about_access(error):
                break
        with suppress(OSError):
            schema.discard(path)
    return Index(repo, schema.in_memory(), on_disk=False)


def is_about_access(error: Exception) -> bool:
    """Say whether the file could not be used now, which says nothing about what it holds."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_BROKEN or shortage(error) is not None


def path_of(repo: Repo) -> Path:
    return repo.private_dir / "index.db"


def rebuild(repo: Repo) -> Index:
    """Drop the index on disk and build it again from git."""
    with suppress(OSError):
        schema.discard(path_of(repo))
    return open_index(repo)


def _on_disk(repo: Repo, path: Path, connection: sqlite3.Connection) -> Index:
    try:
        is_new = not schema.is_current(connection)
        if is_new:
            schema.create(connection)
        elif path.stat().st_size <= CHECKED_AT_MOST:
            schema.check(connection)
        index = Index(repo, connection, on_disk=True)
    except BaseException:
        connection.close()
        raise
    if is_new:
        # the next opening tries again
        with suppress(sqlite3.OperationalError):
            schema.share(connection)
    return index


def refresh(connection: sqlite3.Connection, repo: Repo) -> dict[str, SkillgitError]:
    """Bring the index up to date; return the runs whose history cannot be read, with the reason."""
    _forget_of_other_readers(connection)
    look = repo.look()
    if look.stamp and _seen(connection) == (_packed(look, repo), _stamp(look)):
        return _known_errors(connection)
    before, now = moved_refs(connection, repo, look)
    if before == now:
        # on a read-only disk everything is compared again next time
        if look.stamp:
            with suppress(sqlite3.OperationalError), schema.write(connection):
                _keep(connection, repo, look)
        return _known_errors(connection)
    with schema.write(connection):
        # look again: another process may have been faster, and tips that are older than its rows would undo its work
        look = repo.look()
        before, now = moved_refs(connection, repo, look)
        passing_errors = table_writer.catch_up(connection, repo, before, now)
        _keep(connection, repo, None if passing_errors else look)
        return _known_errors(connection) | passing_errors


def _known_errors(connection: sqlite3.Connection) -> dict[str, SkillgitError]:
    """Return the runs whose commits say what cannot be read, with the reason."""
    rows = connection.execute("SELECT run, kind, message, hint FROM broken").fetchall()
    return {run: getattr(errors, kind)(message, hint=hint) for run, kind, message, hint in rows}


def _forget_of_other_readers(connection: sqlite3.Connection) -> None:
    """Let runs be read again that another skillgit could not read."""
    condition = "SELECT run FROM broken WHERE reader <> ?"
    if connection.execute(f"{condition} LIMIT 1", (__version__,)).fetchone() is None:
        return
    with schema.write(connection):
        for table in ("ref", "seen", "broken"):
            where = "" if table == "seen" else f" WHERE run IN ({condition})"
            connection.execute(f"DELETE FROM {table}{where}", (__version__,) if where else ())  # noqa: S608 - names are ours


def moved_refs(connection: sqlite3.Connection, repo: Repo, look: RefSnapshot) -> tuple[dict[str, str], dict[str, str]]:
    """Return the refs that the index has and what they are now, by ``look``; of runs where none moved, perhaps none."""
    branch = trunk(repo)
    stamp = _seen(connection)
    if stamp is not None and _packed(look, repo) == stamp[0]:
        before = loads(stamp[1])
        if before.keys() <= look.loose.keys():
            differing = {name: oid for name, oid in look.loose.items() if before.get(name) != oid}
            fresh = {
                name: oid for name, oid in differing.items() if name == branch or refs.parse(name) or refs.is_mark(name)
            }
            old_tips: dict[str, str] = {}
            for run in {refs.run_of(name) for name in fresh}:
                old_tips |= dict(connection.execute("SELECT name, oid FROM ref WHERE run = ?", (run,)))
            now = {name: oid for name, oid in (old_tips | fresh).items() if oid}
            return old_tips, now
    old_tips = dict(connection.execute("SELECT name, oid FROM ref"))
    tip = repo.tip(branch)
    return old_tips, repo.tips() | repo.marks() | ({branch: tip} if tip else {})


def _packed(look: RefSnapshot, repo: Repo) -> str:
    """Return what identifies git's packed refs and the choice of the trunk; empty if that is not known."""
    return f"{look.stamp} {trunk(repo)}" if look.stamp else ""


def _keep(connection: sqlite3.Connection, repo: Repo, look: RefSnapshot | None) -> None:
    """Remember in a transaction of the caller's what the index was made from; None if it is not up to date."""
    connection.execute("DELETE FROM seen")
    if look is not None and look.stamp:
        connection.execute("INSERT INTO seen VALUES (?, ?)", (_packed(look, repo), _stamp(look)))


def _seen(connection: sqlite3.Connection) -> tuple[str, str] | None:
    row: tuple[str, str] | None = connection.execute("SELECT packed, loose FROM seen").fetchone()
    return row


def _stamp(look: RefSnapshot) -> str:
    return json.dumps(dict(look.loose), sort_keys=True, separators=(",", ":"))


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


class FrozenRepo(Repo):
    """A repository with the refs of a moment, and of the runs ``live`` those of now; its objects are those of today."""

    def __init__(self, repo: Repo, tips: dict[str, str], live: frozenset[str] = frozenset()) -> None:
        super().__init__(repo.raw)
        self._tips, self._live_runs, self._today = tips, live, repo

    def tip(self, name: str) -> str | None:
        ref = refs.parse(name)
        is_held = name in self._tips or (ref is not None and ref.run not in self._live_runs)
        return self._tips.get(name) if is_held else self._today.tip(name)

    def tips(self, run: str = "") -> dict[str, str]:
        frozen = ((name, oid) for name, oid in self._tips.items() if (ref := refs.parse(name)) and run in {"", ref.run})
        live = (self._today.tips(name).items() for name in self._live_runs if run in {"", name})
        return dict(chain(frozen, *live))


class PastIndex(Index):
    """An index that ends with an event; today's index gives its connection away."""

    def __init__(self, index: Index, commit: str) -> None:
        self.connection, self.on_disk, self.broken = index.connection, index.on_disk, index.broken
        self.is_held = index.is_held
        self.today, self._commit = index.repo, commit
        self.repo: Repo = FrozenRepo(index.repo, _cut(index, commit))

    def refresh(self) -> None:
        """Do nothing: what happens now is not of the past."""

    def _leave_disk(self, error: Exception) -> None:
        self.repo, past = self.today, self.repo
        try:
            super()._leave_disk(error)
            _cut(self, self._commit)
        finally:
            self.repo = past


class _ExactSum:
    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: float) -> None:
        self._values.append(value)

    def finalize(self) -> float:
        try:
            return fsum(self._values)
        except OverflowError:  # a stranger's amounts
            return sum(self._values)


def _cut(index: Index, commit: str) -> dict[str, str]:
    """Hide what came after the event in ``commit``; return the refs as they were."""
    connection = index.connection
    run, time = index.select("SELECT run, time FROM event WHERE oid = ?", (commit,))[0]
    key = dict(zip(KEY, index.key_of(commit), strict=True))
    connection.execute(_CUT, {"run": run, "time": time, **key})
    connection.execute("CREATE UNIQUE INDEX temp.past_id ON past (id)")
    connection.execute("CREATE TEMP VIEW event AS SELECT * FROM main.event WHERE id IN (SELECT id FROM temp.past)")
    for table in schema.BY_EVENT:
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE event IN (SELECT id FROM temp.past)"  # noqa: S608 - names are ours
        )
    connection.create_aggregate(schema.EXACT_SUM, 1, _ExactSum)  # type: ignore[arg-type]
    connection.execute(f"CREATE TEMP VIEW tally AS {schema.TALLY}")
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
    """Rebuild the rows of runs; those of runs that had ended are taken as they are."""
    connection.execute("CREATE TEMP TABLE run AS SELECT * FROM main.run WHERE name IN (SELECT run FROM temp.event)")
    connection.execute("CREATE UNIQUE INDEX temp.run_name ON run (name)")
    cut = connection.execute(
        "SELECT DISTINCT run FROM main.event WHERE id NOT IN (SELECT id FROM temp.past)"
        " AND run IN (SELECT name FROM temp.run)"
    ).fetchall()
    table_writer.summarise(connection, [run for (run,) in cut])


def _tips(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield the refs as they were: those that still point to what was there, and where moving ones pointed.

    Nothing says when a person set a tag, so that there is none.
    """
    for name, oid in connection.execute(
        "SELECT name, oid FROM main.ref WHERE oid IN (SELECT oid FROM temp.event) OR run = ''"
    ):
        ref = refs.parse(name)
        if not refs.is_mark(name) and (ref is None or ref.kind in {refs.RefKind.REJECTED, refs.RefKind.TAG}):
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
