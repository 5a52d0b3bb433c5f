from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from sample_run import RUN, clock_from, write_run

from skillgit.app.workspace.context import Context
from skillgit.store import repair
from skillgit.store.history_reader import read_run
from skillgit.store.lock import RunLock
from skillgit.store.seals import note_own

sys.path.insert(0, str(Path(__file__).parent))

from forgery import Patient


@pytest.fixture
def patient(repo, monkeypatch) -> Patient:
    """The sample run in a repository of its own; dead processes are given no time to come back to life."""
    monkeypatch.setattr(repair, "_PATIENCE_S", 0.01)

    def git(*arguments: str) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        done = subprocess.run(["git", *named, *arguments], cwd=repo.workdir, capture_output=True, check=True)
        return done.stdout.decode()

    with RunLock(repo, RUN, clock_from(count())):
        patient = Patient(repo, write_run(repo), git)
    note_own(repo, read_run(repo, RUN)[0].commit, {})
    return patient


@pytest.fixture
def context(repo) -> Context:
    return Context(
        directory=repo.workdir.resolve(),
        environ={},
        clock=lambda: datetime(2026, 11, 21, 12, tzinfo=UTC),
        entropy=lambda count: b"\0" * count,
    )
