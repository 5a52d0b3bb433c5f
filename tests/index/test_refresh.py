from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from itertools import count

import pytest
import sample_run
from chronicle import RUN, Chronicle
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples
from stories import START, Story, moves, told

from skillgit.errors import HistoryError
from skillgit.index import index_check, queries, refresh, schema, table_writer
from skillgit.index.refresh import Index, open_index, rebuild
from skillgit.store import notes
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import read_run
from skillgit.store.repo import Repo


def git(repo, *arguments):
    done = subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def built_anew(repo):
    with Index(repo, schema.in_memory(), on_disk=False) as fresh:
        return index_check.content(fresh)


def told_story(run=RUN):
    return Story(run).proposed(0.5).proposed(0.375).skipped().slow(0.75).proposed(0.625).reverted(1).finished()


def test_the_index_holds_what_git_holds(repo):
    Chronicle(repo, told_story()).go_on()
    with open_index(repo) as index:
        rows = queries.log_rows(index, RUN)
        assert [row.commit for row in reversed(rows)] == [record.commit for record in read_run(repo, RUN)]
        assert index.on_disk
        assert (repo.common_dir / "skillgit" / "index.db").is_file()
        (run,) = queries.run_rows(index, {})
        assert (run.environment, run.metric, run.total_steps) == ("searchqa", "hard", 6)
        head = queries.head_row(index, RUN)
        assert head.version == 3
        assert [row.refs for row in rows][:3] == [(f"run/{RUN}",), (), (f"rejected/{RUN}/0004",)]
        assert queries.best_row(index, RUN).refs == (f"best/{RUN}",)


def test_outcomes_of_items_come_from_evidence(repo):
    Chronicle(repo, told_story()).go_on()
    with open_index(repo) as index:
        merged = queries.row_of_version(index, RUN, 2)
        items = queries.item_rows(index, merged)
        assert [row.item for row in items if row.hard == 1.0] == [f"q{place}" for place in range(6)]
        assert [(row.item, row.failed) for row in items if row.failed] == [("q9", "timeout")]
        assert queries.item_rows(index, queries.head_row(index, RUN)) == queries.item_rows(
            index, queries.row_of_version(index, RUN, 1)
        )


@examples(0.4)
@given(moves, moves, st.booleans(), st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4)), max_size=8))
def test_an_index_that_grew_equals_one_that_is_built_anew(tmp_path_factory, first, second, with_evidence, turns):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    chronicles = [Chronicle(repo, told(first)), Chronicle(repo, told(second, "other"), with_evidence=with_evidence)]
    with open_index(repo) as index:
        for turn, events in [*turns, (0, 99), (1, 99)]:
            chronicles[turn].go_on(events)
            index.refresh()
        assert index.on_disk
        assert index_check.content(index) == built_anew(repo)


@examples(0.3)
@given(st.sets(st.integers(0, 8)))
def test_the_sample_run_is_the_same_however_often_it_was_looked_at(tmp_path_factory, looks):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    writer = RunWriter(repo, sample_run.RUN, sample_run.clock_from(count()))
    for place, sample in enumerate(sample_run.transitions()):
        writer.append(sample.event, sample.skill, sample.evidence)
        if place in looks:
            open_index(repo).close()
    with open_index(repo) as index:
        grown, rows = index_check.content(index), queries.log_rows(index, None)
    assert grown == built_anew(repo)
    schema.discard(repo.private_dir / "index.db")
    with open_index(repo) as index:
        assert index_check.content(index) == grown
        assert queries.log_rows(index, None) == rows


def test_only_new_commits_are_read(repo, monkeypatch):
    chronicle = Chronicle(repo, told_story()).go_on(4)
    open_index(repo).close()
    chronicle.go_on(2)
    inserted = []
    real = sys.modules["skillgit.index.table_writer"].insert
    monkeypatch.setattr(
        "skillgit.index.table_writer.insert",
        lambda connection, run, records, seed: inserted.extend(records) or real(connection, run, records, seed),
    )
    with open_index(repo) as index:
        assert [record.commit for record in inserted] == [record.commit for record in chronicle.records[4:6]]
        assert index_check.content(index) == built_anew(repo)
    monkeypatch.setattr("skillgit.index.schema.write", None)
    open_index(repo).close()


