"""A look at the index file as it is: no repository is opened and nothing is brought up to date.

It may be older than git. That is good enough for completing a word, and for nothing else.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from skillgit.index.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
