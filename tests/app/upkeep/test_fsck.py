from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from asking import ask
from real_git import git
from sample_run import RUN, as_json, clock_from, transitions, write_run
from soaking import soak

from skillgit.app.history.status import status
from skillgit.app.upkeep.fsck import fsck
from skillgit.errors import ConflictError, RevisionNotFoundError
from skillgit.index import index_check
from skillgit.index.index_check import IndexFault
from skillgit.index.refresh import open_index, path_of
from skillgit.store.event_writer import RunWriter


def test_a_sound_history_has_no_problems(context, repo, records):
    write_run(repo, "other", events=2)
    found = fsck(context, None, deep=True)
    assert (found.runs, found.commits, found.problems) == (2, len(records) + 2, ())
    assert fsck(context, "demo").commits == len(records)


def test_a_derived_ref_that_is_astray_is_a_problem_that_can_be_mended(context, repo, records):
    git(repo.workdir, "tag", "-f", f"{RUN}/v1", records[0].commit)
    (problem,) = fsck(context, None).problems
    assert (problem.run, problem.repairable) == (RUN, True)


@pytest.mark.usefixtures("records")
def test_an_index_that_differs_from_git_is_a_problem_of_its_runs(context, repo):
    with open_index(repo) as index:
        index.select("UPDATE event SET title = 'forged' WHERE step = 2")
        index.select("INSERT INTO note VALUES ('1', 0, '{}')")
    assert fsck(context, None).problems == ()
    (problem,) = fsck(context, RUN, deep=True).problems
    assert (problem.run, problem.repairable) == (RUN, True)
    assert [problem.run for problem in fsck(context, None, deep=True).problems] == ["", RUN]


@contextmanager
def altered(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def other_schema(path):
    with altered(path) as connection:
        connection.execute("PRAGMA user_version = 1")


def lose_rows(table):
    def lose(path):
        with altered(path) as connection:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a table of ours

    return lose


DAMAGE = {
    "garbage": (lambda path: path.write_bytes(b"garbage" * 1000), IndexFault.DAMAGED),
    "cut": (lambda path: os.truncate(path, path.stat().st_size // 2), IndexFault.DAMAGED),
    "gone": (Path.unlink, IndexFault.MISSING),
    "empty": (lambda path: path.write_bytes(b""), IndexFault.STALE),
    "of another skillgit": (other_schema, IndexFault.STALE),
    "without some rows": (lose_rows("item_outcome"), IndexFault.STALE),
}


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("run", [None, soak(RUN)])
def test_a_repair_rebuilds_an_index_that_is_not_what_git_makes_it_and_says_so(context, repo, damage, run):
    open_index(repo).close()
    harm, fault = DAMAGE[damage]
    harm(path_of(repo))
    repaired = fsck(context, run, repair=True)
    repairs = () if fault is IndexFault.MISSING else (f"rebuilt the index, which was {fault}",)
    assert (repaired.problems, repaired.mended) == ((), repairs)
    assert index_check.fault(repo) is None
    again = fsck(context, run, deep=True, repair=True)
    assert (again.problems, again.mended) == ((), ())


@pytest.mark.usefixtures("records")
def test_rows_that_are_gone_from_any_table_are_missed(repo):
    open_index(repo).close()
    sound = path_of(repo).read_bytes()
    for table in ("run", "event", "version", "candidate", "item_outcome", "evaluation", "search", "tally"):
        path_of(repo).write_bytes(sound)
        lose_rows(table)(path_of(repo))
        assert index_check.fault(repo) is IndexFault.STALE, table


def test_a_run_that_cannot_be_read_is_a_problem_not_an_error(context, repo, records):
    tree = git(repo.workdir, "rev-parse", f"{records[0].commit}^{{tree}}").strip()
    stray = git(repo.workdir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit-tree", tree, "-m", "x")
    git(repo.workdir, "update-ref", f"refs/heads/run/{RUN}", stray.strip())
    for run in (None, RUN):
        found = fsck(context, run)
        assert found.runs == 1
        assert stray.strip() in {problem.commit for problem in found.problems}
    write_run(repo, "other", events=2)
    assert ask(status, context).broken == (RUN,)
    assert ask(status, context).run.name == "other"


def test_no_runs_are_no_problem_and_an_unknown_one_is_an_error(context):
    assert fsck(context, None).problems == ()
    with pytest.raises(RevisionNotFoundError):
        fsck(context, "other")


def test_an_event_of_a_trainer_that_names_no_evidence_is_told(context, repo):
    first, one, *_ = transitions()
    config = {
        "train": {"num_epochs": 2, "batch_size": 1},
        "optimizer": {"learning_rate": 4, "lr_scheduler": "constant"},
    }
    for run, plan in (("a", {}), ("b", {"config.json": as_json(config)})):
        writer = RunWriter(repo, run, clock_from(count()))
        writer.append(replace(first.event, run=run), first.skill, {**first.evidence, **plan})
        writer.append(replace(one.event, run=run), one.skill, {})
    (problem,) = fsck(context, None).problems
    assert problem.run == "b"
    assert problem.sentence == "the commit names no evidence, and accepted always has some"


def test_the_schedule_of_the_configuration_is_held_against_the_budgets(context, repo):
    first, *others = transitions()
    config = {
        "train": {"num_epochs": 5, "batch_size": 1},
        "optimizer": {"learning_rate": 4, "lr_scheduler": "constant"},
    }
    evidence = {**first.evidence, "config.json": as_json(config)}
    writer = RunWriter(repo, RUN, clock_from(count()))
    for sample in (replace(first, evidence=evidence), *others):
        writer.append(sample.event, sample.skill, sample.evidence)
    (problem,) = fsck(context, None).problems
    assert problem.sentence == "step 3 had an edit budget of 3, and the schedule says 4"


@pytest.mark.usefixtures("records")
def test_an_index_that_cannot_be_written_is_a_problem_after_a_repair(context, repo, monkeypatch):
    path_of(repo).unlink()
    (path_of(repo) / "a folder in its place").mkdir(parents=True)
    repaired = fsck(context, None, repair=True)
    assert repaired.mended == ()
    assert [problem.sentence.partition(";")[0] for problem in repaired.problems] == ["the index cannot be written"]

    def refuse(git_dir):
        raise PermissionError(13, "Permission denied", str(git_dir))

    monkeypatch.setattr("skillgit.store.repo.private_folder", refuse)
    with pytest.raises(ConflictError, match="cannot be written: Permission denied"):
        fsck(context, None, repair=True)
