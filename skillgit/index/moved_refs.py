"""Which refs moved since the index was built: all of them compared, or only those in files that changed.

The index keeps the look at the refs that it was made from. As long as git's packed refs are the same file, only loose
ones are compared, and only the runs that they belong to are looked at. A deleted or newly packed ref makes it compare
everything. Refs of runs that cannot be read are not kept, so that those runs are tried again each time.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.json_limits import loads
from skillgit.index import schema
from skillgit.store import refs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.store.refs import RefSnapshot
    from skillgit.store.repo import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The refs that the index has and what they are now; refs of runs where nothing moved may be missing from both."""

    known: dict[str, str]
    now: dict[str, str]


def unmoved(connection: sqlite3.Connection, look: RefSnapshot) -> bool:
    stamp = _seen(connection)
    return bool(look.packed) and stamp == (look.packed, _told(look))


def moves(connection: sqlite3.Connection, repo: Repo, look: RefSnapshot) -> Moves:
    """Compare the refs that the index has with those of ``repo``, of which ``look`` was taken just now."""
    stamp = _seen(connection)
    if stamp is not None and look.packed == stamp[0]:
        before = loads(stamp[1])
        if before.keys() <= look.loose.keys():
            fresh = {name: oid for name, oid in look.loose.items() if before.get(name) != oid and _followed(name)}
            old_tips = _known(connection, {run_of(name) for name in fresh})
            now = {name: oid for name, oid in (old_tips | fresh).items() if oid}
            return Moves(known=old_tips, now=now)
    main = repo.tip(refs.MAIN)
    return Moves(known=_known(connection, None), now=repo.tips() | ({refs.MAIN: main} if main else {}))


def keep(connection: sqlite3.Connection, look: RefSnapshot | None) -> None:
    """Remember in a transaction of the caller's what the index was made from; None if it is not up to date."""
    connection.execute("DELETE FROM seen")
    if look is not None and look.packed:
        connection.execute("INSERT INTO seen VALUES (?, ?)", (look.packed, _told(look)))


def keep_if_possible(connection: sqlite3.Connection, look: RefSnapshot) -> None:
    """Remember what the index was made from; where nobody can write, everything is compared again next time."""
    if look.packed:
        with contextlib.suppress(sqlite3.OperationalError), schema.write(connection):
            keep(connection, look)


def run_of(name: str) -> str:
    ref = refs.parse(name)
    return ref.run if ref is not None else ""


def _followed(name: str) -> bool:
    return name == refs.MAIN or refs.parse(name) is not None


def _seen(connection: sqlite3.Connection) -> tuple[str, str] | None:
    row: tuple[str, str] | None = connection.execute("SELECT packed, loose FROM seen").fetchone()
    return row


def _told(look: RefSnapshot) -> str:
    return json.dumps(dict(look.loose), sort_keys=True, separators=(",", ":"))


def _known(connection: sqlite3.Connection, runs: Iterable[str] | None) -> dict[str, str]:
    if runs is None:
        return dict(connection.execute("SELECT name, oid FROM ref"))
    tips: dict[str, str] = {}
    for run in runs:
        tips |= dict(connection.execute("SELECT name, oid FROM ref WHERE run = ?", (run,)))
    return tips
