"""A clone that holds a part of its repository: no command takes what was left out for what never was."""

from __future__ import annotations

import pytest
from asking import ask
from contexts import context_in
from program import git
from sample_run import RUN

from skillgit.app.exchange.pull import pull
from skillgit.app.exchange.requests import PullRequest
from skillgit.app.train.requests import SkillTraining
from skillgit.app.train.train import plan_train
from skillgit.app.workspace.revision import lack_of_runs, resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import RevisionNotFoundError, UsageError

CLONES = {
    "shallow": ("--depth", "1"),
    "shallow, with every branch": ("--depth", "1", "--no-single-branch"),
    "shallow, of a tag": ("--depth", "1", "--branch", f"{RUN}/v1"),
    "of one branch": ("--single-branch",),
    "of one branch, without tags": ("--single-branch", "--no-tags"),
    "whole": (),
}


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("clone", CLONES)
def test_what_a_clone_left_out_is_named_with_the_command_that_brings_it(repo, tmp_path, clone):
    home, place = repo.workdir, tmp_path / "clone"
    who = ("-c", "user.name=P", "-c", "user.email=p@example.org")
    git("checkout", "-q", "-B", "main", f"{RUN}/v0", cwd=home)
    for _ in range(2):
        git(*who, "commit", "-q", "--allow-empty", "-m", "x", cwd=home)
    git("clone", "-q", *CLONES[clone], home.as_uri(), place, cwd=tmp_path)
    context = context_in(place)

    def refusals() -> list[RevisionNotFoundError | UsageError]:
        result = [ask(lack_of_runs, context)]
        for refused in (
            lambda: resolve(workspace, f"{RUN}/v1"),
            lambda: plan_train(context, SkillTraining(run="none")),
        ):
            with Workspace(context) as workspace:
                try:
                    refused()
                except (RevisionNotFoundError, UsageError) as error:
                    result.append(error)
        return result

    if clone != "whole":
        for error in refusals():
            assert "git fetch --unshallow" in error.hint or "skillgit pull origin" in error.hint, error
            assert ("shallow" in f"{error.message}{error.hint}") is ("shallow" in clone), error
    if "shallow" in clone:
        git("fetch", "-q", "--unshallow", cwd=place)
    pull(context, PullRequest())
    with Workspace(context) as workspace:
        assert resolve(workspace, f"{RUN}/v1").row is not None


def test_a_revision_of_a_repository_without_runs_has_the_hint_that_makes_one(context):
    for name in ("head", "v3", "demo/v1", "none"):
        with Workspace(context) as workspace, pytest.raises(RevisionNotFoundError) as refusal:
            resolve(workspace, name)
        assert refusal.value.hint == f"there are no runs yet: {ask(lack_of_runs, context).hint}"


@pytest.mark.usefixtures("records")
def test_in_a_clone_of_one_branch_a_run_begins_with_a_warning(repo, tmp_path):
    git("checkout", "-q", "-B", "main", f"{RUN}/v0", cwd=repo.workdir)
    git("clone", "-q", "--single-branch", repo.workdir, tmp_path / "clone", cwd=tmp_path)
    context = context_in(tmp_path / "clone")
    request = SkillTraining(config="searchqa/default", run="demo")
    [warning] = [note for note in plan_train(context, request).notes if "run elsewhere may have the name" in note]
    assert warning.startswith("warning: this clone has one branch of origin only")
    pull(context, PullRequest())
    assert not [note for note in plan_train(context, request).notes if "elsewhere" in note]
