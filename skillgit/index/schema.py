"""The tables and views of the index, and its file: opening, making, dropping.

There are no migrations: an index of another schema is dropped and built again from git.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from skillgit.files import locked
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    import sqlite_utils

    from skillgit.domain import event as events

_PATIENCE = 0.2
"""Seconds: someone waits at a prompt."""


def glance(path: Path, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]] | None:
    """Return the rows of a query of the index file ``path``; None if it cannot be used as it is."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                return None
            return connection.execute(query, values).fetchall()
    except (sqlite3.Error, ValueError):
        return None


SCHEMA = 17
"""Grows by one with every change of the tables, the views or what is written into them."""

HIDEABLE = "kind IN ('rejected', 'slow-proposed', 'slow-merged')"
"""The events that lists can leave out; a query has to say it in these words to be answered from their index."""


def _columns(text: str) -> dict[str, type]:
    """Return name to type of columns as they are written below; those without a type are text."""
    types: dict[str, type] = {"": str, "str": str, "int": int, "float": float}
    pairs = (column.partition(":") for column in text.split())
    return {name: types[kind] for name, _, kind in pairs}


_AMOUNTS = """calls:int tokens_in:int tokens_out:int usd:float seconds:float cached:int cache_written:int reasoning:int
    unpriced:int reused:int unidentified:int"""
AMOUNTS = _columns(_AMOUNTS)
"""The columns of a cost; they are the fields of ``skillgit.domain.cost.Cost``."""


def fact_columns(event_class: type[events.Event]) -> dict[str, type]:
    """Return the columns of an event that are facts of it, with their types."""
    hints = get_type_hints(event_class)
    names = [name for name, declared in events.facts_of(event_class).items() if declared.column]
    return {name: int if int in {hints[name], *get_args(hints[name])} else str for name in names}


KEY = ("at", "step", "rank", "number")
"""The columns that order the events of a run."""

Key = tuple[int, ...]
"""The place of an event in its run: the values of ``KEY``."""

TALLY_KEY = ("run", "target", "optimizer", "judge", "level", "role", "stage")

_TABLES = {
    "ref": ("name", "name oid run"),
    "seen": ("packed", "packed loose"),
    "broken": ("run", "run kind message hint reader"),
    "run": (
        "name",
        """name skill environment metric soft_weight:float total_steps:int outcome steps:int versions:int rejected:int
        merges:int best_version:int head_version:int started:int updated:int calls:int tokens_in:int tokens_out:int
        usd:float selection_items:int selection_saved:int""",
    ),
    "plan": ("run", "run environment metric soft_weight:float total_steps:int"),
    "gauge": ("run", "run metric soft_weight:float"),
    "event": (
        "id",
        f"id:int oid kind at:int rank:int time:int evidence loaded:int {{facts}} target optimizer judge {_AMOUNTS}",
    ),
    "spent": ("event role stage", f"event:int role stage {_AMOUNTS}"),
    "tally": (
        " ".join(TALLY_KEY),
        f"run target optimizer judge level:int role stage {_AMOUNTS} usd_rest:float seconds_rest:float",
    ),
    "version": (
        "run version",
        "run version:int event:int measured_by:int inherited:int hard:float soft:float n:int scored:int",
    ),
    "candidate": (
        "event",
        """event:int decision policy metric soft_weight:float score:float current:float best:float fixed:int broken:int
        p:float items:int saved:int stopped:int merged:int ranked:int applied:int skipped:int budget:int outrun:int
        screen_failing:int screen_fixed:int screen_solved:int screen_broken:int tokens:float tokens_before:float""",
    ),
    "edit": ("event position", "event:int position:int op file support:int source anchor"),
    "evaluation": (
        "event position",
        "event:int position:int split version:int item_set n:int scored:int hard:float soft:float seed:int",
    ),
    "item_outcome": ("event item", "event:int item task_type hard:float soft:float failed tokens:int"),
    "flip": ("event item", "event:int item rose:int"),
    "note": ("oid position", "oid position:int line"),
}
"""The key of each table, and its columns; those of an event that are facts of it are declared there."""

BY_EVENT = tuple(name for name, (_, columns) in _TABLES.items() if {"event", "event:int"} & {*columns.split()})
"""The tables with rows of single events."""


