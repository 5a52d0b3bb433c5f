from __future__ import annotations

import os

import pytest
from asking import ask
from real_git import git
from sample_run import RUN, write_run

from skillgit.app.history.run_list import run_list
from skillgit.app.history.status import status
from skillgit.errors import RepositoryNotFoundError
from skillgit.store.lock import RunLock


def test_an_empty_repository_stands_at_nothing(context):
    found = ask(status, context)
    assert (found.run, found.head, found.best, found.runs, found.live) == (None, None, None, 0, ())
    assert (found.checked_out, found.repository.resolve()) == ("main", context.directory)
    assert ask(run_list, context).rows == ()


def test_a_run_stands_at_its_head_and_best(context, records):
    found = ask(status, context)
    assert found.run.name == RUN
    assert (found.head.version, found.best.version, found.runs) == (3, 3, 1)
    assert (found.run.outcome, found.run.steps, found.run.environment) == ("improved", 5, "toy")
    assert (found.run.best_score, found.run.first_score, found.run.total_steps) == (0.8, 0.4, 2)
    assert found.index_fresh
    assert found.best.commit == records[6].commit


@pytest.mark.usefixtures("records")
def test_the_newest_run_comes_first(context, repo):
    write_run(repo, "other", events=2)
    assert [row.name for row in ask(run_list, context).rows] == [RUN, "other"]
    assert (ask(run_list, context).rows[1].outcome, ask(run_list, context).rows[1].best_version) == ("", 1)


@pytest.mark.usefixtures("records")
def test_a_run_in_training_names_its_process(context, repo):
    with RunLock(repo, RUN, context.clock):
        found = ask(status, context)
        assert [(row.name, row.running_pid) for row in found.live] == [(RUN, os.getpid())]
        assert ask(run_list, context).rows[0].running_pid == os.getpid()
    assert ask(status, context).live == ()


def test_what_is_checked_out_has_its_name(context, repo, records):
    git(repo.workdir, "checkout", "--quiet", "--detach", records[1].commit)
    assert ask(status, context).checked_out == f"{RUN}/v1"
    git(repo.workdir, "checkout", "--quiet", "--detach", records[2].commit)
    assert ask(status, context).checked_out == f"{RUN}/r2"
    git(repo.workdir, "checkout", "--quiet", f"best/{RUN}")
    assert ask(status, context).checked_out == f"best/{RUN}"


@pytest.mark.usefixtures("records")
@pytest.mark.usefixtures("repo")
def test_a_stand_in_for_the_index_is_told(context, monkeypatch):
    def refuse(git_dir):
        raise PermissionError(13, "Permission denied", str(git_dir))

    monkeypatch.setattr("skillgit.store.repo.private_folder", refuse)
    found = ask(status, context)
    assert not found.index_fresh
    assert found.head.version == 3


def test_without_a_repository_there_is_no_status(empty):
    with pytest.raises(RepositoryNotFoundError):
        ask(status, empty)
