from __future__ import annotations

import re
import subprocess
from itertools import islice

import pytest
from bench.histories.fast_import import write_history
from bench.histories.providers import CONDUCTS
from bench.histories.story import run_story

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.run_state import fold
from skillgit.index.refresh import open_index
from skillgit.index.version_queries import note_lines
from skillgit.store import history_reader
from skillgit.store.repo import Repo

AMOUNTS = "calls in out usd seconds cached cache-written reasoning unpriced"
WANTED = {
    "Edit": "op file support source anchor fixed broken",
    "Patch": "merged ranked applied skipped budget by mode",
    "Origin": "number of",
    "Eval": "split version set n scored hard soft seed stopped unneeded spare",
    "Gate": "policy metric score current best fixed broken p weight alpha margin guard blocked repeats",
    "Models": "target optimizer judge",
    "Cost": AMOUNTS,
    "Spent": f"role stage {AMOUNTS}",
}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return write_history(tmp_path_factory.mktemp("histories") / "small", 600, runs=len(CONDUCTS))


def test_git_finds_nothing_wrong_with_a_generated_history(history):
    done = subprocess.run(["git", "-C", history.path, "fsck", "--strict"], capture_output=True, check=True)
    assert b"error" not in done.stderr


def test_skillgit_finds_nothing_wrong_with_a_generated_history(history):
    repo = Repo.discover(history.path)
    assert {run: check_run(repo, run) for run in history.events} == {run: [] for run in history.events}


def test_a_generated_history_has_the_events_that_were_asked_for(history):
    repo = Repo.discover(history.path)
    events = {run: [record.event for record in history_reader.read_run(repo, run)] for run in history.events}
    assert {run: len(found) for run, found in events.items()} == {f"demo-{place:03d}": 120 for place in range(5)}
    assert [fold(found).outcome is None for found in events.values()] == [False, False, False, False, True]
    assert any(event.kind is EventKind.REJECTED for event in events["demo-000"])
    assert any(event.kind is EventKind.SKIPPED for event in events["demo-000"])


def test_trailers_of_a_generated_history_are_those_of_real_providers_and_configurations(history):
    """Every field that a training writes stands there; those of rare interventions and older histories do not."""
    listed = subprocess.run(
        ["git", "-C", history.path, "log", "--all", "--format=%B"], capture_output=True, check=True, text=True
    ).stdout
    written = {
        f"{key} {field}".strip()
        for key, value in re.findall(r"^Skillgit-([A-Za-z-]+): (.*)$", listed, flags=re.MULTILINE)
        for field in (*re.findall(r"(\S+)=", value), "")
    }
    for key, wanted in WANTED.items():
        assert {f"{key} {field}" for field in wanted.split()} <= written
    assert {"Appendix", "Evidence", "Placebo", "Origin", "Spent"} <= written


def test_notes_of_a_generated_history_are_read(history):
    repo = Repo.discover(history.path)
    with open_index(repo) as index:
        assert note_lines(index, history.refs["refs/tags/demo-000/v1"])


def test_a_story_is_the_same_however_far_it_is_told():
    told = [next(story).event for story in (run_story("demo", 7), run_story("demo", 7))]
    assert told[0] == told[1]


def test_a_story_goes_on_when_its_score_can_rise_no_more():
    """A soft score is at most 1, which ``Scored`` sees to."""
    chapters = list(islice(run_story("demo", 3, gain=10_000), 400))
    assert [fold(chapter.event for chapter in chapters).outcome, len(chapters)] == [None, 400]
    assert not any(chapter.event.kind is EventKind.ACCEPTED for chapter in chapters[-50:])