def test_a_ref_that_went_back_or_away_has_its_run_read_anew(repo):
    chronicle = Chronicle(repo, told_story()).go_on()
    Chronicle(repo, Story("other").proposed(0.5)).go_on()
    with open_index(repo) as index:
        git(repo.workdir, "branch", "-f", f"run/{RUN}", chronicle.records[1].commit)
        index.refresh()
        assert index_check.content(index) == built_anew(repo)
        git(repo.workdir, "branch", "-D", f"rejected/{RUN}/0004")
        index.refresh()
        assert index_check.content(index) == built_anew(repo)
        git(repo.workdir, "update-ref", "-d", f"refs/skillgit/evidence/{RUN}")
        index.refresh()
        assert index_check.content(index) == built_anew(repo)
        git(repo.workdir, "branch", "-D", f"run/{RUN}")
        index.refresh()
        assert queries.run_names(index) == ("other",)
        assert index_check.content(index) == built_anew(repo)


def test_a_fresh_clone_shows_the_same_history(repo, tmp_path):
    chronicle = Chronicle(repo, told_story()).go_on(6)
    git(tmp_path, "clone", "--quiet", str(repo.workdir), "clone")
    clone = Repo.discover(tmp_path / "clone")
    with open_index(repo) as here, open_index(clone) as there:
        told_here, told_there = (
            [replace(row, refs=()) for row in queries.log_rows(index, RUN)] for index in (here, there)
        )
        assert told_there == told_here
        assert queries.head_row(there, RUN).refs == (f"origin/best/{RUN}", f"origin/run/{RUN}")
        chronicle.go_on()
        git(tmp_path / "clone", "fetch", "--quiet")
        here.refresh()
        there.refresh()
        assert index_check.content(there) == built_anew(clone)
        assert len(queries.log_rows(there, RUN)) == len(queries.log_rows(here, RUN)) == 9
        git(tmp_path / "clone", "checkout", "--quiet", f"run/{RUN}")
        there.refresh()
        assert index_check.content(there) == built_anew(clone)
        assert len(queries.log_rows(there, RUN)) == 9


def test_evidence_that_arrives_later_is_taken_in(repo, tmp_path):
    Chronicle(repo, told_story()).go_on()
    git(tmp_path, "clone", "--quiet", str(repo.workdir), "clone")
    clone = Repo.discover(tmp_path / "clone")
    with open_index(clone) as index:
        head = queries.head_row(index, RUN)
        assert queries.item_rows(index, head) == ()
        git(tmp_path / "clone", "fetch", "--quiet", "origin", "refs/skillgit/*:refs/skillgit/*")
        index.refresh()
        assert len(queries.item_rows(index, head)) == 9
        assert queries.run_row(index, RUN, {}).environment == "searchqa"
        assert index_check.content(index) == built_anew(clone)


def test_main_and_notes_are_followed(repo):
    chronicle = Chronicle(repo, told_story()).go_on()
    best = chronicle.records[5].commit
    open_index(repo).close()
    git(repo.workdir, "update-ref", "refs/heads/main", best)
    notes.append(repo, {best: [{"hard": 0.5}, {"soft": 0.6}]}, time=START)
    with open_index(repo) as index:
        assert queries.best_row(index, RUN).refs == (f"best/{RUN}", "main")
        assert index.select("SELECT * FROM note") == [(best, 0, '{"hard":0.5}'), (best, 1, '{"soft":0.6}')]


def test_an_index_of_another_schema_is_dropped(repo):
    Chronicle(repo, told_story()).go_on()
    with open_index(repo) as index:
        kept = index_check.content(index)
        index.select("CREATE TABLE relic (x)")
        index.select("DROP TABLE edit")
        index.select(f"PRAGMA user_version = {schema.SCHEMA + 1}")
    with open_index(repo) as index:
        assert index_check.content(index) == kept
        assert index.on_disk
        assert not index.select("SELECT 1 FROM sqlite_master WHERE name = 'relic'")


