"""The recorded run: the training of a real language model that comes with skillgit, replayed."""

from __future__ import annotations

import json

import pytest
from program import git, skillgit


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    skillgit("init", cwd=folder)
    skillgit("train", "recorded", "--run", "slips", cwd=folder)
    return folder


def test_it_learns_what_no_prompt_states(replayed):
    rows = json.loads(skillgit("log", "slips", "--json", cwd=replayed).out)["events"]
    scores = {row["version"]: row["score"] for row in rows if row["version"] is not None}
    assert scores == {0: 0.0, 1: 0.45, 2: 0.85}
    finish = git("log", "-1", "--format=%(trailers:key=Skillgit-Eval,valueonly)", "run/slips", cwd=replayed).out
    assert "version=0" in finish
    assert "version=2" in finish
    assert "hard=0.916" in finish


def test_its_history_is_whole_and_its_commits_are_always_the_same(replayed, tmp_path):
    skillgit("fsck", "--deep", cwd=replayed)
    skillgit("init", cwd=tmp_path)
    skillgit("train", "recorded", "--run", "slips", cwd=tmp_path)
    text = "slips/v2:skills/seed-library-slips/SKILL.md"
    assert git("show", text, cwd=tmp_path).out == git("show", text, cwd=replayed).out
    assert "GROW" in git("show", text, cwd=replayed).out


def test_other_settings_ask_what_was_not_recorded(replayed):
    told = skillgit("train", "recorded", "--run", "other", "-o", "train.seed=7", cwd=replayed, code=5)
    assert "has no reply of claude" in told.err
