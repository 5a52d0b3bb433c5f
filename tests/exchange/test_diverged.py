from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hosts import first
from program import refs
from sample_run import RUN

from skillgit.store.exchange.remotes import tracked
from skillgit.store.history_reader import read_run
from skillgit.store.lock import RunLock


@pytest.fixture
def both(host, tmp_path, clone):
    """Two people who go on with the same run, and one of them has pushed."""
    ann = first(tmp_path / "ann", 4)
    ann.git("remote", "add", "origin", str(host.path))
    ann.push("--rejected", "branches")
    bob = clone("bob")
    bob.append(4, 7)
    bob.push()
    return ann, bob


def test_a_run_that_both_went_on_with_is_left_as_it_is(both):
    ann, bob = both
    ann.append(4, 6, minute=50)
    before = ann.own()

    done = ann("pull", code=4)

    assert f"run {RUN} has diverged, and was left as it is" in done.err
    assert f"hint: skillgit fork {RUN}/v2 NAME keeps your line" in done.err
    assert ann.own() == before
    there = tracked(ann.repo, "origin")
    assert there[f"refs/heads/run/{RUN}"] == bob.own()[f"refs/heads/run/{RUN}"], "theirs is here to look at"


def test_a_push_that_would_lose_what_others_did_is_refused_and_names_the_way(both, host):
    ann, _ = both
    ann.append(4, 6, minute=50)
    there = refs(host.path)

    done = ann.push(code=4)

    assert f"skillgit: run {RUN} was not pushed: origin has something that is not here\n" in done.err
    assert "hint: skillgit pull origin, then push again" in done.err
    assert refs(host.path) == there


def test_a_diverged_run_does_not_keep_others_back(both, host):
    ann, _ = both
    ann.append(4, 6, minute=50)
    ann("fork", f"{RUN}/v1", "other")
    rows = json.loads(ann.push("--json", code=4).out)["refs"]
    states = {row["ref"]: row["state"] for row in rows}
    assert states[f"refs/heads/run/{RUN}"] == "rejected"
    assert states["refs/heads/run/other"] == "pushed"
    assert "refs/heads/run/other" in refs(host.path)


def test_after_a_fork_theirs_can_be_taken_and_both_go_on(both, host):
    """The steps that docs/sharing.md names."""
    ann, bob = both
    ann.append(4, 6, minute=50)
    mine = ann.own()[f"refs/tags/{RUN}/v2"]
    ann("fork", f"{RUN}/v2", "mine")
    places = [f"refs/heads/{kind}/{RUN}" for kind in ("run", "slow", "best", "rejected")] + [f"refs/tags/{RUN}"]
    for name in ann.git("for-each-ref", "--format=%(refname)", *places).split():
        ann.git("update-ref", "-d", name)
    ann("pull")
    ann.push()
    assert ann.own()[f"refs/heads/run/{RUN}"] == bob.own()[f"refs/heads/run/{RUN}"]
    assert ann.git("merge-base", mine, "run/mine").strip() == mine
    bob("pull")
    assert bob.own()["refs/heads/run/mine"] == refs(host.path)["refs/heads/run/mine"]


def test_one_step_with_two_outcomes_is_a_divergence_though_the_line_is_the_same(host, tmp_path, clone):
    ann = first(tmp_path / "ann", 2)
    ann.git("remote", "add", "origin", str(host.path))
    ann.push("--rejected", "branches")
    bob = clone("bob")
    bob.append(2, 3)
    bob.push("--rejected", "branches")
    ann.append(2, 3, minute=50)
    before = ann.own()

    done = ann("pull", code=4)

    assert f"rejected/{RUN}/0002 is another candidate here than on origin" in done.err
    assert ann.own() == before
    assert "0002" in ann.push("--json", code=4).out


def test_what_others_refused_after_the_parting_does_not_spoil_a_run_that_was_only_fetched_beside(both):
    ann, bob = both
    bob.append(7)
    bob.push()
    ann.append(4, 7, minute=50)
    before = read_run(ann.repo, RUN)

    ann("pull", "--dry-run", code=4)

    assert f"refs/remotes/origin/rejected/{RUN}/0005" in refs(ann.path)
    assert read_run(ann.repo, RUN) == before
    assert ann("log", RUN).code == 0


