"""What travels with a push: all that it takes to measure, and no more than that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pygit2
import pytest
from once import copy_folder
from program import QUICK, attempt, git, new_repository, refs, skillgit
from soaking import sampled
from trained_runs import RUN, small_run

if TYPE_CHECKING:
    from pathlib import Path

SHORT = (*QUICK, "-o", "train.num_epochs=1")
PLAN = f"refs/skillgit/plan/{RUN}"
KEY = "sk-" + "ant-api03-" + "xY7" * 12


@pytest.fixture(scope="module")
def pushed(tmp_path_factory) -> tuple[Path, Path]:
    """A repository with a trained run, and the one that it was pushed to without evidence."""
    folder = tmp_path_factory.mktemp("pushed")
    own = copy_folder(small_run(tmp_path_factory), folder / "own")
    git("init", "-q", "--bare", "--initial-branch=main", "hub.git", cwd=folder)
    git("remote", "add", "origin", "../hub.git", cwd=own)
    skillgit("push", cwd=own)
    return own, folder / "hub.git"


@pytest.fixture
def clone(pushed, tmp_path) -> Path:
    skillgit("clone", pushed[1], "clone", cwd=tmp_path)
    return tmp_path / "clone"


def objects(repository: Path, *revisions: str) -> set[str]:
    """Return the ids of the objects of a repository, or of those that revisions lead to."""
    if revisions:
        return {line.split()[0] for line in git("rev-list", "--objects", *revisions, cwd=repository).out.splitlines()}
    every = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(git(*every, cwd=repository).out.split())


def files(repository: Path, tree: str) -> dict[str, str]:
    listed = git("ls-tree", "-r", "--format=%(objectname) %(path)", tree, cwd=repository).out
    return {path: oid for oid, _, path in (line.partition(" ") for line in listed.splitlines())}


def test_of_all_evidence_only_the_plan_goes(pushed):
    own, hub = pushed
    plan = files(hub, PLAN)
    assert plan.keys() == {"config.json", "environment.json", "listing", "splits.json"}
    assert objects(own, f"refs/skillgit/evidence/{RUN}") & objects(hub) == {*plan.values()} - {plan["listing"]}


def test_of_items_ids_and_digests_go_and_not_a_word_of_their_content(pushed):
    splits = json.loads(git("cat-file", "blob", f"{PLAN}:splits.json", cwd=pushed[1]).out)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 60, "selection": 20, "test": 8}
    assert {key for rows in splits.values() for row in rows for key in row} == {"id", "digest"}


@pytest.mark.parametrize(
    "command",
    sampled(
        [
            ("eval", "--fresh", "--sample", "20", f"{RUN}/v1"),
            ("eval", f"{RUN}/v1"),
            ("gate", "--base", f"{RUN}/v0", "--head", f"{RUN}/best"),
            ("items", "--item", "va-003", "--measure"),
            ("show", "--settings", RUN),
            ("status",),
            ("train", "--run", RUN),
            ("fsck",),
        ],
        4,
    ),
    ids=lambda words: words[0],
)
def test_a_clone_that_brought_no_evidence_measures_as_the_run_did(clone, command):
    done = attempt(*command, cwd=clone)
    assert done.code == 0, done
    assert "not here" not in done.err
    assert f"refs/skillgit/evidence/{RUN}" not in refs(clone)


def test_a_clone_knows_what_the_run_was_planned_to_be(pushed, clone):
    rows = [json.loads(skillgit("runs", "--json", cwd=place).out)["runs"][0] for place in (pushed[0], clone)]
    assert rows[0] == rows[1]


def test_a_clone_of_a_clone_has_it_too_and_plans_are_the_same_everywhere(pushed, clone, tmp_path):
    git("init", "-q", "--bare", "--initial-branch=main", "next.git", cwd=tmp_path)
    git("remote", "add", "next", tmp_path / "next.git", cwd=clone)
    skillgit("push", "next", "--no-verify", cwd=clone)
    assert refs(tmp_path / "next.git")[PLAN] == refs(clone)[PLAN] == refs(pushed[1])[PLAN]
    assert "up to date" in skillgit("push", "next", "--no-verify", cwd=clone).out


def test_a_plan_comes_with_the_next_pull_where_a_run_was_cloned_without(pushed, tmp_path):
    hub = copy_folder(pushed[1], tmp_path / "hub.git")
    git("update-ref", "-d", PLAN, cwd=hub)
    skillgit("clone", hub, "clone", cwd=tmp_path)
    clone = tmp_path / "clone"
    assert (
        "the configuration of run small is not here"
        in skillgit("eval", "--fresh", "--sample", "20", f"{RUN}/v1", cwd=clone, code=2).err
    )
    assert "evidence was not pushed" in skillgit("pull", "--evidence", cwd=clone).out
    git("update-ref", PLAN, refs(pushed[0])[f"refs/skillgit/remotes/origin/plan/{RUN}"], cwd=pushed[0])
    git("push", "-q", str(hub), f"{PLAN}:{PLAN}", cwd=pushed[0])
    git("update-ref", "-d", PLAN, cwd=pushed[0])
    skillgit("pull", cwd=clone)
    skillgit("eval", "--fresh", "--sample", "20", f"{RUN}/v1", cwd=clone)
    assert json.loads(skillgit("runs", "--json", cwd=clone).out)["runs"][0]["environment"] == "searchqa"


def test_a_plan_of_a_run_that_had_the_name_before_gives_way(pushed, clone, tmp_path):
    """Somebody gave up their run for the one of that name which others have."""
    stale = new_repository(tmp_path / "stale")
    skillgit("train", "demo", "--run", RUN, "-q", *SHORT, "-o", "train.seed=7", cwd=stale)
    git("remote", "add", "origin", pushed[1], cwd=stale)
    skillgit("pull", cwd=stale, code=4)
    for ref in refs(stale):
        if ref.endswith(f"/{RUN}") or f"/{RUN}/" in ref:
            git("update-ref", "-d", ref, cwd=stale)
    me = ("-c", "user.name=n", "-c", "user.email=n@localhost")
    old = git(*me, "commit-tree", "-m", f"plan of run/{RUN}", "main^{tree}", cwd=stale)
    git("update-ref", PLAN, old.out.strip(), cwd=stale)
    skillgit("pull", cwd=stale)
    assert refs(stale)[PLAN] == refs(clone)[PLAN]
    skillgit("eval", "--fresh", f"{RUN}/v1", "--sample", "2", cwd=stale)


def test_a_run_that_was_stopped_goes_on_in_a_clone(tmp_path):
    own = new_repository(tmp_path / "own")
    stopped = attempt("train", "demo", "--run", "half", "-q", *QUICK, "--max-calls", "150", cwd=own)
    assert stopped.code == 7, stopped
    git("init", "-q", "--bare", "--initial-branch=main", "hub.git", cwd=tmp_path)
    git("remote", "add", "origin", "../hub.git", cwd=own)
    skillgit("push", "--no-verify", cwd=own)
    skillgit("clone", "hub.git", "clone", cwd=tmp_path)
    before = refs(tmp_path / "clone")["refs/heads/run/half"]
    skillgit("train", "--run", "half", "-q", cwd=tmp_path / "clone")
    assert git("merge-base", "--is-ancestor", before, "run/half", cwd=tmp_path / "clone").code == 0
    assert "no problems" in skillgit("fsck", cwd=tmp_path / "clone").out
    assert json.loads(skillgit("runs", "--json", cwd=tmp_path / "clone").out)["runs"][0]["outcome"]


def test_no_secret_travels_in_a_configuration(tmp_path):
    """Neither one of the environment, nor one that somebody wrote into a setting."""
    own = new_repository(tmp_path / "own")
    env = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    url = "model.openai_compatible_base_url=http://"
    for setting in (
        f"model.openai_chat_api_key={KEY}",
        f"model.target_api_key={KEY}",
        f"{url}someone:{KEY}@localhost/v1",
    ):
        assert attempt("train", "demo", "--run", "no", "-o", setting, cwd=own, env=env).code == 2
    skillgit("train", "demo", "--run", "safe", "-q", *SHORT, "-o", f"{url}localhost/v1?key={KEY}", cwd=own, env=env)
    git("init", "-q", "--bare", "--initial-branch=main", "hub.git", cwd=tmp_path)
    git("remote", "add", "origin", "../hub.git", cwd=own)
    skillgit("push", cwd=own, env=env)
    hub = pygit2.Repository(tmp_path / "hub.git")
    assert "base_url" in git("cat-file", "blob", "refs/skillgit/plan/safe:config.json", cwd=hub.path).out
    assert [oid for oid in hub if KEY.encode() in hub.read(oid)[1]] == []
