from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING

import pytest
from asking import ask
from hypothesis import given
from hypothesis import strategies as st
from once import copy_folder
from program import git, refs
from sample_run import RUN as SAMPLE
from sample_run import clock_from, evaluation, rows, transitions
from trained_runs import RUN, Quiet, small_run, user

from skillgit.app.history.show import show
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.measure.verify import ALPHA, Claim, claim_of, judge, verify
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.statistics import binomial_test
from skillgit.errors import NotFoundError, UsageError
from skillgit.store.event_writer import RunWriter
from skillgit_backends import offline

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def trained(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


def verified(repository: Path, revision: str, *, sample: int = 10, watcher: Quiet | None = None, **request):
    asked, watcher = EvalRequest(revisions=(revision,), sample=sample, **request), watcher or Quiet()
    return ask(verify, user(repository), asked, watcher), watcher.remarks


def test_an_honest_score_is_consistent(trained):
    found, plans = verified(trained, "best")
    assert len(plans) == 2
    assert plans[1].startswith("10 calls, about ")
    assert (found.plan.items, found.plan.of, len(found.items)) == (10, 20, 10)
    assert (found.verdict.word, found.verdict.n, found.verdict.delta, found.verdict.p) == ("consistent", 10, 0.0, 1.0)
    assert (found.claim.score, found.claim.n, found.claim.paired) == (found.row.score, 20, True)
    assert found.cost.calls == 10, "the run's own outcomes in the ledger are no new measurement"
    assert found.noted
    again, _ = verified(trained, "best")
    assert (again.items, again.cost.calls, again.noted) == (found.items, 0, False)
    other, _ = verified(trained, "best", seed=1)
    assert other.items != found.items
    every, _ = verified(trained, "v0", sample=999, seed=2)
    assert (every.plan.items, every.verdict.measured) == (20, every.claim.score)


def test_a_target_that_has_grown_worse_is_told(trained, monkeypatch):
    monkeypatch.setitem(offline._MODELS, "reader", lambda _: "I do not know.")
    found, _ = verified(trained, "best", sample=20)
    verdict = found.verdict
    assert (verdict.word, verdict.measured, verdict.higher) == ("lower", 0.0, ())
    assert len(verdict.lower) == round(found.claim.score * 20)
    assert verdict.p <= ALPHA
    assert verdict.interval[1] < 0


def test_other_items_or_another_target_are_not_comparable_and_cost_nothing(trained):
    before, watcher = refs(trained), Quiet()
    found, plans = verified(trained, "best", overrides=("evaluation.sel_env_num=15",), watcher=watcher)
    assert found.verdict.differs == (f"the selection items are not those of run {RUN}: 5 missing",)
    target, _ = verified(trained, "best", overrides=("model.target=agent",), watcher=watcher)
    assert target.verdict.differs == (f"the target is offline/agent here, and was offline/reader in run {RUN}",)
    assert {found.verdict.word, target.verdict.word} == {"not comparable"}
    assert (plans, watcher.results, found.cost, refs(trained)) == ([], [], None, before)


def test_looks_at_the_test_split_are_counted(trained):
    before = ask(show, user(trained), "v0").test_evaluations
    found, _ = verified(trained, "v0", split="test", sample=4)
    assert (found.verdict.word, found.test_reads) == ("consistent", before + 1)
    assert ask(show, user(trained), "v0").test_evaluations == before + 1
    note = json.loads(git("notes", "--ref=skillgit/evals", "show", f"{RUN}/v0", cwd=trained).out)
    assert (note["n"], note["sampled_of"], len(note["outcomes"])) == (4, 8, 4)


def test_nothing_is_claimed_of_what_was_never_measured(trained):
    with pytest.raises(NotFoundError, match="no score of v1 on the test split is recorded") as caught:
        verified(trained, "v1", split="test")
    assert caught.value.hint == "skillgit eval v1 --split test"


def test_a_clone_verifies_with_a_configuration_or_with_the_evidence(trained, tmp_path):
    git("clone", "-q", trained.as_uri(), tmp_path / "clone", cwd=tmp_path)
    clone = tmp_path / "clone"
    with pytest.raises(UsageError, match="the configuration of run small is not here") as caught:
        verified(clone, f"{RUN}/best")
    assert "--config" in caught.value.hint
    alike = ("evaluation.sel_env_num=20", "evaluation.test_env_num=8")
    found, _ = verified(clone, f"{RUN}/best", config="demo", overrides=alike)
    assert (found.claim.paired, found.verdict.recorded) == (False, None)
    assert found.verdict.word in {"consistent", "higher", "lower"}
    low, high = found.verdict.interval
    assert low <= found.verdict.measured <= high
    again, _ = verified(clone, f"{RUN}/best", config="demo", overrides=alike)
    assert (again.claim.paired, again.claim.remark) == (False, ""), "a note of a sample is not what the run recorded"
    git("fetch", "-q", "origin", "refs/skillgit/*:refs/skillgit/*", cwd=clone)
    paired, _ = verified(clone, f"{RUN}/best")
    assert (paired.claim.paired, paired.verdict.word, paired.verdict.delta) == (True, "consistent", 0.0)


def test_outcomes_that_do_not_add_up_to_the_claim_are_not_believed(context, repo):
    writer = RunWriter(repo, SAMPLE, clock_from(count()))
    for sample in transitions()[:2]:
        doctored = {"selection.json": rows(evaluation("1 2"))} if sample.event.title.startswith("answer") else {}
        writer.append(sample.event, sample.skill, sample.evidence | doctored)
    with Workspace(context) as workspace:
        claim, outcomes = claim_of(workspace, event_in(workspace, "v1"), Split.SELECTION)
    assert (claim.score, claim.paired, outcomes) == (0.6, False, None)
    assert claim.remark == "the recorded outcomes add up to 0.2000, not to the claimed 0.6000"


def measured(scores: list[float]) -> Evaluation:
    outcomes = {f"q{number}": Scored(score, score) for number, score in enumerate(scores)}
    return Evaluation(split=Split.SELECTION, item_set="", outcomes=outcomes, seed=0)


def claim(score: float, n: int = 40) -> Claim:
    return Claim(score=score, n=n, target="a/b", paired=False)


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ([1.0] * 8, [1.0] * 8, "consistent"),
        ([1.0] * 8, [0.0] * 8, "lower"),
        ([0.0] * 8, [1.0] * 8, "higher"),
        ([1.0, 0.0] * 4, [0.0, 1.0] * 4, "consistent"),
        ([1.0] * 8, [0.0] * 3 + [1.0] * 5, "consistent"),
    ],
)
def test_pairs_decide_where_they_are_known(before, after, word):
    verdict = judge(claim(sum(before) / 8), measured(before), measured(after), GateRule())
    assert (verdict.word, verdict.n) == (word, 8)