@pytest.mark.soak
def test_a_run_that_is_being_trained_is_left_alone_and_others_come_in(both):
    ann, bob = both
    bob("fork", f"{RUN}/v1", "other")
    bob.push()
    with RunLock(ann.repo, RUN, lambda: datetime(2026, 11, 22, tzinfo=UTC)):
        done = ann("pull", code=4)
    assert f"run {RUN} is being trained by process" in done.out
    assert "refs/heads/run/other" in ann.own()
    ann("pull")
    with RunLock(ann.repo, RUN, lambda: datetime(2026, 11, 22, tzinfo=UTC)):
        ann("pull")  # there is nothing new, so that nobody is in the way


def test_a_run_whose_branch_is_checked_out_is_not_moved_under_the_work_tree(both):
    ann, _ = both
    ann.git("checkout", "-q", f"run/{RUN}")
    done = ann("pull", code=4)
    assert f"run/{RUN} is checked out in {ann.path}" in done.out
    assert ann.git("status", "--porcelain") == ""


def test_a_dry_run_tells_what_would_come_and_moves_nothing(both):
    ann, bob = both
    bob.git("tag", "theirs")
    bob.git("push", "-q", "origin", "theirs", "HEAD:refs/heads/branch-of-theirs")
    bob("note", f"{RUN}/v1", "a note")
    bob.push("--evidence")
    line = f"refs/heads/run/{RUN}"
    before, old = ann.own(), ann.own()[line]
    first = json.loads(ann("pull", "--dry-run", "--evidence", "--json").out)
    moved = {row["ref"]: (row["run"], row["old"], row["new"]) for row in first["fetched"]}
    assert moved[line] == (RUN, old, bob.own()[line])
    assert moved["refs/heads/branch-of-theirs"][:2] == ("", "")
    assert {"refs/notes/skillgit/evals", f"refs/skillgit/evidence/{RUN}"} <= moved.keys()
    assert ann.own() == before
    second = json.loads(ann("pull", "--dry-run", "--evidence", "--json").out)
    assert second["fetched"] == []
    assert second | {"fetched": first["fetched"]} == first, "what would move is the same until it has moved"
    assert ann.own() == before
    pulled = json.loads(ann("pull", "--evidence", "--json").out)
    for key in ("remote", "url", "main", "notes", "releases"):
        assert pulled[key] == first[key]
    assert [(row["run"], row["state"]) for row in pulled["runs"]] == [
        (row["run"], row["state"]) for row in first["runs"]
    ]
    assert ann.own()[line] == bob.own()[line]


def test_a_run_that_is_not_here_can_be_looked_at_after_a_dry_run(both):
    ann, bob = both
    bob("fork", f"{RUN}/v1", "theirs")
    bob.push()
    before = ann.own()
    assert re.search(r"^  theirs +best, run", ann("pull", "--dry-run").out, re.MULTILINE)
    assert "theirs" in ann("log", "theirs").out
    assert ann.own() == before


@pytest.mark.parametrize("words", [("remove", "origin"), ("rename", "origin", "hub")], ids=" ".join)
def test_hidden_copies_of_a_remote_that_git_has_removed_go_with_the_next_pull(both, host, words):
    ann, bob = both
    bob.push("--evidence")
    ann("pull", "--dry-run", "--evidence")
    ann.git("remote", "add", "other", str(host.path))
    ann("pull", "other", "--dry-run", "--evidence")

    def copies(remote: str) -> set[str]:
        hidden = f"refs/skillgit/remotes/{remote}/"
        return {name.removeprefix(hidden) for name in refs(ann.path) if name.startswith(hidden)}

    before, kept = ann.own(), copies("other")
    assert copies("origin") == kept != set()
    ann.git("remote", *words)
    ann("pull", "other", "--dry-run")
    assert copies("origin") == set()
    assert copies("other") == kept
    assert ann.own() == before
