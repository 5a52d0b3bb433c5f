"""A run that begins at what a person wrote by hand, on main or on the branch of a run."""

from __future__ import annotations

import shutil

import pytest
from program import QUICK, git, skillgit
from trained_runs import RUN, small_run

DOCUMENT = "skills/searchqa/SKILL.md"
RULE = "- Give years as four digits.\n"
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("branch", "name"), [("main", "main"), (f"run/{RUN}", RUN)])
def test_a_hand_edited_skill_is_the_seed_of_a_run(tmp_path_factory, tmp_path, branch, name):
    repository = shutil.copytree(small_run(tmp_path_factory), tmp_path / "repository")
    git("worktree", "add", "-q", "--force", tmp_path / "hand", branch, cwd=repository)
    text = (tmp_path / "hand" / DOCUMENT).read_text() + RULE
    (tmp_path / "hand" / DOCUMENT).write_text(text)
    git(*IDENTITY, "commit", "-qam", "years", cwd=tmp_path / "hand")
    commit = git("rev-parse", "HEAD", cwd=tmp_path / "hand").out

    skillgit("train", "demo", "--from", name, "--run", "mine", "-q", *QUICK, "-o", "train.num_epochs=1", cwd=repository)

    assert skillgit("show", "mine/v0:SKILL.md", cwd=repository).out == text
    assert git("rev-parse", "mine/v0^", cwd=repository).out == commit
    assert "no problems" in skillgit("fsck", cwd=repository).out