@pytest.mark.parametrize("damage", ["garbage", "truncated", "no tables"])
def test_a_damaged_index_is_made_anew(repo, damage):
    Chronicle(repo, told_story()).go_on()
    with rebuild(repo) as index:
        kept = index_check.content(index)
    path = repo.common_dir / "skillgit" / "index.db"
    if damage == "garbage":
        path.write_bytes(b"no database " * 1000)
    elif damage == "truncated":
        os.truncate(path, 5000)
    else:
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {schema.SCHEMA}")
        connection.close()
    with open_index(repo) as index:
        assert index.on_disk
        assert index_check.content(index) == kept


def test_damage_that_shows_only_when_it_is_read_is_no_error(repo):
    Chronicle(repo, told_story()).go_on()
    with open_index(repo) as index:
        kept = index_check.content(index)
        index.select("DROP TABLE edit")
        assert index_check.content(index) == kept
        assert not index.on_disk


def test_a_locked_index_is_stood_in_for(repo):
    chronicle = Chronicle(repo, told_story()).go_on(3)
    open_index(repo).close()
    other = sqlite3.connect(repo.common_dir / "skillgit" / "index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with open_index(repo, patience=0) as index:
        assert index.on_disk
    chronicle.go_on()
    with open_index(repo, patience=0) as index:
        assert not index.on_disk
        assert len(queries.log_rows(index, RUN)) == 9
    other.execute("ROLLBACK")
    other.close()
    with open_index(repo, patience=0) as index:
        assert index.on_disk
        assert len(queries.log_rows(index, RUN)) == 9


def test_a_folder_that_cannot_be_written_is_no_error(repo, monkeypatch):
    Chronicle(repo, told_story()).go_on()

    def refuse(git_dir):
        raise PermissionError(13, "Permission denied", str(git_dir))

    monkeypatch.setattr("skillgit.store.repo.private_folder", refuse)
    with open_index(Repo.discover(repo.workdir)) as index:
        assert not index.on_disk
        assert len(queries.log_rows(index, RUN)) == 9


def test_a_run_that_cannot_be_read_does_not_hide_the_others(repo):
    Chronicle(repo, told_story()).go_on()
    Chronicle(repo, Story("other").proposed(0.5)).go_on()
    tree = git(repo.workdir, "rev-parse", f"run/{RUN}^{{tree}}")
    stray = git(repo.workdir, "-c", "user.name=x", "-c", "user.email=x@localhost", "commit-tree", tree, "-m", "stray")
    sound = git(repo.workdir, "rev-parse", f"run/{RUN}")
    git(repo.workdir, "update-ref", f"refs/heads/run/{RUN}", stray)
    with open_index(repo) as index:
        assert queries.run_names(index) == ("other",)
        assert isinstance(index.broken[RUN], HistoryError)
        assert queries.log_rows(index, RUN) == ()
    with open_index(repo) as index:
        assert set(index.broken) == {RUN}
        git(repo.workdir, "update-ref", f"refs/heads/run/{RUN}", sound)
        index.refresh()
        assert not index.broken
        assert len(queries.log_rows(index, RUN)) == 9


def unreadable(repo: Repo, run: str, message: str = "stray", parent: str = "") -> str:
    """Make a branch of ``run`` whose commit says nothing of a run, and return the commit."""
    tree = git(repo.workdir, "write-tree")
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    commit = git(repo.workdir, *who, "commit-tree", tree, *(("-p", parent) if parent else ()), "-m", message)
    git(repo.workdir, "update-ref", f"refs/heads/run/{run}", commit)
    return commit


def reads_of(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs that opening the index reads as a whole."""
    runs: list[str] = []
    read = table_writer.read_whole_run

    def noting(repo: Repo, run: str, *rest: object) -> object:
        runs.append(run)
        return read(repo, run, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(table_writer, "read_whole_run", noting)
        with open_index(repo) as index:
            reads_of.broken = {run: (type(error), error.message, error.hint) for run, error in index.broken.items()}
    return runs


NEWER = "run: x\n\nSkillgit-Format: 99\nSkillgit-Event: run-started\nSkillgit-Run: b\n"


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("message", ["stray", NEWER, NEWER.replace("99", "1").replace("run-started", "no-such")])
def test_a_run_that_cannot_be_read_is_read_again_only_when_it_moves(repo, monkeypatch, message, is_packed):
    Chronicle(repo, told_story()).go_on()
    first = unreadable(repo, "b", message)
    if is_packed:
        git(repo.workdir, "pack-refs", "--all")
    assert set(reads_of(repo, monkeypatch)) == {RUN, "b"}
    broken = reads_of.broken
    assert set(broken) == {"b"}
    for _ in range(2):
        assert reads_of(repo, monkeypatch) == []
        assert reads_of.broken == broken
    unreadable(repo, "c")  # another run moves
    assert reads_of(repo, monkeypatch) == ["c"]
    assert set(reads_of.broken) == {"b", "c"}
    unreadable(repo, "b", "later", first)
    assert reads_of(repo, monkeypatch) == ["b"]
    monkeypatch.setattr(table_writer, "__version__", "another")
    monkeypatch.setattr(refresh, "__version__", "another")
    assert sorted(reads_of(repo, monkeypatch)) == ["b", "c"], "another skillgit may be able to read them"
    git(repo.workdir, "update-ref", "-d", "refs/heads/run/b")
    git(repo.workdir, "update-ref", "refs/heads/run/c", f"refs/heads/run/{RUN}")
    reads_of(repo, monkeypatch)
    assert "b" not in reads_of.broken


def test_a_run_whose_objects_are_lost_is_tried_again_each_time(repo, monkeypatch):
    Chronicle(repo, told_story()).go_on()
    first = unreadable(repo, "b")
    unreadable(repo, "b", "later", first)
    path = repo.common_dir / "objects" / first[:2] / first[2:]
    content = path.read_bytes()
    path.unlink()
    for _ in range(2):
        assert "b" in reads_of(repo, monkeypatch)
        assert set(reads_of.broken) == {"b"}
    path.write_bytes(content)
    assert "b" in reads_of(repo, monkeypatch)


def test_two_processes_may_refresh_at_once(repo):
    chronicle = Chronicle(repo, told_story()).go_on(2)
    with open_index(repo) as one, open_index(repo) as two:
        for _ in range(3):
            chronicle.go_on(2)
            one.refresh()
            two.refresh()
            assert one.on_disk
            assert two.on_disk
            assert index_check.content(one) == index_check.content(two) == built_anew(repo)


def test_the_deep_check_finds_a_row_that_git_does_not_tell(repo):
    Chronicle(repo, told_story()).go_on()
    with open_index(repo) as index:
        assert index_check.differing_runs(index) == frozenset()
        index.select("UPDATE candidate SET score = 0.99 WHERE decision = 'reject'")
        assert index_check.differing_runs(index) == {RUN}


def set_refs(repo, tips):
    """Give each ref its tip, or none."""
    lines = (f"update {name} {oid}" if oid else f"delete {name}" for name, oid in tips.items())
    git_input = "\n".join([*lines, ""])
    subprocess.run(["git", "-C", repo.workdir, "update-ref", "--stdin"], input=git_input, text=True, check=True)


def test_whichever_ref_of_an_event_is_seen_first_the_index_ends_as_one_that_is_built_anew(repo):
    chronicle = Chronicle(repo, told_story())
    chronicle.go_on(1)
    while chronicle.waiting:
        before = repo.tips()
        chronicle.go_on(1)
        after = {name: oid for name, oid in repo.tips().items() if before.get(name) != oid}
        old = {name: before.get(name, "") for name in after}
        for name, oid in after.items():
            set_refs(repo, old)
            rebuild(repo).close()
            set_refs(repo, {name: oid})
            open_index(repo).close()
            set_refs(repo, after)
            with open_index(repo) as index:
                assert index_check.differing_runs(index) == frozenset(), f"{name} of {chronicle.records[-1].event}"
