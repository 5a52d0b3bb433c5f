from __future__ import annotations

import os
import signal
import subprocess
from operator import attrgetter

import pytest
from bench.histories.fast_import import write_history
from bench.histories.providers import CONDUCTS
from chronicle import RUN, Chronicle
from hypothesis import given
from soaking import examples
from stories import Story, moves, told

from skillgit import forks
from skillgit.domain.event_kinds import EventKind
from skillgit.index import index_check, schema, table_writer
from skillgit.index.refresh import Index
from skillgit.store import history_reader
from skillgit.store.repo import Repo


def built(repo):
    """Return what an index holds that is built at once, and the errors of runs."""
    with Index(repo, schema.in_memory(), on_disk=False) as index:
        return index_check.content(index), {run: error.message for run, error in index.broken.items()}


def test_rows_say_what_the_events_of_all_providers_say(tmp_path):
    repo = Repo.discover(write_history(tmp_path / "repo", 150, runs=len(CONDUCTS)).path)
    records = [record for run in history_reader.runs(repo) for record in history_reader.read_run(repo, run)]
    paid = [record for record in records if record.event.kind is not EventKind.SLOW_MERGED]
    amounts = attrgetter(*schema.AMOUNTS)

    with Index(repo, schema.in_memory(), on_disk=False) as index:
        events = index.select(f"SELECT oid, target, judge, {', '.join(schema.AMOUNTS)} FROM event")  # noqa: S608 - names are ours
        parts = index.select(
            "SELECT e.oid, role, stage, s.cached, s.unpriced FROM spent s JOIN event e ON e.id = event"
        )
        alphas = index.select("SELECT count(*) FROM candidate WHERE policy = 'paired'")[0][0]

    told = {(row.commit, row.event.models.target, row.event.models.judge, *amounts(row.event.cost)) for row in paid}
    assert told <= set(events)
    assert len(events) == len(records) == 150
    assert set(parts) == {
        (row.commit, part.role, part.stage, part.cost.cached, part.cost.unpriced)
        for row in paid
        for part in row.event.cost.parts
    }
    verdicts = [record.event.verdict for record in records]
    assert alphas == sum(verdict is not None and verdict.alpha is not None for verdict in verdicts) > 0


@pytest.fixture
def _shared(monkeypatch):
    """Let other processes read runs, however few there are."""
    monkeypatch.setattr(table_writer, "_MANY", 1)
    monkeypatch.setattr(forks, "can_fork", lambda: True)


@pytest.mark.usefixtures("_shared")
def test_runs_that_other_processes_read_have_the_same_rows(tmp_path, monkeypatch):
    repo = Repo.discover(write_history(tmp_path / "repo", 60, runs=4).path)
    shared = built(repo)
    read, calls = table_writer.read_whole_run, []
    monkeypatch.setattr(table_writer, "read_whole_run", lambda *run: calls.append(run) or read(*run))

    assert built(repo) == shared
    assert calls == []

    monkeypatch.setattr(forks, "can_fork", lambda: False)
    assert built(repo) == shared
    assert len(calls) == 4


@pytest.mark.usefixtures("_shared")
def test_what_a_killed_process_had_to_read_is_read_here(tmp_path, monkeypatch):
    repo = Repo.discover(write_history(tmp_path / "repo", 60, runs=4).path)
    expected, read, parent = built(repo), table_writer.read_whole_run, os.getpid()

    def killed(*run):
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(*run)

    monkeypatch.setattr(table_writer, "read_whole_run", killed)
    assert built(repo) == expected


@pytest.mark.parametrize("forked", [False, True])
def test_a_run_that_cannot_be_read_is_told_and_the_others_are_there(repo, forked, monkeypatch):
    monkeypatch.setattr(table_writer, "_MANY", 1)
    monkeypatch.setattr(forks, "can_fork", lambda: forked)
    records = {run: Chronicle(repo, Story(run).proposed(0.5)).go_on().records for run in (RUN, "other", "third")}
    last, signed = records["other"][-1], ("-c", "user.name=n", "-c", "user.email=e@localhost")
    forged = subprocess.run(
        ["git", *signed, "-C", repo.workdir, "commit-tree", "-p", last.commit, last.tree],
        input="skill: forged\n\nSkillgit-Format: 1\nSkillgit-Event: nothing\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    subprocess.run(["git", "-C", repo.workdir, "update-ref", "refs/heads/run/other", forged], check=True)

    content, errors = built(repo)

    assert list(errors) == ["other"]
    assert {run for table, run in content if table == "event"} == {RUN, "third"}


@examples(0.3)
@given(moves, moves)
def test_any_history_has_the_same_rows_at_once_and_event_by_event(tmp_path_factory, first, second):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    chronicles = [Chronicle(repo, told(found, run)) for run, found in (("one", first), ("two", second))]
    with Index(repo, schema.in_memory(), on_disk=False) as index:
        while any(chronicle.waiting for chronicle in chronicles):
            for chronicle in chronicles:
                chronicle.go_on(1)
            index.refresh()
        grown = index_check.content(index)

    assert grown == built(repo)[0]
