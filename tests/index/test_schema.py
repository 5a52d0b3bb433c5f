from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal

import pytest
from bench.histories.fast_import import write_history

from skillgit.index import index_check, queries, schema, table_writer
from skillgit.index.refresh import open_index, rebuild
from skillgit.store.repo import Repo


def made_of(connection):
    """Return what the tables are made of, and how full text takes in new rows."""
    made = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'search_%' ORDER BY name")
    return made.fetchall(), dict(connection.execute("SELECT k, v FROM search_config"))


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return Repo.discover(write_history(tmp_path_factory.mktemp("filled") / "repo", 60, runs=3).path)


def test_an_index_that_was_filled_has_every_lookup_and_can_be_shared(repo):
    empty = schema.in_memory()
    with rebuild(repo) as index:
        made, options = made_of(index.connection)
        assert made == made_of(empty)[0]
        assert {name: options[name] for name in ("hashsize", "automerge")} == {"hashsize": 1 << 20, "automerge": 4}
        assert index.select("PRAGMA journal_mode") == [("wal",)]
        assert index.select("PRAGMA integrity_check") == [("ok",)]
        assert index.select("PRAGMA foreign_key_check") == []
        index.connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")


def test_a_reader_goes_on_with_what_it_has_while_the_index_is_rebuilt_beside_it(repo):
    with open_index(repo) as reader:
        before = queries.log_rows(reader, None)
        rebuild(repo).close()
        assert queries.log_rows(reader, None) == before
    with open_index(repo) as again:
        assert queries.log_rows(again, None) == before


def test_nobody_removes_the_index_while_somebody_opens_it(repo, monkeypatch):
    is_current, removals = schema.is_current, []

    def is_current_while_another_wants_to_remove_it(connection):
        with monkeypatch.context() as patch:
            patch.setattr(schema.fcntl, "flock", lambda folder, lock: flock(folder, lock | fcntl.LOCK_NB))
            try:
                schema.discard(repo.private_dir / "index.db")
            except BlockingIOError as error:
                removals.append(error)
        return is_current(connection)

    rebuild(repo).close()
    flock = fcntl.flock
    with monkeypatch.context() as patch:
        patch.setattr(schema, "is_current", is_current_while_another_wants_to_remove_it)
        schema.connect(repo.private_dir / "index.db", 1.0).close()
    assert removals
    assert (repo.private_dir / "index.db").is_file()


def die_while_filling(repo):
    """Rebuild the index with hardly any memory, so that it is written before its end, and die before that."""
    connect = schema.connect

    def connect_with_little_memory(path, patience):
        connection = connect(path, patience)
        connection.execute("PRAGMA cache_size = 4")
        return connection

    schema.connect = connect_with_little_memory
    table_writer.summarise = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    rebuild(repo)


def test_what_a_killed_process_left_of_a_rebuild_is_made_again(repo):
    path = repo.private_dir / "index.db"
    with open_index(repo) as index:
        before = index_check.content(index)
    process = multiprocessing.get_context("fork").Process(target=die_while_filling, args=(repo,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert path.with_name("index.db-journal").stat().st_size

    with open_index(repo) as index:
        assert index.on_disk
        assert index_check.content(index) == before
        assert index.select("PRAGMA journal_mode") == [("wal",)]
        assert index.select("PRAGMA integrity_check") == [("ok",)]
