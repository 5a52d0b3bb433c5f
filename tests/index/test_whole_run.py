from __future__ import annotations

import subprocess

import pytest
from bench.histories.fast_import import write_history
from chronicle import RUN, Chronicle
from hypothesis import given, settings
from stories import Story, moves, told

from skillgit.index import catch_up, comparison, schema, workers
from skillgit.index.refresh import Index
from skillgit.store.repo import Repo

WORKERS = 3


def built(repo, many, monkeypatch):
    """Return what an index holds that is built at once, in several processes from ``many`` refs on, and its errors."""
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(catch_up, "_MANY", many)
        patch.setattr(workers, "other_processes", lambda: asked.append(True) or WORKERS)
        with Index(repo, schema.in_memory(), on_disk=False) as index:
            told = {run: error.message for run, error in index.broken.items()}
            return comparison.content(index), told, bool(asked)


def test_many_runs_are_read_in_several_processes_and_few_in_one(tmp_path, monkeypatch):
    repo = Repo.discover(write_history(tmp_path / "repo", 60, runs=4).path)

    here, there = (built(repo, many, monkeypatch) for many in (10**6, 1))

    assert (here[2], there[2]) == (False, True)
    assert there[:2] == here[:2]
    assert sum(len(rows) for (table, _), rows in here[0].items() if table == "event") == 60


def test_a_run_that_cannot_be_read_is_told_and_the_others_are_there(repo, monkeypatch):
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

    here, there = (built(repo, many, monkeypatch) for many in (10**6, 1))

    assert there[:2] == here[:2]
    assert list(there[1]) == ["other"]
    assert {run for table, run in there[0] if table == "event"} == {RUN, "third"}


@settings(max_examples=10, deadline=None)
@given(moves, moves)
def test_any_history_is_the_same_in_several_processes(tmp_path_factory, first, second):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    for run, found in (("one", first), ("two", second)):
        Chronicle(repo, told(found, run)).go_on()
    with pytest.MonkeyPatch.context() as patch:
        here, there = (built(repo, many, patch) for many in (10**6, 1))

    assert there[:2] == here[:2]
