"""The tables and views of the index, and its file: opening, making, dropping.

There are no migrations: an index of another schema is dropped and built again from git.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = 6
"""Grows by one with every change of the tables, the views or what is written into them."""

HIDEABLE = "kind IN ('rejected', 'slow-proposed', 'slow-merged')"
"""The events that lists can leave out; a query has to say it in these words to be answered from their index."""

AMOUNTS: dict[str, type] = {
    "calls": int,
    "tokens_in": int,
    "tokens_out": int,
    "usd": float,
    "seconds": float,
    "cached": int,
    "cache_written": int,
    "reasoning": int,
    "unpriced": int,
}
"""The columns of a cost; they are the fields of ``skillgit.domain.cost.Cost``."""

_TABLES: dict[str, dict[str, type]] = {
    "ref": {"name": str, "oid": str, "run": str},
    "seen": {"packed": str, "loose": str},
    "run": {
        "name": str,
        "skill": str,
        "environment": str,
        "metric": str,
        "soft_weight": float,
        "total_steps": int,
        "outcome": str,
        "steps": int,
        "versions": int,
        "rejected": int,
        "merges": int,
        "best_version": int,
        "head_version": int,
        "started": int,
        "updated": int,
        "calls": int,
        "tokens_in": int,
        "tokens_out": int,
        "usd": float,
        "selection_items": int,
        "selection_saved": int,
    },
    "plan": {"run": str, "environment": str, "metric": str, "soft_weight": float, "total_steps": int},
    "event": {
        "id": int,
        "run": str,
        "oid": str,
        "kind": str,
        "at": int,
        "rank": int,
        "step": int,
        "number": int,
        "epoch": int,
        "version": int,
        "base": int,
        "title": str,
        "origin": str,
        "of": str,
        "author": str,
        "skill": str,
        "time": int,
        "outcome": str,
        "evidence": str,
        "loaded": int,
        "target": str,
        "optimizer": str,
        "judge": str,
        **AMOUNTS,
    },
    "spent": {"event": int, "role": str, "stage": str, **AMOUNTS},
    "version": {
        "run": str,
        "version": int,
        "event": int,
        "measured_by": int,
        "inherited": int,
        "hard": float,
        "soft": float,
        "n": int,
        "scored": int,
    },
    "candidate": {
        "event": int,
        "decision": str,
        "policy": str,
        "metric": str,
        "soft_weight": float,
        "score": float,
        "current": float,
        "best": float,
        "fixed": int,
        "broken": int,
        "p": float,
        "items": int,
        "saved": int,
        "stopped": int,
        "merged": int,
        "ranked": int,
        "applied": int,
        "skipped": int,
        "budget": int,
    },
    "edit": {"event": int, "position": int, "op": str, "file": str, "support": int, "source": str, "anchor": str},
    "evaluation": {
        "event": int,
        "position": int,
        "split": str,
        "version": int,
        "item_set": str,
        "n": int,
        "scored": int,
        "hard": float,
        "soft": float,
        "seed": int,
    },
    "item_outcome": {"event": int, "item": str, "task_type": str, "hard": float, "soft": float, "failed": str},
    "note": {"oid": str, "position": int, "line": str},
}

_KEYS: dict[str, tuple[str, ...]] = {
    "ref": ("name",),
    "seen": ("packed",),
    "run": ("name",),
    "plan": ("run",),
    "event": ("id",),
    "spent": ("event", "role", "stage"),
    "version": ("run", "version"),
    "candidate": ("event",),
    "edit": ("event", "position"),
    "evaluation": ("event", "position"),
    "item_outcome": ("event", "item"),
    "note": ("oid", "position"),
}

_SCORE = """CASE r.metric WHEN 'hard' THEN {0}.hard WHEN 'soft' THEN {0}.soft
                    ELSE (1.0 - r.soft_weight) * {0}.hard + r.soft_weight * {0}.soft END"""
"""The score of a version under the metric of its run ``r``."""

_VIEWS = {
    "scoreboard": f"""
        SELECT v.run, v.version, e.oid, e.step, e.epoch, v.hard, v.soft, v.n, v.scored, v.inherited,
               {_SCORE.format("v")} AS score
        FROM version v JOIN event e ON e.id = v.event JOIN run r ON r.name = v.run""",  # noqa: S608 - names are ours
    "log": """
        SELECT e.id, e.run, e.oid, e.kind, e.at, e.rank, e.step, e.number, e.epoch, e.version, e.base, e.title,
               e.origin, e.of, e.author, e.time,
               COALESCE(c.score, {of_s}) AS score,
               CASE WHEN c.score IS NOT NULL THEN c.score - c.current
                    WHEN e.kind IN ('reverted', 'edited') THEN {of_s} - {of_b} END AS delta,
               s.inherited IS NULL AS measured,
               COALESCE(c.stopped, 0) AS bound,
               COALESCE(c.decision, '') AS decision,
               e.version IS NOT NULL AND e.version = r.best_version AS is_best,
               e.version IS NOT NULL AND e.version = r.head_version AS is_head
        FROM event e
        JOIN run r ON r.name = e.run
        LEFT JOIN candidate c ON c.event = e.id
        LEFT JOIN version s ON s.run = e.run AND s.version = e.version
        LEFT JOIN version b ON b.run = e.run AND b.version = e.base""".format(  # noqa: S608 - names are ours
        # not the scoreboard: a view of joins on this side would be computed whole for each single event
        of_s=_SCORE.format("s"),
        of_b=_SCORE.format("b"),
    ),
    "item_history": """
        SELECT v.run, o.item, v.version, o.task_type, o.hard, o.soft, o.failed
        FROM version v JOIN item_outcome o ON o.event = v.measured_by""",
}

_SEARCH = "CREATE VIRTUAL TABLE search USING fts5(subject, body, skill, tokenize = 'unicode61 remove_diacritics 2')"


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Open the index file, which may be empty; wait so many seconds for other writers.

    Raises:
        sqlite3.Error: It cannot be opened or is no database.
    """
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # an index that is built anew should not have to write what does not fit before its end
        connection.execute("PRAGMA cache_size = -131072")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def in_memory() -> sqlite3.Connection:
    """Return an empty index that lives as long as its connection."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create(connection)
    return connection


def is_current(connection: sqlite3.Connection) -> bool:
    """Say whether the tables are there and of this schema."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA)


