from __future__ import annotations

import json

import pytest
from asking import ask
from program import git, refs, skillgit

from skillgit.app.history.log import log
from skillgit.app.history.requests import LogRequest
from skillgit.app.interventions.merge import merge
from skillgit.app.interventions.requests import MergeRequest
from skillgit.app.setup.plan import Bound
from skillgit.errors import SkillgitError, UsageError


def join(user, repository, into, other, eyes, **more):
    return ask(merge, user(repository), MergeRequest(into=into, source=other, **more), eyes)


def test_a_plan_names_the_conflicts_and_the_price_and_does_nothing(user, repository, eyes):
    before = refs(repository)
    plan = join(user, repository, "two", "one", eyes, dry_run=True)
    assert "one of ours, theirs" in plan.facts["conflict 1"]
    choices = plan.facts["conflict 1"].splitlines()[0].count(",")
    assert plan.rollouts >= 20 * (1 + choices)
    assert (plan.known, plan.total.calls, plan.total.bound) == (20, plan.rollouts - 20, Bound.AT_MOST)
    assert (eyes.looks, eyes.remarks) == ([], [])
    assert refs(repository) == before


def test_conflicts_are_settled_by_scores(user, repository, eyes, document):
    plan = join(user, repository, "two", "one", eyes, dry_run=True)
    merged = join(user, repository, "two", "one", eyes)
    assert merged.decided.accepted
    assert merged.decided.cost.calls <= plan.total.calls
    assert eyes.remarks[1] == plan.sentence
    for one in merged.stretches:
        scores = {tried.choice: tried.score for tried in one.tried}
        assert scores[one.chosen] == max(scores.values())
        assert one.chosen == next(name for name, score in scores.items() if score == scores[one.chosen])
    last = merged.stretches[-1]
    assert [tried.score for tried in last.tried if tried.choice == last.chosen] == [merged.decided.verdict.score]
    assert document(repository, "run/two").count("<!-- skillgit:slow -->") == 1


def test_the_commit_of_a_merge_has_both_lines_as_parents(repository, trailers, evidence, sound):
    skillgit("merge", "two", "one", "-q", cwd=repository)
    parents = git("log", "-1", "--format=%P", "run/two", cwd=repository).out.split()
    tips = [git("rev-parse", name, cwd=repository).out.strip() for name in ("run/two^", "best/one")]
    assert parents == tips
    assert trailers(repository, "run/two")["Skillgit-Origin"].startswith("merge number=1 of=one/v")
    chosen = [row["chosen"] for row in evidence(repository, "run/two", "merge.json")]
    assert set(chosen) <= {"ours", "theirs", "both", "neither"}
    sound(repository)


def test_the_graph_of_the_log_shows_what_a_merge_took_in(user, repository, eyes):
    join(user, repository, "two", "one", eyes)
    made, taken = (git("rev-parse", name, cwd=repository).out.strip() for name in ("run/two", "best/one"))
    assert ask(log, user(repository), LogRequest(all_runs=True, graph=True)).parents == {made: (taken,)}


def test_merging_again_brings_nothing(user, repository, eyes):
    join(user, repository, "two", "one", eyes)
    before = refs(repository)
    with pytest.raises(SkillgitError, match=r"one/v\d brings nothing to two/v\d"):
        join(user, repository, "two", "one", eyes)
    assert refs(repository) == before


def test_a_run_is_not_merged_into_itself(user, repository, eyes):
    with pytest.raises(UsageError, match="is a version of run one"):
        join(user, repository, "one", "v1", eyes)


def test_runs_without_a_common_commit_are_merged_against_their_seed(user, repository, eyes, tmp_path):
    far = tmp_path / "far"
    skillgit("init", far, "--env", "searchqa", cwd=tmp_path, env={"SKILLGIT_CLOCK": "2026-11-20T12:00:00Z"})
    overrides = ("train.num_epochs=1", "train.batch_size=30", "evaluation.sel_env_num=10", "evaluation.test_env_num=4")
    options = [word for override in overrides for word in ("-o", override)]
    skillgit("train", "demo", "--run", "three", "-q", *options, "-o", "train.seed=3", cwd=far)
    git(
        "fetch",
        "-q",
        far,
        "run/three:run/three",
        "refs/skillgit/evidence/three:refs/skillgit/evidence/three",
        cwd=repository,
    )
    plan = join(user, repository, "one", "three/v0", eyes, dry_run=True)
    assert plan.facts["against"] == "the seed that both runs began with"


def test_the_command_prints_a_plan_and_a_result(repository):
    plan = skillgit("merge", "two", "one", "-n", cwd=repository)
    assert "conflict 1" in plan.out
    assert "at most" in plan.out
    done = skillgit("merge", "two", "one", "--json", "-q", cwd=repository)
    told = json.loads(done.out)
    assert told["schema"] == "skillgit.merge/2"
    assert told["decided"]["accepted"] is True
    assert "Traceback" not in skillgit("merge", "two", "nothing", cwd=repository, code=3).err
