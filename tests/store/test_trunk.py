"""Whatever the trunk is called, and wherever HEAD is, one branch is the trunk, and no second one is made."""

from __future__ import annotations

import pytest
from real_git import git
from soaking import sampled

from skillgit.store import refs
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk, trunk_revision, trunk_tip

NAMES = sampled(["release/2.x", "main", "master", "trunk", "develop", "Hauptzweig"], 5)


def repository(folder, name, *, commits=1):
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", name, ".")
    for number in range(commits):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"{number}")
    return folder


def trunk_of(folder):
    return refs.short(trunk(Repo.discover(folder)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("commits", [0, 1])
def test_the_branch_that_head_is_on_born_or_not(name, commits, tmp_path):
    assert trunk_of(repository(tmp_path / "r", name, commits=commits)) == name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("elsewhere", ["run/a", "rejected/a/0001", "slow/a", "best/a", "propose/town"])
def test_on_a_branch_of_a_run_or_a_proposal_it_is_the_branch_of_people(name, elsewhere, tmp_path):
    home = repository(tmp_path / "r", name)
    git(home, "switch", "-qc", elsewhere)
    assert trunk_of(home) == name


@pytest.mark.parametrize("name", NAMES)
def test_detached_it_is_the_branch_that_head_was_on_last(name, tmp_path):
    home = repository(tmp_path / "r", name, commits=2)
    git(home, "branch", "main-of-others")
    git(home, "checkout", "-q", "--detach", "HEAD~1")
    assert trunk_of(home) == name
    git(home, "checkout", "-q", "--detach", name)
    assert trunk_of(home) == name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("with_origin_head", [True, False])
def test_in_a_checkout_of_ci_it_is_what_origin_has(name, with_origin_head, tmp_path):
    """No local branch, HEAD detached at a commit that was fetched, and a log that knows no branch that exists."""
    theirs = repository(tmp_path / "theirs", name)
    home = repository(tmp_path / "ci", "placeholder", commits=0)
    git(home, "remote", "add", "origin", theirs)
    git(home, "fetch", "-q", "origin")
    git(home, "checkout", "-q", "--detach", f"origin/{name}")
    if with_origin_head:
        git(home, "remote", "set-head", "origin", name)
    elif name in {"release/2.x", "Hauptzweig"}:
        git(home, "config", "init.defaultBranch", name)
    repo = Repo.discover(home)
    assert refs.short(trunk(repo)) == name
    assert trunk_revision(repo) == f"origin/{name}"
    assert trunk_tip(repo) == git(theirs, "rev-parse", "HEAD")


def test_init_default_branch_comes_before_origin_and_counts_only_if_it_exists(tmp_path):
    theirs = repository(tmp_path / "theirs", "develop")
    home = repository(tmp_path / "r", "trunk")
    git(home, "branch", "stable")
    git(home, "remote", "add", "origin", theirs)
    git(home, "fetch", "-q", "origin")
    git(home, "remote", "set-head", "origin", "develop")
    git(home, "config", "init.defaultBranch", "stable")
    git(home, "checkout", "-q", "--detach")
    (home / ".git" / "logs" / "HEAD").unlink()
    assert trunk_of(home) == "stable"
    git(home, "config", "init.defaultBranch", "absent")
    assert trunk_of(home) == "develop"


@pytest.mark.parametrize("name", NAMES)
def test_each_linked_work_tree_has_the_branch_it_is_on(name, tmp_path):
    home = repository(tmp_path / "r", name)
    git(home, "worktree", "add", "-q", "-b", "topic", tmp_path / "linked")
    assert (trunk_of(home), trunk_of(tmp_path / "linked")) == (name, "topic")


@pytest.mark.parametrize("name", NAMES)
def test_a_clone_has_the_trunk_of_its_origin_also_bare(name, tmp_path):
    theirs = repository(tmp_path / "theirs", name)
    git(tmp_path, "clone", "-q", theirs, "copy")
    git(tmp_path, "clone", "-q", "--bare", theirs, "bare.git")
    assert trunk_of(tmp_path / "copy") == trunk_of(tmp_path / "bare.git") == name


@pytest.mark.parametrize("name", NAMES)
def test_a_new_repository_begins_with_init_default_branch(name, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "init.defaultBranch")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", name)
    (tmp_path / "new").mkdir()
    assert refs.short(trunk(Repo.init(tmp_path / "new"))) == name
