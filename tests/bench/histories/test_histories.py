from __future__ import annotations

import subprocess

import pytest
from bench.histories.fast_import import write_history
from bench.histories.story import run_story

from skillgit.domain.event import Rejected, Skipped
from skillgit.domain.state import fold
from skillgit.index.known import note_lines
from skillgit.index.refresh import open_index
from skillgit.store import reader
from skillgit.store.checks import check_run
from skillgit.store.repo import Repo


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return write_history(tmp_path_factory.mktemp("histories") / "small", 240, runs=2)


def test_git_finds_nothing_wrong_with_a_generated_history(history):
    done = subprocess.run(["git", "-C", history.path, "fsck", "--strict"], capture_output=True, check=True)
    assert b"error" not in done.stderr


def test_skillgit_finds_nothing_wrong_with_a_generated_history(history):
    repo = Repo.discover(history.path)
    assert {run: check_run(repo, run) for run in history.events} == {run: [] for run in history.events}


def test_a_generated_history_has_the_events_that_were_asked_for(history):
    repo = Repo.discover(history.path)
    events = {run: [record.event for record in reader.read_run(repo, run)] for run in history.events}
    assert {run: len(found) for run, found in events.items()} == {"demo-000": 120, "demo-001": 120}
    assert [fold(found).outcome is None for found in events.values()] == [False, True]
    assert any(isinstance(event, Rejected) for event in events["demo-000"])
    assert any(isinstance(event, Skipped) for event in events["demo-000"])


def test_notes_of_a_generated_history_are_read(history):
    repo = Repo.discover(history.path)
    with open_index(repo) as index:
        assert note_lines(index, history.refs["refs/tags/demo-000/v1"])


def test_a_story_is_the_same_however_far_it_is_told():
    told = [next(story).event for story in (run_story("demo", 7), run_story("demo", 7))]
    assert told[0] == told[1]