@pytest.mark.parametrize(
    ("claimed", "after", "word"),
    [
        (0.9, [1.0] * 9 + [0.0], "consistent"),
        (0.9, [1.0] * 2 + [0.0] * 8, "lower"),
        (0.1, [1.0] * 8 + [0.0] * 2, "higher"),
    ],
)
def test_without_pairs_the_mean_decides(claimed, after, word):
    verdict = judge(claim(claimed), None, measured(after), GateRule())
    assert (verdict.word, verdict.recorded) == (word, None)
    assert verdict.p == pytest.approx(binomial_test(int(sum(after)), 10, claimed))


def test_soft_scores_without_pairs_are_judged_by_their_interval():
    rule = GateRule(metric=Metric.SOFT)
    scores = [0.5, 0.6, 0.55, 0.4, 0.5, 0.45]
    assert judge(claim(0.5), None, measured(scores), rule).word == "consistent"
    low = judge(claim(0.9), None, measured(scores), rule)
    assert (low.word, low.p) == ("lower", None)


def test_where_nothing_could_be_evaluated_nothing_is_said():
    failed = Evaluation(split=Split.TEST, item_set="", outcomes={"q1": FailedToEvaluate("down")}, seed=0)
    verdict = judge(claim(0.5), None, failed, GateRule())
    assert (verdict.word, verdict.failed) == ("not comparable", 1)


@given(st.integers(0, 30), st.integers(0, 30), st.floats(0.0, 1.0))
def test_the_binomial_test_is_a_chance_and_knows_no_side(successes, failures, share):
    n = successes + failures
    p = binomial_test(successes, n, share)
    assert 0.0 <= p <= 1.0
    assert p == pytest.approx(binomial_test(failures, n, 1.0 - share), abs=1e-9)


def test_the_binomial_test_of_ten_heads():
    assert binomial_test(10, 10, 0.5) == pytest.approx(2 / 1024)
    assert binomial_test(5, 10, 0.5) == 1.0
