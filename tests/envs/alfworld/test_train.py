"""Whole trainings in the household: offline, and over real HTTP on the loopback."""

from __future__ import annotations

import json

import pytest
from over_the_wire import events, train
from program import git, skillgit

pytestmark = pytest.mark.slow


@pytest.mark.soak
def test_the_demo_learns_to_win_games_that_it_was_not_trained_on(tmp_path):
    skillgit("init", "repository", "--env", "alfworld", cwd=tmp_path)
    repository = tmp_path / "repository"
    skillgit("train", "alfworld/demo", "--run", "demo", cwd=repository)
    rows = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    scores = [row["score"] for row in rows if row["version"] is not None]
    assert max(scores) > scores[-1] + 0.3, "clearly above the seed"
    assert sum(row["kind"] in {"accepted", "slow-merged"} for row in rows) >= 2
    told = git("log", "--format=%(trailers:key=Skillgit-Eval,valueonly)", "-1", "run/demo", cwd=repository).out
    hard = [float(line.partition("hard=")[2].split()[0]) for line in told.splitlines() if "hard=" in line]
    assert max(hard[1:]) > hard[0] + 0.3, "held-out games are won too"
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.soak
def test_a_training_over_http_plays_whole_games(tmp_path):
    few = ("-o", "env.limit=2", "-o", "train.batch_size=2", "-o", "evaluation.test_env_num=1", "-o", "env.max_steps=12")
    repository, asked = train(tmp_path, "alfworld", "-o", "model.target=agent", *few)
    target = [entry for entry in asked if entry.role == "target"]
    optimizer = [entry for entry in asked if entry.role == "optimizer"]
    assert len(target) > 40, "a game takes many calls"
    assert optimizer
    assert events(repository)[-1]["kind"] == "run-started"


@pytest.mark.soak
def test_what_the_target_says_is_played(tmp_path):
    wins = (
        ("Your task is to:", "<action>look</action>"),
        ("You are facing", "I give up."),
    )
    repository, asked = train(tmp_path, "alfworld", "-o", "env.max_steps=4", scripted=wins)
    assert {entry.role for entry in asked} == {"target", "optimizer"}
    first = git("log", "--format=%(trailers:key=Skillgit-Eval,valueonly)", "-1", "wire/v0", cwd=repository).out
    assert "hard=0" in first