def create(connection: sqlite3.Connection) -> None:
    """Make all tables and views in an empty index; drop what another schema left."""
    import sqlite_utils  # noqa: PLC0415 - slow to import, and most openings find the tables in place

    with write(connection):
        if is_current(connection):
            return
        _drop_everything(connection)
        database = sqlite_utils.Database(connection)
        for name, columns in _TABLES.items():
            keys = _KEYS[name]
            database.table(name).create(columns, pk=keys if len(keys) > 1 else keys[0])
        database.table("event").create_index(["oid"], unique=True)
        database.table("event").create_index(["run", "at", "step", "rank", "number"])
        database.table("event").create_index(["run", "step"])
        database.table("event").create_index(["run", "version"])
        database.table("event").create_index(["time", "run", "at", "step", "rank", "number"])
        connection.execute("CREATE INDEX event_end ON event (run) WHERE kind = 'run-finished'")
        connection.execute(f"CREATE INDEX event_hideable ON event (run, kind) WHERE {HIDEABLE}")
        database.table("ref").create_index(["oid"])
        database.table("ref").create_index(["run"])
        database.table("item_outcome").create_index(["item"])
        connection.execute(_SEARCH)
        for name, query in _VIEWS.items():
            database.create_view(name, query)
        connection.execute(f"PRAGMA user_version = {SCHEMA}")


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
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _drop_everything(connection: sqlite3.Connection) -> None:
    made = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    for kind, name in sorted(made, key=lambda row: row[0] == "table"):
        if not name.startswith("sqlite_"):
            connection.execute(f'DROP {kind} IF EXISTS "{name}"')
