"""Owns the ledger: the local record of paid model calls, of attempts that failed, of batches, and of item outcomes.

A row is on the disk before anybody sees what it holds, so that a process that dies, or a machine that loses power, at
any moment loses nothing that was used. The file may be deleted at any time: that costs money, never history. Numbers
that no call has cost are damage, not a cost.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar, cast

from skillgit.calls.pricing import MOST_USD
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
WITHIN = ">"
"""What parts the key of an agent's call and that of a question of the agent."""


class RowError(ValueError):
    """A row that skillgit cannot have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call cost and on whose account."""

    key: str  # the call, which is never charged twice to the same event
    role: str
    stage: str
    cost: Cost


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
class FailedAttempt:
    call: str
    scope: str
    kind: FailureKind
    reason: str
    hint: str
    final: bool
    charge: Charge


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


@dataclass(slots=True, kw_only=True)
class CallBatch:
    """A batch whose results are not all recorded."""

    mark: str
    scope: str  # the event in progress that sent it
    model: str  # `backend/model`
    start: float  # when it was written down, in seconds since 1970
    size: int  # calls that were sent
    keys: tuple[str, ...]  # of the calls whose results are not recorded
    ticket: str = ""  # the provider's id; empty where it may not have been sent


def run_of(scope: str) -> str:
    """Return the run, or the other command, that an event in progress belongs to."""
    return scope.rpartition("/")[0]


def question_key(call: str, question: str) -> str:
    """Return the key of a question that an agent asks in the course of the call with the key ``call``."""
    return f"{call}{WITHIN}{question}"


def displaced(key: str, run: str) -> str:
    """Return the key of what ``run`` paid for, once another run has asked again."""
    return f"{key}|{run}"


def read_cost(names: Iterable[str], numbers: Iterable[object]) -> Cost:
    """Return the cost of one call, 0 where there are fewer numbers than names; a RowError if no call has cost that."""
    values = dict(zip(names, numbers, strict=False))
    for name, value in values.items():
        is_amount = isinstance(value, int | float) and 0 <= value <= MOST_USD
        if not (is_amount if name in _FRACTIONS else token_count(value) is not None):
            raise RowError(f"{name} is {str(value)[:40]}")
    return Cost(**cast("dict[str, Any]", values))


def encode_json(value: JSON) -> str:
    """Return ``value`` as JSON text; a TypeError if JSON cannot hold it, a ValueError if a number is not finite."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _cost_of(row: Mapping[str, object]) -> Cost:
    return read_cost(CHARGED, [row[name] for name in CHARGED])


def _read_paid(row: Mapping[str, Any]) -> PaidReply:
    cost = _cost_of(row)
    try:
        reply = read_reply(_read_json(row["reply"]), Usage(**{name: getattr(cost, name) for name in COUNTS}))
    except ValueError as error:
        raise RowError(str(error)) from None
    return PaidReply(
        reply=reply,
        scope=row["scope"],
        charge=Charge(key=row["key"], role=row["role"], stage=row["stage"], cost=cost),
        request=row["request"],
        server=row["served"],
        time=row["time"],
    )


def _read_rollout(row: Mapping[str, Any]) -> KnownRollout:
    _read_json(row["value"])
    charges = _read_json(row["cost"])
    if not isinstance(charges, list):
        raise RowError("its charges are not a list")
    return KnownRollout(scope=row["scope"], value=row["value"], charges=tuple(map(_read_charge, charges)))


def _read_failure(row: Mapping[str, Any]) -> FailedAttempt:
    charge = Charge(key=f"{row['call']}#{row['number']}", role=row["role"], stage=row["stage"], cost=_cost_of(row))
    facts = {name: row[name] for name in ("call", "scope", "reason", "hint")}
    return FailedAttempt(kind=FailureKind.parse(row["kind"]), final=bool(row["final"]), charge=charge, **facts)


def _read_served(row: Mapping[str, Any]) -> ServedModel:
    return ServedModel(
        backend=row["backend"],
        model=row["model"],
        address=row["address"],
        facts=read_facts(row["facts"]) if row["facts"] else (),
        is_pinned=bool(row["pinned"]),
    )


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
_BATCHES = (
    """CREATE TABLE batch (
    mark TEXT PRIMARY KEY, scope TEXT NOT NULL, model TEXT NOT NULL, start REAL NOT NULL,
    size INTEGER NOT NULL, ticket TEXT NOT NULL DEFAULT ''
) STRICT""",
    "CREATE TABLE batched_call (key TEXT PRIMARY KEY, mark TEXT NOT NULL) STRICT",
)
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
{";".join((*_FAILURES, *_BATCHES, _SERVED, _AGREEMENT))};
"""
_BY_SCOPE = "CREATE INDEX IF NOT EXISTS reply_scope ON reply (scope)"
"""For sums; it is not part of the format, and a ledger without it is as good."""
_ADD = "ALTER TABLE reply ADD COLUMN"
_UPGRADES = {
    1: (f"{_ADD} request TEXT NOT NULL DEFAULT ''",),
    2: (f"{_ADD} cache_written INTEGER NOT NULL DEFAULT 0", f"{_ADD} unpriced INTEGER NOT NULL DEFAULT 0"),
    3: _FAILURES,
    4: (f"{_ADD} calls INTEGER NOT NULL DEFAULT 1",),
    5: _BATCHES,
    6: (f"{_ADD} served TEXT NOT NULL DEFAULT ''", f"{_ADD} time REAL NOT NULL DEFAULT 0", _SERVED),
    7: (_AGREEMENT,),
}
"""What makes a ledger one of the next format; older rows lack the request's digest, unknown prices and the server."""
_MOVE = "ON CONFLICT DO UPDATE SET mark = excluded.mark"
_FAILED = f"substr(value, 1, {len(FAILED_PREFIX)}) = '{FAILED_PREFIX}'"


