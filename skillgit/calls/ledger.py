"""Owns the ledger: the local record of paid model calls, of attempts that failed, and of item outcomes.

A row is on the disk before anybody sees what it holds, so that a process that dies, or a machine that loses power, at
any moment loses nothing that was used. The file may be deleted at any time: that costs money, never history. Numbers
that no call has cost are damage, not a cost.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar, cast

from skillgit.calls.batch import TABLES, BatchTable
from skillgit.calls.pricing import MOST_USD
from skillgit.calls.retry_policy import FailedAttempt
from skillgit.calls.spending_caps import WITHIN, Charge, question_keys
from skillgit.domain.cost import Cost, CostSum
from skillgit.domain.evaluation import FailureKind
from skillgit.domain.served_model import ServedModel, read_facts, write_facts
from skillgit.errors import FormatVersionError, HistoryError
from skillgit.plugin.backend import Reply, Usage, token_count
from skillgit.plugin.call_records import read_reply, reply_json

JSON: TypeAlias = object  # a value that JSON can hold; it is checked when it is recorded

COUNTS = ("tokens_in", "tokens_out", "cached", "cache_written", "reasoning")
CHARGED = ("calls", "tokens_in", "tokens_out", "usd", "seconds", "cached", "cache_written", "reasoning", "unpriced")
"""The numbers of a charge in their order; the charges of a format 2 have the first five."""
FAILED_PREFIX = '{"failed":'  # how the outcome of an item begins that will never be evaluated
_FRACTIONS = frozenset({"usd", "seconds"})


class RowError(ValueError):
    """A row that skillgit cannot have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidReply:
    reply: Reply
    scope: str  # the event in progress that paid for it
    charge: Charge
    request: str = ""  # the digest of the question, by which a record can be replayed
    server: str = ""  # the key of the model that answered; empty in what an older skillgit recorded
    time: float = 0.0  # when it was recorded, in seconds since 1970; 0 where that is not known

    @property
    def run(self) -> str:
        return run_of(self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRollout:
    value: str  # JSON, redacted
    scope: str  # the event in progress that paid for it
    charges: tuple[Charge, ...] = ()

    @property
    def run(self) -> str:
        return run_of(self.scope)

    @property
    def failed(self) -> bool:
        """Whether it is that of an item that will never be evaluated: an object whose first key is ``failed``."""
        return self.value.startswith(FAILED_PREFIX)


def run_of(scope: str) -> str:
    """Return the run, or the other command, that an event in progress belongs to."""
    return scope.rpartition("/")[0]


def read_paid(key: str, row: Sequence[object]) -> PaidReply:
    """Return the reply of the call ``key`` from a row of ``_REPLY_COLUMNS``; a RowError if it is damaged."""
    scope, role, stage, text, request, server, when, calls, usd, seconds, unpriced_calls, *counts = cast(
        "Sequence[Any]", row
    )
    cost = read_cost(("calls", "usd", "seconds", "unpriced", *COUNTS), (calls, usd, seconds, unpriced_calls, *counts))
    usage = Usage(**{name: getattr(cost, name) for name in COUNTS})
    try:
        reply = read_reply(_read_json(text), usage)
    except ValueError as error:
        raise RowError(str(error)) from None
    return PaidReply(
        reply=reply,
        scope=scope,
        charge=Charge(key=key, role=role, stage=stage, cost=cost),
        request=request,
        server=server,
        time=when,
    )


def displaced(key: str, run: str) -> str:
    """Return the key of what ``run`` paid for, once another run has asked again."""
    return f"{key}|{run}"


def _read_served(row: Sequence[Any]) -> ServedModel:
    backend, model, address, facts, pinned = row
    return ServedModel(
        backend=backend,
        model=model,
        address=address,
        facts=read_facts(facts) if facts else (),
        is_pinned=bool(pinned),
    )


def read_rollout(row: Sequence[Any]) -> KnownRollout:
    """Return an item outcome from its scope, its value and its charges; a RowError if it is damaged."""
    scope, value, charge_text = row
    _read_json(value)
    charges = _read_json(charge_text)
    if not isinstance(charges, list):
        raise RowError("its charges are not a list")
    return KnownRollout(scope=scope, value=value, charges=tuple(map(_read_charge, charges)))


def read_failure(row: Sequence[Any]) -> FailedAttempt:
    """Return an attempt that failed; a RowError if it is damaged."""
    number, call, scope, kind, reason, hint, final, role, stage, *numbers = row
    return FailedAttempt(
        call=call,
        scope=scope,
        kind=FailureKind.parse(kind),
        reason=reason,
        hint=hint,
        final=bool(final),
        charge=Charge(key=f"{call}#{number}", role=role, stage=stage, cost=read_cost(CHARGED, numbers)),
    )


def read_cost(names: Iterable[str], numbers: Iterable[object]) -> Cost:
    """Return the cost of one call, 0 where there are fewer numbers than names; a RowError if no call has cost that."""
    values = dict(zip(names, numbers, strict=False))
    for name, value in values.items():
        is_amount = isinstance(value, int | float) and 0 <= value <= MOST_USD
        if not (is_amount if name in _FRACTIONS else token_count(value) is not None):
            raise RowError(f"{name} is {str(value)[:40]}")
    return Cost(**cast("dict[str, Any]", values))


def encode_charges(charges: Iterable[Charge]) -> str:
    return encode_json(
        [
            [charge.key, charge.role, charge.stage, *(getattr(charge.cost, name) for name in CHARGED)]
            for charge in charges
        ]
    )


def encode_json(value: JSON) -> str:
    """Return ``value`` as JSON text; a TypeError if JSON cannot hold it, a ValueError if a number is not finite."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _read_charge(value: object) -> Charge:
    match value:
        case [str(key), str(role), str(stage), *numbers]:
            return Charge(key=key, role=role, stage=stage, cost=read_cost(CHARGED, numbers))
    raise RowError("a charge does not begin with its call, role and stage")


def _read_json(text: str) -> JSON:
    try:
        return cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        raise RowError("its text is not JSON") from None


T = TypeVar("T")
_FORMAT = 8
_BUSY_S = 30.0
_FAILURES = (
    """CREATE TABLE failure (
    call TEXT NOT NULL, number INTEGER NOT NULL, scope TEXT NOT NULL, role TEXT NOT NULL, stage TEXT NOT NULL,
    kind TEXT NOT NULL, reason TEXT NOT NULL, hint TEXT NOT NULL, final INTEGER NOT NULL,
    calls INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
    usd REAL NOT NULL, seconds REAL NOT NULL,
    cached INTEGER NOT NULL, cache_written INTEGER NOT NULL, reasoning INTEGER NOT NULL, unpriced INTEGER NOT NULL,
    PRIMARY KEY (call, number)
) STRICT""",
    "CREATE INDEX failure_scope ON failure (scope)",
)
_SERVED = """CREATE TABLE served (
    key TEXT PRIMARY KEY, backend TEXT NOT NULL, model TEXT NOT NULL, address TEXT NOT NULL, facts TEXT NOT NULL,
    pinned INTEGER NOT NULL, last REAL NOT NULL
) STRICT"""
_AGREEMENT = """CREATE TABLE agreement (
    judge TEXT NOT NULL, environment TEXT NOT NULL, criteria TEXT NOT NULL, figures TEXT NOT NULL, time REAL NOT NULL,
    PRIMARY KEY (judge, environment, criteria)
) STRICT"""
_SCHEMA = f"""
CREATE TABLE reply (
    key TEXT PRIMARY KEY, scope TEXT NOT NULL, role TEXT NOT NULL, stage TEXT NOT NULL, reply TEXT NOT NULL,
    tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cached INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    usd REAL NOT NULL, seconds REAL NOT NULL, request TEXT NOT NULL DEFAULT '',
    cache_written INTEGER NOT NULL DEFAULT 0, unpriced INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 1,
    served TEXT NOT NULL DEFAULT '', time REAL NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE rollout (
    key TEXT PRIMARY KEY, scope TEXT NOT NULL, value TEXT NOT NULL, cost TEXT NOT NULL
) STRICT;
{";".join((*_FAILURES, *TABLES, _SERVED, _AGREEMENT))};
"""
_BY_SCOPE = "CREATE INDEX IF NOT EXISTS reply_scope ON reply (scope)"
"""For sums; it is not part of the format, and a ledger without it is as good."""
_ADD = "ALTER TABLE reply ADD COLUMN"
_UPGRADES = {
    1: (f"{_ADD} request TEXT NOT NULL DEFAULT ''",),
    2: (f"{_ADD} cache_written INTEGER NOT NULL DEFAULT 0", f"{_ADD} unpriced INTEGER NOT NULL DEFAULT 0"),
    3: _FAILURES,
    4: (f"{_ADD} calls INTEGER NOT NULL DEFAULT 1",),
    5: TABLES,
    6: (f"{_ADD} served TEXT NOT NULL DEFAULT ''", f"{_ADD} time REAL NOT NULL DEFAULT 0", _SERVED),
    7: (_AGREEMENT,),
}
"""What makes a ledger one of the next format; older rows lack the request's digest, unknown prices and the server."""
_REPLY_COLUMNS = f"scope, role, stage, reply, request, served, time, calls, usd, seconds, unpriced, {', '.join(COUNTS)}"
_FAILURE_COLUMNS = f"call, scope, kind, reason, hint, final, role, stage, {', '.join(CHARGED)}"
_FAILED = f"substr(value, 1, {len(FAILED_PREFIX)}) = '{FAILED_PREFIX}'"


class Ledger:
    """A ledger; one process may write it while others do."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection, self._name = connection, name
        self.batches = BatchTable(connection, lambda: _explained(name))

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open or make the ledger at ``path``; a HistoryError if it is none, a FormatVersionError if it is newer."""
        with _explained(str(path)):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise sqlite3.OperationalError(error.strerror) from error
            return cls._connect(str(path))

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Open the ledger at ``path`` to look things up; where there is none, or an older one, it is empty."""
        if not path.exists():
            return cls.in_memory()
        with _explained(str(path)):
            # Not mode=ro: such a connection leaves the files of the write-ahead log behind.
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=_BUSY_S)
        try:
            with _explained(str(path)):
                connection.execute("PRAGMA query_only = ON")
                version = _version(connection, str(path))
        except BaseException:
            connection.close()
            raise
        if version == _FORMAT:
            return cls(connection, str(path))
        connection.close()
        return cls.in_memory()

    @classmethod
    def in_memory(cls) -> Ledger:
        """Return an empty ledger that ends with the process."""
        return cls._connect(":memory:")

    @classmethod
    def _connect(cls, name: str) -> Ledger:
        # A front end may open the ledger in one thread and run the calls in another; it never uses both at once.
        connection = sqlite3.connect(name, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, name)
        except BaseException:
            connection.close()
            raise
        return cls(connection, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def reply(self, key: str) -> PaidReply | None:
        return next(iter(self._replies("key = ?", key)), None)

    def _replies(self, condition: str, *values: str) -> list[PaidReply]:
        query = f"SELECT key, {_REPLY_COLUMNS} FROM reply WHERE {condition}"  # noqa: S608 - constants
        return self._rows(lambda row: read_paid(row[0], row[1:]), query, *values)

    def record_reply(self, paid: PaidReply) -> PaidReply:
        """Record a reply and return what the ledger now holds: another process may have been first."""
        reply, usage, charge = paid.reply, paid.reply.usage, paid.charge
        row = (
            *(charge.key, paid.scope, charge.role, charge.stage, encode_json(reply_json(reply)), paid.request),
            *(paid.server, paid.time),
            *(charge.cost.calls, charge.cost.usd, charge.cost.seconds, charge.cost.unpriced),
            *(getattr(usage, name) for name in COUNTS),
        )
        with _explained(self._name):
            insert = (
                f"INSERT INTO reply (key, {_REPLY_COLUMNS}) "  # noqa: S608 - a constant
                f"VALUES ({', '.join('?' * len(row))}) ON CONFLICT DO NOTHING"
            )
            count = self._connection.execute(insert, row).rowcount
        return paid if count else (self.reply(charge.key) or paid)

    def displace(self, key: str, run: str) -> None:
        """Let the call or the outcome ``key`` be made again; ``run``, which paid for it, still finds what it had."""
        with _explained(self._name):
            for table, column in (("reply", "key"), ("rollout", "key"), ("failure", "call")):
                update = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} = ?"  # noqa: S608 - constants
                self._connection.execute(update, (displaced(key, run), key))

    def record_served(self, model: ServedModel, now: float) -> None:
        """Remember who answers, and that it did at ``now``."""
        row = (model.key, model.backend, model.model, model.address, write_facts(model.facts), int(model.is_pinned))
        with _explained(self._name):
            insert = (
                "INSERT INTO served (key, backend, model, address, facts, pinned, last) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET last = excluded.last"
            )
            self._connection.execute(insert, (*row, now))

    def served(self, key: str) -> ServedModel | None:
        """Return the model with this key; None where it is not known, as in what an older skillgit recorded."""
        return next(iter(self._served("key = ?", key)), None)

    def last_served(self, model: ServedModel) -> ServedModel | None:
        """Return what the server of ``model`` said about it when it last answered; None if it never did."""
        condition = "backend = ? AND model = ? AND address = ? ORDER BY last DESC LIMIT 1"
        latest = next(iter(self._served(condition, model.backend, model.model, model.address)), None)
        return None if latest is None else replace(model, facts=latest.facts)

    def _served(self, condition: str, *values: str) -> list[ServedModel]:
        query = f"SELECT backend, model, address, facts, pinned FROM served WHERE {condition}"  # noqa: S608 - constants
        return self._rows(_read_served, query, *values)

    def record_agreement(self, judge: str, environment: str, criteria: str, figures: JSON, now: float) -> None:
        """Remember how far a judge agrees with itself, in place of what was measured by the same criteria before.

        ``judge`` is the fingerprint of its model, server and parameters, ``environment`` and ``criteria`` are digests.
        """
        with _explained(self._name):
            row = (judge, environment, criteria, encode_json(figures), now)
            self._connection.execute("INSERT OR REPLACE INTO agreement VALUES (?, ?, ?, ?, ?)", row)

    def agreements(self, judge: str, environment: str) -> dict[str, JSON]:
        """Return criteria to what was measured of a judge by them, the newest first."""
        query = "SELECT criteria, figures FROM agreement WHERE judge = ? AND environment = ? ORDER BY time DESC"
        return dict(self._rows(lambda row: (row[0], _read_json(row[1])), query, judge, environment))

    def questions_within(self, key: str) -> list[PaidReply]:
        """Return the replies to what an agent asked in the course of the call ``key``."""
        return self._replies("key > ? AND key < ? ORDER BY key", *question_keys(key))

    def questions_of_agents(self, scope: str) -> list[PaidReply]:
        """Return the replies to what agents asked on the account of an event in progress."""
        return self._replies("scope = ? AND instr(key, ?) > 0 ORDER BY key", scope, WITHIN)

    def set_aside(self, keys: Iterable[str]) -> None:
        """Let calls be made again whose replies were of no use; what was paid for them stays on record."""
        with _explained(self._name):
            update = "UPDATE reply SET key = key || '/' || lower(hex(randomblob(8))) WHERE key = ?"
            self._connection.executemany(update, [(key,) for key in keys])

    def roles_answered(self, run: str) -> tuple[str, ...]:
        """Return the roles that were answered on the account of an event of ``run``."""
        query = "SELECT DISTINCT role FROM reply WHERE scope >= ? AND scope < ?"
        return tuple(self._rows(itemgetter(0), query, f"{run}/", f"{run}0"))  # "0" comes after "/"

    def spent(self, scope: str, last: str = "") -> Cost:
        """Return what all calls cost, failed ones too, that the events from ``scope`` to ``last``, or it, paid for."""
        columns, ends = ("calls", "usd", "seconds", "unpriced", *COUNTS), (scope, last or scope)
        query = f"SELECT {', '.join(columns)} FROM reply WHERE scope BETWEEN ? AND ?"  # noqa: S608 - constants
        costs, total = self._rows(lambda row: read_cost(columns, row), query, *ends), CostSum()
        failures = self._failures("scope BETWEEN ? AND ? ORDER BY call, number", *ends)
        for cost in (*costs, *(attempt.charge.cost for attempt in failures)):
            total.add(cost)
        return total.total()

    def rollout(self, key: str) -> KnownRollout | None:
        rows = self._rows(read_rollout, "SELECT scope, value, cost FROM rollout WHERE key = ?", key)
        return next(iter(rows), None)

    def record_rollout(self, key: str, rollout: KnownRollout) -> KnownRollout:
        """Record an outcome, in place of a failure, and return what the ledger holds, perhaps another process's."""
        with _explained(self._name):
            insert = (
                "INSERT INTO rollout (key, scope, value, cost) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"  # noqa: S608 - constants
                f" (scope, value, cost) = (excluded.scope, excluded.value, excluded.cost) WHERE {_FAILED}"
            )
            row = (key, rollout.scope, rollout.value, encode_charges(rollout.charges))
            count = self._connection.execute(insert, row).rowcount
        return rollout if count else (self.rollout(key) or rollout)

    def failures(self, call: str) -> list[FailedAttempt]:
        """Return the attempts at ``call`` that failed, in the order in which they were made."""
        return self._failures("call = ? ORDER BY number", call)

    def failures_of(self, scope: str) -> list[FailedAttempt]:
        """Return the attempts that failed on the account of an event in progress."""
        return self._failures("scope = ? ORDER BY call, number", scope)

    def record_failure(self, attempt: FailedAttempt) -> FailedAttempt:
        """Record an attempt that failed, and return it with the key of its charge."""
        charge = attempt.charge
        row = (
            *(attempt.call, attempt.scope, attempt.kind.value, attempt.reason, attempt.hint, int(attempt.final)),
            *(charge.role, charge.stage, *(getattr(charge.cost, name) for name in CHARGED)),
        )
        with _explained(self._name):
            insert = (
                f"INSERT INTO failure (number, {_FAILURE_COLUMNS}) VALUES ("  # noqa: S608 - constants
                f"(SELECT count(*) FROM failure WHERE call = ?), {', '.join('?' * len(row))}) RETURNING number"
            )
            [number] = self._connection.execute(insert, (attempt.call, *row)).fetchone()
        return replace(attempt, charge=replace(charge, key=f"{attempt.call}#{number}"))

    def retract(self, scope: str) -> None:
        """Let what an event in progress found to be unanswerable be asked again; what was paid stays on record."""
        with _explained(self._name):
            update = "UPDATE failure SET final = 0, kind = ? WHERE scope = ?"
            self._connection.execute(update, (FailureKind.PROVIDER.value, scope))
            self._connection.execute(f"DELETE FROM rollout WHERE scope = ? AND {_FAILED}", (scope,))  # noqa: S608

    def _failures(self, condition: str, *values: str) -> list[FailedAttempt]:
        query = f"SELECT number, {_FAILURE_COLUMNS} FROM failure WHERE {condition}"  # noqa: S608 - constants
        return self._rows(read_failure, query, *values)

    def _rows(self, read: Callable[[Any], T], query: str, *values: str) -> list[T]:
        with _explained(self._name):
            return [read(row) for row in self._connection.execute(query, values)]


def _prepare(connection: sqlite3.Connection, name: str) -> None:
    if _version(connection, name) == _FORMAT:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_BY_SCOPE)
        return
    _log_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection, name)
    upgrade = [statement for number in range(version, _FORMAT) for statement in _UPGRADES.get(number, ())]
    for statement in _SCHEMA.split(";") if version == 0 else upgrade:
        connection.execute(statement)
    connection.execute(_BY_SCOPE)
    connection.execute(f"PRAGMA user_version = {_FORMAT}")
    connection.execute("COMMIT")


def _log_ahead(connection: sqlite3.Connection) -> None:
    # Two processes that turn the log on at once wait for each other's lock; SQLite refuses one of them without a wait.
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _version(connection: sqlite3.Connection, name: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > _FORMAT:
        hint = "update skillgit, or delete the file: history stays, calls are paid for again"
        raise FormatVersionError(f"the ledger {name} was written by a newer skillgit", hint=hint)
    return version


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except RowError as error:
        hint = "delete the file, or take it from a backup: history stays, calls are paid for again"
        raise HistoryError(f"the ledger {name} holds a row that cannot be right: {error}", hint=hint) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's own messages hold what is damaged
        hint = "check space and permissions, or delete the file: history stays, calls are paid for again"
        raise HistoryError(f"the ledger {name} cannot be used: {error}", hint=hint) from error
