"""Whatever becomes of the index's files, commands say what they say with a new index, or one sentence; git has it all.

What SQLite cannot notice, a letter of a title that became another, is left out: it says so itself in ``noticed``.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inside import run
from sample_run import write_run
from soaking import sampled

from skillgit.index import index_check, refresh, schema
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    ("log", "--json"),
    ("log", "--grep", "answer"),
    ("log", "--as-of", "v2"),
    ("status",),
    ("runs", "--json"),
    ("show", "v2"),
    ("blame", "v2"),
    ("why", "8"),
    ("diff", "--items", "v0", "v2"),
    ("diff", "--rules", "v0", "v2"),
    ("items",),
    ("cost", "--json"),
    ("sql", "SELECT * FROM event"),
)
REMOVED = "the index of this repository was damaged and has been removed"
COMPANIONS = ("-wal", "-shm", "-journal")
PAGE = 4096


class Shelf:
    """A repository with an index, which is put back after each damage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = folder / ".git" / "skillgit" / "index.db"
        self.restore()
        self.answers = {command: self.run(*command) for command in COMMANDS}
        with closing(sqlite3.connect(self.index)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.content = self.index.read_bytes()
        assert all(code == 0 for code, _, _ in self.answers.values())

    def clear(self) -> None:
        for path in [self.index, *(self.index.with_name(self.index.name + end) for end in COMPANIONS)]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def restore(self) -> None:
        self.clear()
        refresh.open_index(Repo.discover(self.folder)).close()

    def put(self, content: bytes) -> None:
        self.clear()
        self.index.write_bytes(content)

    def run(self, *arguments: str) -> tuple[int, bytes, str]:
        return run(self.folder, *arguments)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Shelf:
    repo = Repo.init(tmp_path_factory.mktemp("damaged") / "repository")
    write_run(repo)
    return Shelf(repo.workdir)


def noticed(content: bytes, path: Path) -> bool:
    path.write_bytes(content)
    try:
        with closing(sqlite3.connect(path)) as connection:
            schema.check(connection)
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - as above
    except (sqlite3.Error, UnicodeDecodeError):
        return True
    return False


def check(shelf: Shelf, command: tuple[str, ...], *, exact: bool) -> None:
    code, out, err = shelf.run(*command)
    assert code != 70, (command, err)
    if code == 6 and REMOVED in err:
        assert shelf.run(*command) == shelf.answers[command], "the next one has a new index"
    elif exact:
        assert (code, out) == shelf.answers[command][:2], (command, err)


@given(st.data())
def test_no_byte_of_the_index_makes_an_answer_wrong_where_it_can_be_noticed(shelf, tmp_path_factory, data) -> None:
    damaged = bytearray(shelf.content)
    page = data.draw(st.integers(0, len(damaged) // PAGE - 1), label="page")
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, PAGE - 1), st.integers(0, 255)), min_size=1, max_size=20), label="bytes"
    ):
        damaged[page * PAGE + place] = byte
    exact = noticed(bytes(damaged), tmp_path_factory.getbasetemp() / "looked-at.db")
    for command in data.draw(st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=3, unique=True)):
        shelf.put(bytes(damaged))
        check(shelf, command, exact=exact)


@given(st.integers(0, 50), st.lists(st.tuples(st.integers(0, PAGE - 1), st.integers(128, 255)), min_size=1, max_size=9))
def test_no_byte_of_a_large_index_is_an_internal_error(shelf, page, changes) -> None:
    damaged = bytearray(shelf.content)
    for place, byte in changes:
        damaged[(page * PAGE + place) % len(damaged)] = byte
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh, "CHECKED_AT_MOST", 0)
        for command in COMMANDS[page % 3 :: 3]:
            shelf.put(bytes(damaged))
            check(shelf, command, exact=False)


def test_the_text_of_the_schema_that_is_no_text(shelf) -> None:
    for word in (b"CREATE", b"TABLE", b"event", b"INTEGER", b"scoreboard", b"fts5"):
        for byte in (b"\xff", b"\x80", b"\x00", b"\xc3"):
            shelf.put(shelf.content.replace(word, byte + word[1:], 1))
            check(shelf, ("log", "--json"), exact=True)
            shelf.put(shelf.content.replace(word, byte * len(word)))
            check(shelf, ("cost", "--json"), exact=True)