class Ledger:
    """A ledger; one process may write it while others do."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection, self._name = connection, name

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

    # Replies

    def reply(self, key: str) -> PaidReply | None:
        return next(iter(self._rows(_read_paid, "reply WHERE key = ?", key)), None)

    def record_reply(self, paid: PaidReply) -> PaidReply:
        """Record a reply and return what the ledger now holds: another process may have been first."""
        charge = paid.charge
        row: dict[str, object] = {"key": charge.key, "scope": paid.scope, "role": charge.role, "stage": charge.stage}
        row |= {"reply": encode_json(reply_json(paid.reply)), "request": paid.request, "served": paid.server}
        row |= {"time": paid.time, **_numbers(charge.cost)}
        is_first = self._insert("reply", row, "ON CONFLICT DO NOTHING").rowcount
        return paid if is_first else (self.reply(charge.key) or paid)

    def displace(self, key: str, run: str) -> None:
        """Let the call or the outcome ``key`` be made again; ``run``, which paid for it, still finds what it had."""
        for table, column in (("reply", "key"), ("rollout", "key"), ("failure", "call")):
            update = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} = ?"  # noqa: S608 - constants
            self._execute(update, displaced(key, run), key)

    def set_aside(self, keys: Iterable[str]) -> None:
        """Let calls be made again whose replies were of no use; what was paid for them stays on record."""
        for key in keys:
            self._execute("UPDATE reply SET key = key || '/' || lower(hex(randomblob(8))) WHERE key = ?", key)

    def questions_within(self, key: str) -> list[PaidReply]:
        """Return the replies to what an agent asked in the course of the call ``key``."""
        ends = question_key(key, ""), f"{key}{chr(ord(WITHIN) + 1)}"
        return self._rows(_read_paid, "reply WHERE key > ? AND key < ? ORDER BY key", *ends)

    def questions_of_agents(self, scope: str) -> list[PaidReply]:
        """Return the replies to what agents asked on the account of an event in progress."""
        return self._rows(_read_paid, "reply WHERE scope = ? AND instr(key, ?) > 0 ORDER BY key", scope, WITHIN)

    def roles_answered(self, run: str) -> tuple[str, ...]:
        """Return the roles that were answered on the account of an event of ``run``."""
        ends = f"{run}/", f"{run}0"  # "0" comes after "/"
        return tuple(self._rows(itemgetter(0), "reply WHERE scope >= ? AND scope < ?", *ends, columns="DISTINCT role"))

    def spent(self, scope: str, last: str = "") -> Cost:
        """Return what all calls cost, failed ones too, that the events from ``scope`` to ``last``, or it, paid for."""
        total, columns = CostSum(), ", ".join(CHARGED)
        for table in ("reply", "failure"):
            for cost in self._rows(
                _cost_of, f"{table} WHERE scope BETWEEN ? AND ?", scope, last or scope, columns=columns
            ):
                total.add(cost)
        return total.total()

    # Who answered, and how far judges agree

    def record_served(self, model: ServedModel, now: float) -> None:
        """Remember who answers, and that it did at ``now``."""
        row: dict[str, object] = {
            "key": model.key,
            "backend": model.backend,
            "model": model.model,
            "address": model.address,
        }
        row |= {"facts": write_facts(model.facts), "pinned": int(model.is_pinned), "last": now}
        self._insert("served", row, "ON CONFLICT DO UPDATE SET last = excluded.last")

    def served(self, key: str) -> ServedModel | None:
        """Return the model with this key; None where it is not known, as in what an older skillgit recorded."""
        return next(iter(self._rows(_read_served, "served WHERE key = ?", key)), None)

    def last_served(self, model: ServedModel) -> ServedModel | None:
        """Return what the server of ``model`` said about it when it last answered; None if it never did."""
        query = "served WHERE backend = ? AND model = ? AND address = ? ORDER BY last DESC LIMIT 1"
        latest = next(iter(self._rows(_read_served, query, model.backend, model.model, model.address)), None)
        return None if latest is None else replace(model, facts=latest.facts)

    def record_agreement(self, judge: str, environment: str, criteria: str, figures: JSON, now: float) -> None:
        """Remember how far a judge agrees with itself, in place of what was measured by the same criteria before.

        ``judge`` is the fingerprint of its model, server and parameters, ``environment`` and ``criteria`` are digests.
        """
        row = {"judge": judge, "environment": environment, "criteria": criteria, "time": now}
        replacement = "ON CONFLICT DO UPDATE SET (figures, time) = (excluded.figures, excluded.time)"
        self._insert("agreement", {**row, "figures": encode_json(figures)}, replacement)

    def agreements(self, judge: str, environment: str) -> dict[str, JSON]:
        """Return criteria to what was measured of a judge by them, the newest first."""
        query = "agreement WHERE judge = ? AND environment = ? ORDER BY time DESC"
        return dict(self._rows(lambda row: (row["criteria"], _read_json(row["figures"])), query, judge, environment))

    # Outcomes of items

    def rollout(self, key: str) -> KnownRollout | None:
        return next(iter(self._rows(_read_rollout, "rollout WHERE key = ?", key)), None)

    def record_rollout(self, key: str, rollout: KnownRollout) -> KnownRollout:
        """Record an outcome, in place of a failure, and return what the ledger holds, perhaps another process's."""
        charges = [[each.key, each.role, each.stage, *_numbers(each.cost).values()] for each in rollout.charges]
        row = {"key": key, "scope": rollout.scope, "value": rollout.value, "cost": encode_json(charges)}
        replacement = (
            "ON CONFLICT DO UPDATE SET (scope, value, cost) = (excluded.scope, excluded.value, excluded.cost) "
            f"WHERE {_FAILED}"
        )
        return rollout if self._insert("rollout", row, replacement).rowcount else (self.rollout(key) or rollout)

    # Failed attempts

    def failures(self, call: str) -> list[FailedAttempt]:
        """Return the attempts at ``call`` that failed, in the order in which they were made."""
        return self._rows(_read_failure, "failure WHERE call = ? ORDER BY number", call)

    def failures_of(self, scope: str) -> list[FailedAttempt]:
        """Return the attempts that failed on the account of an event in progress."""
        return self._rows(_read_failure, "failure WHERE scope = ? ORDER BY call, number", scope)

    def record_failure(self, attempt: FailedAttempt) -> FailedAttempt:
        """Record an attempt that failed, and return it with the key of its charge."""
        charge, call = attempt.charge, attempt.call
        row = {name: getattr(attempt, name) for name in ("call", "scope", "kind", "reason", "hint", "final")}
        row |= {"role": charge.role, "stage": charge.stage, **_numbers(charge.cost)}
        with self._transaction():
            [number] = self._execute("SELECT count(*) FROM failure WHERE call = ?", call).fetchone()
            self._insert("failure", {**row, "number": number})
        return replace(attempt, charge=replace(charge, key=f"{call}#{number}"))

    def retract(self, scope: str) -> None:
        """Let what an event in progress found to be unanswerable be asked again; what was paid stays on record."""
        self._execute("UPDATE failure SET final = 0, kind = ? WHERE scope = ?", FailureKind.PROVIDER.value, scope)
        self._execute(f"DELETE FROM rollout WHERE scope = ? AND {_FAILED}", scope)  # noqa: S608 - constants

    # Batches whose results are not all recorded

    def pending_batch(self, key: str) -> CallBatch | None:
        """Return the batch that the call ``key`` is part of."""
        query = "batch WHERE mark = (SELECT mark FROM batched_call WHERE key = ?)"
        return next(iter(self._pending(query, key)), None)

    def batches_of(self, run: str) -> list[CallBatch]:
        """Return the batches that events of ``run`` wait for, the oldest first."""
        return self._pending("batch WHERE scope >= ? AND scope < ? ORDER BY start", f"{run}/", f"{run}0")

    def intend_batch(self, batch: CallBatch) -> None:
        """Write down that ``batch`` is about to be sent."""
        row = {"mark": batch.mark, "scope": batch.scope, "model": batch.model, "start": batch.start, "size": batch.size}
        with self._transaction():
            self._execute("DELETE FROM batch WHERE mark = ?", batch.mark)
            self._insert("batch", row)
            for key in batch.keys:
                self._insert("batched_call", {"key": key, "mark": batch.mark}, _MOVE)

    def batch_sent(self, batch: CallBatch, ticket: str) -> None:
        """Write down the provider's id of ``batch``."""
        batch.ticket = ticket
        self._execute("UPDATE batch SET ticket = ? WHERE mark = ?", ticket, batch.mark)

    def forget_batched(self, batch: CallBatch, keys: Iterable[str]) -> None:
        """Forget calls of ``batch`` whose results are recorded or of no use, and it with the last one."""
        unless = "NOT EXISTS (SELECT 1 FROM batched_call WHERE batched_call.mark = batch.mark)"
        with self._transaction():
            for key in keys:
                self._execute("DELETE FROM batched_call WHERE key = ?", key)
            self._execute(f"DELETE FROM batch WHERE mark = ? AND {unless}", batch.mark)  # noqa: S608 - constants

    def _pending(self, query: str, *values: str) -> list[CallBatch]:
        # A call whose reply is recorded, by a process that died just then, waits for nothing.
        calls = "batched_call WHERE mark = ? AND key NOT IN (SELECT key FROM reply) ORDER BY key"
        batches = [
            CallBatch(keys=tuple(self._rows(itemgetter("key"), calls, row["mark"])), **row)
            for row in self._rows(dict, query, *values)
        ]
        return [batch for batch in batches if batch.keys]

    # SQL

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        with _explained(self._name):
            return self._connection.execute(statement, values)

    def _insert(self, table: str, row: Mapping[str, object], conflict: str = "") -> sqlite3.Cursor:
        columns = f"{table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        return self._execute(f"INSERT INTO {columns} {conflict}", *row.values())

    def _rows(self, read: Callable[[Any], T], query: str, *values: str, columns: str = "*") -> list[T]:
        with _explained(self._name):
            cursor = self._connection.cursor()
            cursor.row_factory = sqlite3.Row
            rows = cursor.execute(f"SELECT {columns} FROM {query}", values)  # noqa: S608 - constants
            return [read(row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._execute("ROLLBACK")
            raise
        self._execute("COMMIT")


def _numbers(cost: Cost) -> dict[str, float]:
    return {name: getattr(cost, name) for name in CHARGED}


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