@cache
def columns_of(table: str) -> dict[str, type]:
    """Return the columns of a table with their types."""
    facts = " ".join(f"{name}:{kind.__name__}" for name, kind in fact_columns(events.Event).items())
    return _columns(_TABLES[table][1].replace("{facts}", facts))


_LOOKUPS = {
    "event_by_commit": "event (oid)",
    "event_by_place": "event (run, at, step, rank, number)",
    "event_by_step": "event (run, step)",
    "event_by_version": "event (run, version)",
    "event_by_time": "event (time, run, at, step, rank, number)",
    "event_end": "event (run) WHERE kind = 'run-finished'",
    "event_hideable": f"event (run, kind) WHERE {HIDEABLE}",
    "ref_by_commit": "ref (oid)",
    "ref_by_run": "ref (run)",
    "outcome_by_item": "item_outcome (item)",
    "flip_by_item": "flip (item)",
}
"""What is looked up by other columns than the keys."""
_UNIQUE = frozenset({"event_by_commit"})

EXACT_SUM = "exact_sum"
"""The aggregate of floats whose sum does not depend on their order; SQLite's own one rounds at each step."""


def _sum(name: str) -> str:
    return f"{EXACT_SUM if name.endswith(('.usd', '.seconds')) else 'SUM'}({name})"


TALLY = f"""
    SELECT e.run, e.target, e.optimizer, e.judge, EXISTS (SELECT 1 FROM spent WHERE event = e.id) AS level,
           '' AS role, '' AS stage, {", ".join(f"{_sum(f'e.{name}')} AS {name}" for name in AMOUNTS)}
    FROM event e GROUP BY 1, 2, 3, 4, 5
    UNION ALL
    SELECT e.run, e.target, e.optimizer, e.judge, 2, s.role, s.stage, {", ".join(_sum(f"s.{name}") for name in AMOUNTS)}
    FROM event e JOIN spent s ON s.event = e.id GROUP BY 1, 2, 3, 4, 6, 7"""  # noqa: S608 - names are ours
"""What the table ``tally`` keeps, so that a long run need not be added up: the cost of the events of the same models on
level 0 where they have no parts and on level 1 where they have, and on level 2 these parts. Of sums of floats it also
keeps the rest that they were rounded by: the next events are added as if to the exact sum."""

SCORE = """CASE r.metric WHEN 'hard' THEN {0}.hard WHEN 'soft' THEN {0}.soft
                    ELSE (1.0 - r.soft_weight) * {0}.hard + r.soft_weight * {0}.soft END"""
"""The score of what has a hard and a soft one under the metric of its run ``r``."""

_VIEWS = {
    "scoreboard": f"""
        SELECT v.run, v.version, e.oid, e.step, e.epoch, v.hard, v.soft, v.n, v.scored, v.inherited,
               {SCORE.format("v")} AS score
        FROM version v JOIN event e ON e.id = v.event JOIN run r ON r.name = v.run""",  # noqa: S608 - names are ours
    "log": """
        SELECT e.id, e.run, e.oid, e.kind, e.at, e.rank, e.step, e.number, e.epoch, e.version, e.base, e.joined,
               e.title, e.origin, e.of, e.author, e.time,
               CASE WHEN c.stopped THEN NULL ELSE COALESCE(c.score, {of_s}) END AS score,
               CASE WHEN c.stopped THEN NULL
                    WHEN c.score IS NOT NULL THEN c.score - c.current
                    WHEN e.kind IN ('reverted', 'edited') THEN {of_s} - {of_b} END AS delta,
               s.inherited IS NULL AS measured,
               CASE WHEN c.stopped THEN c.score END AS bound,
               c.current,
               c.tokens,
               c.tokens_before,
               COALESCE(c.decision, '') AS decision,
               e.version IS NOT NULL AND e.version = r.best_version AS is_best,
               e.version IS NOT NULL AND e.version = r.head_version AS is_head
        FROM event e
        JOIN run r ON r.name = e.run
        LEFT JOIN candidate c ON c.event = e.id
        LEFT JOIN version s ON s.run = e.run AND s.version = e.version
        LEFT JOIN version b ON b.run = e.run AND b.version = e.base""".format(  # noqa: S608 - names are ours
        # not the scoreboard: a view of joins on this side would be computed whole for each single event
        of_s=SCORE.format("s"),
        of_b=SCORE.format("b"),
    ),
    "item_history": """
        SELECT v.run, o.item, v.version, o.task_type, o.hard, o.soft, o.failed
        FROM version v JOIN item_outcome o ON o.event = v.measured_by""",
}