VALUES = ("NULL", "'x'", "x'ff00'", "CAST(x'ff41' AS TEXT)", "zeroblob(50000)", "1e999", "-9223372036854775808")
CELLS = {
    "seen": ("packed", "loose"),
    "ref": ("oid", "run"),
    "event": ("time", "title", "kind", "run", "step", "oid", "usd", "evidence", "author", "of", "at"),
    "run": ("metric", "skill", "best_version", "started", "usd", "total_steps", "outcome"),
    "item_outcome": ("hard", "task_type"),
    "candidate": ("decision", "score", "stopped"),
    "version": ("event", "hard"),
    "spent": ("role", "calls"),
}


@pytest.mark.parametrize(
    "cell", sampled([(table, column) for table, columns in CELLS.items() for column in columns], 6)
)
def test_no_value_in_its_rows_is_an_internal_error(shelf, cell) -> None:
    table, column = cell
    for place, value in enumerate(VALUES):
        for command in COMMANDS[place % 3 :: 3]:
            shelf.put(shelf.content)
            with closing(sqlite3.connect(shelf.index, isolation_level=None)) as connection:
                connection.execute(f'UPDATE OR IGNORE {table} SET "{column}" = {value}')  # noqa: S608 - names are ours
            check(shelf, command, exact=False)


@pytest.mark.parametrize("statement", ["DELETE FROM event", "DROP TABLE run", "PRAGMA user_version = 99"])
def test_no_missing_part_is_an_internal_error(shelf, statement) -> None:
    for command in COMMANDS:
        shelf.put(shelf.content)
        with closing(sqlite3.connect(shelf.index, isolation_level=None)) as connection:
            connection.execute(statement)
        check(shelf, command, exact=statement != "DELETE FROM event")


def emptied(shelf: Shelf) -> None:
    shelf.put(b"")


def cut(shelf: Shelf) -> None:
    shelf.put(shelf.content[: len(shelf.content) // 2])


def garbage(shelf: Shelf) -> None:
    shelf.put(os.urandom(20_000))


def folder(shelf: Shelf) -> None:
    shelf.clear()
    (shelf.index / "in the way").mkdir(parents=True)


def link_to_nowhere(shelf: Shelf) -> None:
    shelf.clear()
    shelf.index.symlink_to("nowhere/at/all")


def link_to_itself(shelf: Shelf) -> None:
    shelf.clear()
    shelf.index.symlink_to(shelf.index.name)


def fifo(shelf: Shelf) -> None:
    shelf.clear()
    os.mkfifo(shelf.index)


def companion_garbage(shelf: Shelf) -> None:
    shelf.put(shelf.content)
    for end in COMPANIONS:
        shelf.index.with_name(shelf.index.name + end).write_bytes(os.urandom(9_000))


def companion_folders(shelf: Shelf) -> None:
    shelf.put(shelf.content)
    for end in COMPANIONS:
        shelf.index.with_name(shelf.index.name + end).mkdir()


@pytest.mark.parametrize(
    "damage",
    [emptied, cut, garbage, folder, link_to_nowhere, link_to_itself, fifo, companion_garbage, companion_folders],
)
def test_whatever_lies_in_its_place_the_answer_is_that_of_a_new_index(shelf, damage) -> None:
    for command in COMMANDS:
        damage(shelf)
        check(shelf, command, exact=True)


def test_the_database_of_another_program_behind_a_link_is_left_as_it_is(shelf, tmp_path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE kept (x)")
    before = other.read_bytes()
    shelf.clear()
    shelf.index.symlink_to(other)

    check(shelf, ("log", "--json"), exact=True)

    assert other.read_bytes() == before
    assert not shelf.index.is_symlink()


def test_a_repository_without_damage_has_nothing_removed(shelf) -> None:
    shelf.restore()
    before = shelf.index.stat().st_ino
    assert shelf.run("sql", "SELECT CAST(x'ff' AS TEXT)")[0] == 2
    assert shelf.run("sql", "SELECT nothing FROM event")[0] == 2
    assert shelf.index.stat().st_ino == before


def test_an_index_that_is_missing_is_not_blamed(repo) -> None:
    """What fails in a repository that was never indexed fails for another reason."""
    write_run(repo)
    assert not index_check.path_of(repo).exists()
    assert index_check.drop_damaged(repo) is None
