from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts import Person, own
from program import git, new_repository, refs
from soaking import soak

from skillgit.store.repo import Repo

CONCURRENCY = Path(__file__).parents[1] / "concurrency"


@pytest.mark.parametrize("events", [60, soak(6_600)])
def test_thousands_of_refs_arrive_as_they_are(events, host, tmp_path):
    """A run of 6,600 events has more than 5,000 refs."""
    assert train(new_repository(tmp_path / "ann"), events, tmp_path / "progress").wait() == 0
    ann = Person(tmp_path / "ann")
    ann.git("remote", "add", "origin", host.url())
    ann.push("--rejected", "branches", "--evidence")
    assert own(host.path) == ann.own()
    assert len(ann.own()) > events * 0.77
    Person(tmp_path)("clone", "--evidence", host.url(), "bob")
    assert Person(tmp_path / "bob").own() == ann.own()


def test_a_trainer_appends_while_pushes_run_and_every_push_is_one_moment(host, tmp_path, clone):
    new_repository(tmp_path / "ann")
    ann = Person(tmp_path / "ann")
    ann.git("remote", "add", "origin", str(host.path))
    process = train(ann.path, 60, tmp_path / "progress")
    while not (tmp_path / "progress").exists():
        assert process.poll() is None
        time.sleep(0.01)
    pushes = 0
    while process.poll() is None or not pushes:
        ann.push("--rejected", "branches")
        pushes += 1
        copy = clone(f"copy-{pushes}")
        assert copy("fsck").out.endswith("no problems\n")
    assert process.returncode == 0
    ann.push("--rejected", "branches")
    assert own(host.path) == {name: oid for name, oid in ann.own().items() if not name.startswith("refs/skillgit/")}
    assert git("fsck", "--strict", cwd=host.path).code == 0
    assert Repo.discover(ann.path).tip("refs/heads/run/demo") == refs(host.path)["refs/heads/run/demo"]


def train(folder: Path, events: int, progress: Path) -> subprocess.Popen[bytes]:
    """Let a process of its own write so many events of the story."""
    places = os.pathsep.join([str(CONCURRENCY.parent), *sys.path])
    return subprocess.Popen(
        [sys.executable, CONCURRENCY / "appending.py", folder, str(events), progress],
        env=os.environ | {"PYTHONPATH": places},
    )
