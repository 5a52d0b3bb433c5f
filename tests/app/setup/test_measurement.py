"""Laws of everything that measures: its plan is kept, a cap ends it with its cost, and the same command goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from soaking import sampled
from trained_runs import RUN, Quiet, small_run, user

from skillgit.app.interventions.ablate import ablate
from skillgit.app.measure.eval import evaluate
from skillgit.app.measure.pull_request_gate import gate
from skillgit.app.measure.requests import AblateRequest, EvalRequest, GateRequest
from skillgit.app.measure.retest import retest
from skillgit.app.measure.verify import verify
from skillgit.app.setup.plan import Plan
from skillgit.errors import BudgetError

if TYPE_CHECKING:
    from pathlib import Path

WORK = {
    "eval": (evaluate, EvalRequest, {"revisions": ("v0", "best"), "overrides": ("train.seed=7",)}),
    "eval of a split that no run has measured": (evaluate, EvalRequest, {"revisions": ("best",), "split": "train"}),
    "eval --fresh": (retest, EvalRequest, {"revisions": ("v0", "best")}),
    "eval --fresh --sample": (verify, EvalRequest, {"revisions": ("best",), "sample": 7}),
    "gate": (
        gate,
        GateRequest,
        {"base": f"{RUN}/v0", "head": f"{RUN}/best", "overrides": ("model.target=agent",)},
    ),
    "ablate": (ablate, AblateRequest, {"revision": "best", "rule": 1}),
}


class Eyes(Quiet):
    """A watcher that remembers what was spent without a result."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def spent(self, cost) -> None:
        self.calls.append(cost.calls)


@pytest.fixture
def trained(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


@pytest.mark.parametrize("name", sampled(WORK, 3))
def test_a_cap_ends_it_with_its_cost_and_the_same_command_asks_the_rest(name, trained):
    use, request, values = WORK[name]
    plan = ask(use, user(trained), request(**values, dry_run=True), Quiet())
    assert isinstance(plan, Plan)
    whole = plan.total.calls
    half, eyes = whole // 2, Eyes()
    with pytest.raises(BudgetError, match=f"cap of {half} calls") as caught:
        ask(use, user(trained), request(**values, max_calls=half), eyes)
    assert caught.value.hint.startswith("type the same command again")
    assert eyes.calls == [half]
    eyes = Eyes()
    result = ask(use, user(trained), request(**values), eyes)
    assert (result.cost.calls, eyes.calls) == (whole - half, [])


@pytest.mark.parametrize("name", sampled(WORK, 3))
def test_what_it_rests_on_and_its_plan_are_said_before_the_first_call(name, trained):
    use, request, values = WORK[name]
    eyes = Eyes()
    with pytest.raises(BudgetError):
        ask(use, user(trained), request(**values, max_calls=1), eyes)
    sentences = [text for text in eyes.remarks if text.startswith("by ") or "about" in text]
    assert {text.startswith("by ") for text in sentences} == {True, False}, eyes.remarks
    plan = ask(use, user(trained), request(**values, dry_run=True), Quiet())
    assert any(fact.startswith("the configuration of run") for fact in plan.facts.values())
