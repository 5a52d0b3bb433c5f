"""History as git and the index have it: events, files, trailers, commit ids, and the rows of an SQL query."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from skillgit.app.history.log import part_of_history
from skillgit.app.workspace.revision import event_in, resolve
from skillgit.app.workspace.revision_range import span_of, split_range
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError
from skillgit.index import index_check, log_filter, queries
from skillgit.index.log_filter import Selection
from skillgit.index.refresh import Index
from skillgit.store import tree
from skillgit.store.git_binary import git
from skillgit.store.history_reader import read_commit

SCHEMA = "skillgit.event/1"
_AT_ONCE = 500


def events(workspace: Workspace, words: Sequence[str] = (), *, all_runs: bool = False) -> Iterator[dict[str, object]]:
    """Yield the events of a run or a range, oldest first, each as its commit has it; only one is held at a time."""
    index = workspace.index
    span = part_of_history(workspace, words, all_runs=all_runs)
    names = queries.runs_of_skill(index, workspace.skill) if workspace.skill else queries.run_names(index)
    runs = sorted(names) if span is None else [span.run] if span.run else []
    for choice in (Selection(run=run) if span is None else span.selection(index) for run in runs):
        for commit in log_filter.commits(index, choice, at_once=_AT_ONCE):
            record = read_commit(workspace.repo, commit)
            event = record.event
            values = {name: getattr(event, name) for name in event.fact_names}
            # by its own name, lest it be read as the version of an evaluation
            if event.inherited is not None:
                values["evaluation"] = {"inherited_from": event.inherited}
            yield {
                "schema": SCHEMA,
                "kind": event.kind,
                "commit": record.commit,
                "parents": record.parents,
                "tree": record.tree,
                "branch": record.branch,
                "time": record.time,
                "evidence_tree": record.evidence,
                **values,
            }


_SHOWN = 8


def cat(workspace: Workspace, name: str) -> bytes:
    """Return the file ``REV[:PATH]`` of the skill folder, by default ``SKILL.md``; failing that, of the repository."""
    revision, _, path = name.partition(":")
    file = str(PurePosixPath(path or DOCUMENT))
    resolution = resolve(workspace, revision)
    folder = workspace.index.skill_path(resolution.run) if resolution.run else ""
    root = workspace.repo.commit(resolution.commit).tree
    for candidate in (f"{folder}/{file}", file) if folder else (file,):
        content = tree.read_file(workspace.repo, root, candidate)
        if content is not None:
            return content
    inside = f"{folder}/" if folder else ""
    options = ("-r", "-z", "--name-only", "--full-tree", resolution.commit, *([inside] if inside else []))
    listing = git(workspace.repo, "ls-tree", *options).out.decode(errors="replace")
    names = [name.removeprefix(inside) for name in listing.split("\0") if name]
    hint = f"it has {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
    raise NotFoundError(
        f"{revision} has no file '{file}'", hint=did_you_mean(file, names, otherwise=hint, prefix=f"{revision}:")
    )


class NamedCommit(NamedTuple):
    commit: str  # its id, 40 hexadecimal characters
    excluded: bool = False  # whether it is the end of a range that does not belong to it


def rev_parse(workspace: Workspace, words: Sequence[str], *, short: bool = False) -> tuple[NamedCommit, ...]:
    """Return the commits that ``words`` name; of a range its end first, then its excluded beginning, as git does."""

    def shortened(commit: NamedCommit) -> NamedCommit:
        answer = git(workspace.repo, "rev-parse", "--short", commit.commit)
        if answer.code != 0:
            raise RevisionNotFoundError(f"there is no commit {commit.commit}", hint="git fsck")
        return commit._replace(commit=answer.out.decode().strip())

    commits = tuple(commit for word in words for commit in _named(workspace, word))
    return tuple(map(shortened, commits)) if short else commits


def _named(workspace: Workspace, word: str) -> tuple[NamedCommit, ...]:
    if word.startswith("^"):
        return (NamedCommit(resolve(workspace, word[1:]).commit, excluded=True),)
    if split_range(word) is None:
        return (NamedCommit(resolve(workspace, word).commit),)
    span = span_of(workspace, [word])
    end = span.upto or event_in(workspace, f"{span.run}/head")
    begin = () if span.after is None else (NamedCommit(span.after.commit, excluded=True),)
    return (NamedCommit(end.commit), *begin)


_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_TELLING = frozenset(
    {"data_version", "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"}
)
"""Pragmas that only read."""
_HARMFUL = frozenset({"load_extension", "fts3_tokenizer", "fts5"})
"""Functions that reach beyond the index."""
_FAILURES = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError)
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PACE = 20_000
"""SQLite's own steps between two looks at Ctrl-C."""
_TABLES = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    columns: tuple[str, ...]  # the names of its columns; equal ones are longer_names
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def sql(workspace: Workspace, query: str) -> Iterator[QueryResult]:
    """Run a query on the index that can only read; its rows exist as long as the block lasts."""
    with _guarded(workspace.index) as connection:
        index = workspace.index
        try:
            cursor = connection.execute(query)
        except _FAILURES as error:
            raise _refusal(index, connection, error) from error
        names = [column[0] for column in cursor.description or ()]
        if not names:
            raise UsageError("invalid query", hint=_hint(connection))
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
        # text that is none may be of the query's own making
        damage = index_check.drop_damaged(index.today)
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
    return did_you_mean(missing, names, otherwise=f"there are {', '.join(names)}")


def _unique(names: list[str]) -> tuple[str, ...]:
    labels: list[str] = []
    for name in names:
        longer_names = (f"{name}_{number}" for number in count(2))
        labels.append(next(label for label in chain([name], longer_names) if label not in labels))
    return tuple(labels)
