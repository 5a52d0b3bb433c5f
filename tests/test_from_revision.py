"""A run that begins at what a person wrote by hand, on main or on the branch of a run."""

from __future__ import annotations

import pytest
from once import copy_folder
from program import QUICK, git, skillgit
from trained_runs import RUN, small_run

DOCUMENT = "skills/searchqa/SKILL.md"
RULE = "- Give years as four digits.\n"
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("branch", "name"), [("main", "main"), (f"run/{RUN}", RUN)])
def test_a_hand_edited_skill_is_the_seed_of_a_run(tmp_path_factory, tmp_path, branch, name):
    repository = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    git("worktree", "add", "-q", "--force", tmp_path / "hand", branch, cwd=repository)
    text = (tmp_path / "hand" / DOCUMENT).read_text() + RULE
    (tmp_path / "hand" / DOCUMENT).write_text(text)
    git(*IDENTITY, "commit", "-qam", "years", cwd=tmp_path / "hand")
    commit = git("rev-parse", "HEAD", cwd=tmp_path / "hand").out

    skillgit("train", "demo", "--from", name, "--run", "mine", "-q", *QUICK, "-o", "train.num_epochs=1", cwd=repository)

    assert skillgit("show", "mine/v0:SKILL.md", cwd=repository).out == text
    assert git("rev-parse", "mine/v0^", cwd=repository).out == commit
    assert "no problems" in skillgit("fsck", cwd=repository).out


def test_a_skill_of_ones_own_is_not_trained_on_the_samples_of_an_environment_for_ones_own_tasks(tmp_path):
    repository = tmp_path / "repository"
    skillgit("init", repository, cwd=tmp_path)
    refused = skillgit("train", "tasks/default", "--dry-run", cwd=repository, code=2)
    assert "tasks has no data, and repository would be trained on the samples that come with it" in refused.err
    assert "-o env.data_path=FILE" in refused.err
    (tmp_path / "mine.jsonl").write_text(
        "".join(f'{{"prompt": "How high is {n}?", "answer": {n}}}\n' for n in range(40))
    )
    skillgit("train", "tasks/default", "--dry-run", "-o", "env.data_path=../mine.jsonl", cwd=repository)
    skillgit(
        "train", "demo", "--dry-run", cwd=repository
    )  # a benchmark's own samples are what one asks for by its name


def test_the_seed_of_an_environment_is_trained_on_its_samples(tmp_path):
    repository = tmp_path / "repository"
    skillgit("init", repository, "--env", "tasks", cwd=tmp_path)
    assert "of tasks" in skillgit("train", "tasks/default", "--dry-run", cwd=repository).out
