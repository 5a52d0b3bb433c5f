"""One trunk, whatever it is called: init, train, promote, push, clone, pull and propose make no second branch."""

from __future__ import annotations

import json
import shlex

import pytest
from real_git import git
from sample_run import seed_skill, write_run
from soaking import sampled, soak

from skillgit.app.exchange.pull import clone, pull
from skillgit.app.exchange.push import push
from skillgit.app.exchange.requests import PullRequest, PushRequest
from skillgit.app.interventions.promote import promote
from skillgit.app.proposals.jobs import Jobs
from skillgit.app.proposals.requests import ProposeRequest
from skillgit.app.train.starting_point import init
from skillgit.app.workspace.context import Context
from skillgit.store.repo import Repo
from skillgit.store.work_tree import add_skill

NAMES = ["master", "trunk", "develop", "release/2.x", "main"]
PATH = ".claude/skills/demo"


def plain(folder, where="heads"):
    names = git(folder, "for-each-ref", "--format=%(refname:short)", f"refs/{where}").splitlines()
    return {
        name for name in names if not name.removeprefix("origin/").startswith(("run/", "best/", "slow/", "rejected/"))
    }


def trained(folder, name, clock):
    """A repository of somebody's, whose branch has this name, with a run that trains the skill in its place."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", name, ".")
    repo = Repo.discover(folder)
    add_skill(repo, PATH, seed_skill("demo"), time=clock())
    write_run(repo, path=PATH)
    return Context.from_process(folder)


@pytest.mark.parametrize("name", sampled(NAMES, 3))
def test_init_promote_push_clone_and_pull_use_the_one_trunk(name, tmp_path, clock):
    context = trained(tmp_path / "mine", name, clock)
    assert init(context, None, None).branch == name
    assert promote(context, "v3").branch == name
    host = tmp_path / "host.git"
    git(tmp_path, "init", "-q", "--bare", "-b", name, host)
    git(context.directory, "remote", "add", "origin", host)
    assert push(context, PushRequest()).error is None
    assert plain(context.directory) == plain(host) == {name}
    assert git(host, "rev-parse", name) == git(context.directory, "rev-parse", name)
    there = clone(Context.from_process(tmp_path), str(host)).path
    assert plain(there) == {name}
    assert (there / PATH / "SKILL.md").read_bytes() == (context.directory / PATH / "SKILL.md").read_bytes()
    promote(context, "v1")
    push(context, PushRequest())
    pulled = pull(Context.from_process(there), PullRequest())
    assert (pulled.trunk, pulled.error) == (name, None)
    assert git(there, "rev-parse", name) == git(context.directory, "rev-parse", name)
    assert git(there, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", sampled(NAMES, 4))
@pytest.mark.parametrize("theirs", ["main", soak("master"), "other"])
def test_a_host_with_another_trunk_gets_no_second_one_by_the_way(name, theirs, tmp_path, clock):
    context = trained(tmp_path / "mine", name, clock)
    host = tmp_path / "host.git"
    git(tmp_path, "init", "-q", "--bare", "-b", theirs, host)
    git(context.directory, "remote", "add", "origin", host)
    git(context.directory, "push", "-q", "origin", f"{name}:refs/heads/{theirs}")
    result = push(context, PushRequest())
    assert plain(host) == {theirs}
    if name != theirs:
        (warning,) = [text for text in result.warnings if "was not pushed" in text]
        assert warning.startswith(f"{name} was not pushed: origin has no such branch, but {theirs}; git push origin ")
        words = shlex.split(warning.rpartition("; ")[2].removesuffix(" makes it one"))
        git(context.directory, *words[1:])
        assert plain(host) == {theirs, name}
        assert not [text for text in push(context, PushRequest()).warnings if "was not pushed" in text]


@pytest.mark.parametrize("name", sampled(NAMES, 3))
@pytest.mark.parametrize("state", ["attached", "a run", "detached", "a proposal"])
def test_propose_is_for_the_trunk_wherever_head_is(name, state, tmp_path, clock):
    context = trained(tmp_path / "mine", name, clock)
    home = context.directory
    (home / "tasks").mkdir()
    row = {"question": "When?", "answer": "1871"}
    (home / "tasks" / "demo.jsonl").write_text(f"{json.dumps(row)}\n")
    match state:
        case "a run":
            git(home, "switch", "-q", "run/demo-20261121-abcd")
        case "detached":
            git(home, "checkout", "-q", "--detach", "best/demo-20261121-abcd")
        case "a proposal":
            git(home, "switch", "-qc", "propose/demo")
    jobs = Jobs(context, ProposeRequest())
    assert (jobs.request.base, jobs.skills) == (name, (PATH,))
    before = git(home, "rev-parse", name)
    promote(context, "v3")
    assert git(home, "rev-parse", f"{name}^") == before