_SEARCH = "CREATE VIRTUAL TABLE search USING fts5(subject, body, skill, tokenize = 'unicode61 remove_diacritics 2')"

_GROWING = {"hashsize": 1 << 20, "automerge": 4}
"""How full text takes in new rows, as FTS5 does it by itself: bytes of words that it gathers, parts that it merges."""
_FILLING = {"hashsize": 1 << 24, "automerge": 0}
"""The same while all rows come at once: few large parts need no merging."""


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Open the index file, which may be empty; wait so many seconds for other writers."""
    with _settled(path, fcntl.LOCK_SH):
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
        try:
            # what a power failure left of a file that was being filled is not a database, and is made again
            connection.execute("PRAGMA synchronous = OFF")
            has_tables = is_current(connection)
        except sqlite3.Error:
            connection.close()
            raise
    try:
        if has_tables:
            share(connection)
        # an index that is rebuilt should not have to write what does not fit before its end
        connection.execute("PRAGMA cache_size = -131072")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def share(connection: sqlite3.Connection) -> None:
    """Let others read the index while it is written; only once filled, as everything is written twice from then on."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def in_memory() -> sqlite3.Connection:
    """Return an empty index that lives as long as its connection."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create(connection)
    return connection


def is_current(connection: sqlite3.Connection) -> bool:
    """Say whether the tables are there and of this schema."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA)


def check(connection: sqlite3.Connection) -> None:
    """Let SQLite look through the whole file; a sqlite3.DatabaseError if it is damaged."""
    answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if answer != "ok":
        raise sqlite3.DatabaseError(answer)


def create(connection: sqlite3.Connection) -> None:
    """Make all tables and views in an empty index; a sqlite3.DatabaseError if another program made it."""
    with write(connection):
        if is_current(connection):
            return
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("the index has another schema")
        database = sqlite_utils.Database(connection)
        for name, (key_columns, _) in _TABLES.items():
            keys = tuple(key_columns.split())
            key = keys if len(keys) > 1 else keys[0]
            table = database.create_table_sql(name, columns_of(name), pk=key).strip(" \n;")
            # a table of rows with longer keys is kept in the order of its keys, without a second copy of them
            connection.execute(table if keys in (("id",), ("event",)) else f"{table} WITHOUT ROWID")
        _create_lookups(connection)
        connection.execute(_SEARCH)
        for name, query in _VIEWS.items():
            database.create_view(name, query)
        connection.execute(f"PRAGMA user_version = {SCHEMA}")


@contextmanager
def filled(connection: sqlite3.Connection) -> Iterator[None]:
    """Let a block fill tables that are empty: SQLite sorts many rows faster than it finds a place for each."""
    for name in _LOOKUPS:
        connection.execute(f"DROP INDEX {name}")
    _set_up_search(connection, _FILLING)
    yield
    _create_lookups(connection)
    _set_up_search(connection, _GROWING)


def _set_up_search(connection: sqlite3.Connection, options: dict[str, int]) -> None:
    for option in options.items():
        connection.execute("INSERT INTO search (search, rank) VALUES (?, ?)", option)


def _create_lookups(connection: sqlite3.Connection) -> None:
    for name, target in _LOOKUPS.items():
        unique = "UNIQUE " if name in _UNIQUE else ""
        connection.execute(f"CREATE {unique}INDEX {name} ON {target}")


@contextmanager
def write(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the one write lock for a block that takes effect whole or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def discard(path: Path) -> None:
    """Remove the index file and its companions; a process that still reads it keeps what it has open."""
    with _settled(path, fcntl.LOCK_EX):
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def _settled(path: Path, lock: int) -> Iterator[None]:
    """Keep the index's files from being removed while SQLite opens them one after the other: they would not match."""
    with locked(os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC), lock):
        yield
