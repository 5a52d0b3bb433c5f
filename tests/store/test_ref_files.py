from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillgit.errors import HistoryError
from skillgit.store.refs import RefFiles

OLD = time.time_ns() - 3_600_000_000_000
NAMES = tuple(f"refs/heads/rejected/demo/{step:04d}" for step in range(4))


@pytest.fixture
def commits(git):
    for title in ("one", "two"):
        git("-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--allow-empty", "-m", title)
    return git("rev-parse", "main~1").strip(), git("rev-parse", "main").strip()


@pytest.fixture
def files(repo):
    return RefFiles(repo.common_dir, lambda _: True)


def settle(repo, age=OLD):
    """Make the packed file look old, so that it is trusted to stay as it is."""
    os.utime(repo.common_dir / "packed-refs", ns=(age, age))


def listed(git):
    return dict(line.split(" ") for line in git("for-each-ref", "--format=%(refname) %(objectname)").splitlines())


def test_loose_and_packed_refs_are_read_as_git_lists_them(git, files, commits):
    old, new = commits
    git("update-ref", "refs/heads/run/demo", old)
    git("update-ref", "refs/notes/skillgit/evals", old)
    git("tag", "demo/v0", old)
    git("pack-refs", "--all")
    git("update-ref", "refs/heads/run/demo", new)
    git("-c", "user.name=n", "-c", "user.email=e@localhost", "tag", "-a", "-m", "annotated", "demo-said", new)
    assert files.read() == listed(git)
    assert files.read()["refs/heads/run/demo"] == new


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["set", "delete", "pack"]), st.sampled_from(NAMES), st.integers(0, 1))))
def test_whatever_happens_to_refs_they_are_read_as_git_lists_them(repo, git, files, commits, changes):
    for verb, name, place in changes:
        if verb == "pack":
            git("pack-refs", "--all", "--prune")
        else:
            git(*(("update-ref", name, commits[place]) if verb == "set" else ("update-ref", "-d", name)))
        before = files.look()
        assert files.read() == listed(git)
        assert RefFiles(repo.common_dir, lambda _: True).look().loose == before.loose


def test_symbolic_and_damaged_refs_are_left_out_and_hide_packed_ones(repo, git, files, commits):
    for name in ("a", "b", "c"):
        git("branch", name, commits[0])
    git("pack-refs", "--all")
    (repo.common_dir / "refs/heads/a").write_text("ref: refs/heads/c\n")
    (repo.common_dir / "refs/heads/b").write_text("nonsense\n")
    assert files.read().keys() == {"refs/heads/main", "refs/heads/c"}


def test_locks_and_folders_without_refs_are_no_refs(repo, git, files, commits):
    (repo.common_dir / "refs/heads/main.lock").write_text(commits[0])
    (repo.common_dir / "refs/heads/rejected/demo").mkdir(parents=True)
    assert files.read() == listed(git)


def test_a_look_is_the_same_until_a_ref_moves(repo, git, files, commits):
    git("pack-refs", "--all")
    settle(repo)
    first = files.look()
    assert first.stamp
    assert files.look() == first
    git("update-ref", "refs/heads/run/demo", commits[0])
    assert files.look() != first


def test_a_look_at_a_packed_file_that_was_replaced_is_another_one(repo, git, files, commits):
    git("branch", "other", commits[0])
    git("pack-refs", "--all")
    settle(repo)
    first = files.look()
    git("update-ref", "refs/heads/other", commits[1])
    git("pack-refs", "--all")
    settle(repo)
    assert files.look().loose == first.loose
    assert files.look().stamp != first.stamp


@pytest.mark.parametrize("age", [0, 10**9])
def test_a_packed_file_that_is_young_or_of_the_future_is_not_trusted_to_stay(repo, git, files, age):
    git("-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--allow-empty", "-m", "one")
    git("pack-refs", "--all")
    settle(repo, time.time_ns() + age)
    assert files.look().stamp == ""


@pytest.mark.usefixtures("commits")
def test_a_repository_without_packed_refs_can_be_told_from_one_with_them(repo, git, files):
    bare = files.look()
    git("pack-refs", "--all", "--no-prune")
    settle(repo)
    assert bare.stamp
    assert bare.stamp != files.look().stamp


def test_packed_refs_are_read_again_when_git_replaced_them(repo, git, files, commits):
    git("branch", "other", commits[0])
    git("pack-refs", "--all")
    settle(repo)
    assert files.read() == listed(git)
    git("branch", "-f", "other", commits[1])
    git("pack-refs", "--all")
    assert files.read() == listed(git)


def test_refs_that_cannot_be_read_are_an_error_with_a_hint(repo, files):
    (repo.common_dir / "packed-refs").mkdir()
    with pytest.raises(HistoryError, match="refs cannot be read") as caught:
        files.read()
    assert caught.value.hint == "git fsck"
