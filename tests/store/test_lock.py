from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from sample_run import START

from skillgit.errors import ConflictError, ExitCode, RunLockedError
from skillgit.store.lock import RunLock, live_runs, repo_lock

HOLD = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from skillgit.store.lock import RunLock
from skillgit.store.repo import Repo
with RunLock(Repo.discover(Path(sys.argv[1])), "x", lambda: datetime(2026, 11, 21, tzinfo=UTC)):
    print("held", flush=True)
    sys.stdin.read()
"""


def lock(repo, run="x") -> RunLock:
    return RunLock(repo, run, lambda: START)


@pytest.fixture
def holder(repo):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(repo.workdir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_writer_is_told_who_the_first_is(repo, holder) -> None:
    with pytest.raises(RunLockedError) as refused, lock(repo):
        pass

    assert str(holder.pid) in refused.value.message
    assert socket.gethostname() in refused.value.message
    assert "2026-11-21" in refused.value.message
    assert refused.value.exit_code is ExitCode.CONFLICT
    assert refused.value.hint


def test_live_runs_are_seen_without_being_disturbed(repo, holder) -> None:
    assert live_runs(repo) == {"x": holder.pid}
    with pytest.raises(RunLockedError), lock(repo):
        pass
    with lock(repo, "y"):
        assert live_runs(repo) == {"x": holder.pid, "y": os.getpid()}
    assert live_runs(repo) == {"x": holder.pid}


def test_a_killed_process_leaves_no_lock(repo, holder) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    assert live_runs(repo) == {}
    with lock(repo):
        assert live_runs(repo) == {"x": os.getpid()}


def test_a_lock_is_given_back_after_an_error(repo) -> None:
    with pytest.raises(ZeroDivisionError), lock(repo):
        raise ZeroDivisionError
    with lock(repo), pytest.raises(RunLockedError), lock(repo):
        pass
    assert live_runs(repo) == {}


def test_the_lock_says_who_holds_it(repo) -> None:
    with lock(repo):
        facts = json.loads((repo.private_dir / "run-x.lock").read_text())

    assert facts == {"host": socket.gethostname(), "pid": os.getpid(), "started": "2026-11-21T09:00:00+00:00"}
    assert (repo.private_dir / "run-x.lock").read_text() == ""


def test_damaged_lock_files_hold_nothing(repo) -> None:
    (repo.private_dir / "run-x.lock").write_text("{half")
    (repo.private_dir / "run-y.lock").write_text("[]")

    assert live_runs(repo) == {}
    with lock(repo):
        assert live_runs(repo) == {"x": os.getpid()}


@pytest.mark.parametrize("odd", ["link", "fifo", "endless", "folder"])
def test_what_stands_for_a_lock_and_is_no_plain_file_is_neither_read_nor_written(repo, tmp_path, odd) -> None:
    path, victim = repo.private_dir / "run-x.lock", tmp_path / "victim"
    victim.write_text("kept")
    match odd:
        case "link":
            path.symlink_to(victim)
        case "fifo":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
    assert live_runs(repo) == {}
    with pytest.raises(ConflictError, match="cannot be written"), lock(repo):
        pass
    assert victim.read_text() == "kept"


def test_the_repository_lock_can_be_taken_again(repo) -> None:
    for _ in range(2):
        with repo_lock(repo):
            pass
