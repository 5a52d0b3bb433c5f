"""Plans against trainings: what is planned bounds what the engine asks, role by role and stage by stage."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "engine"))

from toy import SEED, History, ToyBackend, ToyEnvironment, items, run_to_end, trainer

from skillgit.app.setup.estimate import most_analysts, most_merges, plan_training
from skillgit.app.setup.plan import Bound
from skillgit.app.setup.planner import AGAIN, PREFLIGHT, Asks, Planner
from skillgit.app.train import train
from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Charge, Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.ids import text_digest
from skillgit.domain.trajectory import Rollout, Trajectory
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.reflect import Cutter
from skillgit.plugin.backend import flatten, system, user
from skillgit.plugin.environment import CallBounds
from skillgit.strategies.compose import Compose
from skillgit.strategies.pareto import Pareto
from skillgit.strategies.racing import Racing
from skillgit.strategies.refine import Refine
from skillgit.strategies.skillopt import SkillOpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.setup.plan import Plan
    from skillgit.domain.trajectory import Item
    from skillgit.engine.run_loop import Trainer
    from skillgit.plugin.backend import Request
    from skillgit.plugin.environment import Judge, Target

STRATEGIES = {strategy.name: strategy for strategy in (SkillOpt, Racing, Pareto, Refine, Compose)}
STAGES = {
    ("target", "rollout"): ("rollout",),
    ("target", "slow"): ("slow update",),
    ("target", "selection"): (*("baseline", "selection", "salvage", "guidance", "meta reflect", "placebo", "repeats"),),
    ("target", "probe"): ("probe",),
    ("target", "screening"): ("screening",),
    ("target", "trial"): ("trial",),
    ("target", "test"): ("test",),
    ("optimizer", "draft"): ("draft",),
    ("optimizer", "merge"): ("merge",),
    ("optimizer", "rank"): ("rank",),
    ("optimizer", "budget"): ("budget",),
    ("optimizer", "rewrite"): ("rewrite",),
    ("optimizer", "appendix"): ("appendix",),
    ("optimizer", "meta_reflect"): ("meta reflect",),
    ("optimizer", "slow_update"): ("slow update",),
    ("optimizer", "meta_skill"): ("slow update",),
    # A probe is read by an analyst of its own.
    ("optimizer", "analyst"): ("analyst", "probe"),
    ("optimizer", "probe"): ("probe",),
}
"""Role and stage of a call to the stages of a plan that bound it."""


class JudgedToy(ToyEnvironment):
    """The toy with a judge, which is asked once for every answer, and once more if its reply is no verdict."""

    asks_judge = True
    counts: dict[Split, int]

    def items(self, split: Split) -> Sequence[Item]:
        return items(split.value, self.counts[split])

    def call_bounds(self, item: Item) -> CallBounds:
        del item
        return CallBounds(target=(1, 1), judge=(1, 1), repairs=1)

    async def rollout(self, item: Item, skill, target: Target) -> Trajectory:
        return replace(await super().rollout(item, skill, target), answer=f"{item.id}\n{skill.digest}")

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        reply = await judge.chat([system("# Judge"), user(f"{trajectory.answer} {trajectory.turns[-1].content}")])
        if reply.text == "mumble":
            reply = await judge.chat([system("# Judge"), user(f"again {trajectory.answer}")])
        solved = float(trajectory.turns[-1].content == "yes")
        return Scored(hard=solved, soft=solved), f"lacks {item.content['needs']}"


@dataclass
class Mumbling(ToyBackend):
    """A toy that replies with what cannot be used to a share of its questions, always to the same ones."""

    share: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)

    async def complete(self, request: Request):
        self.asked[request.model] += 1
        told = flatten(request.messages)
        if request.model != "target" and Random(text_digest(told)).random() < self.share:  # noqa: S311 - not secret
            return replace(await super().complete(replace(request, model="target", messages=QUESTION)), text="mumble")
        if request.model == "judge":
            return replace(await super().complete(replace(request, model="target", messages=QUESTION)), text="fine")
        return await super().complete(request)


QUESTION = (system("nothing"), user("t needs amber"))


def training(backend: ToyBackend, environment: ToyEnvironment, **sections) -> tuple[Trainer, Planner, History]:
    history = History()
    strategy = STRATEGIES[sections.get("train", {}).get("strategy", "skillopt")]()
    made = trainer(backend, history, environment=environment, strategy=strategy, **sections)
    roles = ("target", "optimizer", *(("judge",) if getattr(environment, "asks_judge", False) else ()))
    routes = {role: Route(backend=backend, backend_name="toy", model=role, price=None) for role in roles}

    async def instantly(_: float) -> None:
        return None

    calls = Calls(routes=routes, ledger=Ledger.in_memory(), caps=Caps(), sleep=instantly, random=Random(0))  # noqa: S311
    session = replace(made.session, calls=calls)
    values = SimpleNamespace(
        calls=SimpleNamespace(hedge=False, requests_per_minute=None, tokens_per_minute=None),
        train=session.settings.train,
    )
    setup = SimpleNamespace(routes=routes, strategy=strategy, asked_roles=(), config=SimpleNamespace(values=values))
    return replace(made, session=session), Planner(setup, session, {}), history


def planned(planner: Planner) -> Plan:
    plan_training(planner, SEED)
    return planner.plan("train", {}, caps=Caps())


def bound_of(plan: Plan, role: str, stages: Sequence[str]) -> int:
    wanted = {*stages, AGAIN}
    return sum(row.calls for row in plan.stages if row.role == role and row.stage in wanted)


def check(plan: Plan, history: History, backend: Mumbling) -> None:
    made: Counter[tuple[str, str]] = Counter()
    for transition in history:
        for part in getattr(transition.event, "cost", Cost()).parts:
            made[part.role, part.stage] += part.cost.calls
    for (role, stage), calls in made.items():
        stages = STAGES["target" if role == "judge" else role, stage]
        assert calls <= bound_of(plan, role, stages), (role, stage)
    for role, calls in backend.asked.items():
        assert calls <= sum(row.calls for row in plan.stages if row.role == role), role
    assert sum(backend.asked.values()) <= plan.total.calls
    baseline = {row.role: row for row in plan.stages if row.stage == "baseline"}
    first = {part.role: part.cost.calls for part in history[0].event.cost.parts if part.stage == "selection"}
    assert all(row.bound is Bound.EXACTLY for row in baseline.values())
    assert first["target"] == baseline["target"].calls


sizes = st.integers(1, 9)
runs = st.fixed_dictionaries(
    {
        "train": st.fixed_dictionaries(
            {
                "num_epochs": st.integers(1, 3),
                "batch_size": st.integers(1, 5),
                "accumulation": st.integers(1, 3),
                "placebo": st.integers(0, 2),
                "seed": st.integers(0, 9),
                "strategy": st.sampled_from(sorted(STRATEGIES)),
                "round_steps": st.integers(1, 4),
                "stop_at_ceiling": st.booleans(),
            }
        ),
        "gradient": st.fixed_dictionaries(
            {
                "minibatch_size": st.integers(1, 4),
                "merge_batch_size": st.integers(2, 4),
                "failure_only": st.booleans(),
                "use_deep_reflect": st.booleans(),
            }
        ),
        "optimizer": st.fixed_dictionaries(
            {
                "learning_rate": st.just(2),
                "min_learning_rate": st.just(1),
                "lr_control_mode": st.sampled_from(["fixed", "none"]),
                "aggregate": st.sampled_from(["hierarchical"]),
                "use_slow_update": st.booleans(),
                "use_meta_skill": st.booleans(),
                "slow_update_samples": st.integers(1, 9),
                "slow_update_gate_with_selection": st.booleans(),
                "longitudinal_pair_policy": st.sampled_from(["mixed", "changed", "unchanged"]),
                "use_meta_reflect": st.booleans(),
                "salvage": st.booleans(),
            }
        ),
        "gate": st.fixed_dictionaries(
            {"repeats": st.integers(0, 2), "early_stop": st.booleans(), "screening": st.sampled_from([0, 0, 2])}
        ),
        "evaluation": st.fixed_dictionaries({"use_gate": st.booleans(), "eval_test": st.booleans()}),
    }
)


@given(
    sections=runs, counts=st.tuples(sizes, sizes, sizes), judged=st.booleans(), share=st.sampled_from([0.0, 0.3, 1.0])
)
def test_no_training_asks_more_than_was_planned(sections, counts, judged, share):
    backend = Mumbling(share=share)
    environment = JudgedToy() if judged else Counted()
    environment.counts = dict(zip(Split, counts, strict=True))
    made, planner, history = training(backend, environment, **sections)
    plan = planned(planner)
    assert not backend.requests, "a plan asks nobody"
    asyncio.run(run_to_end(made, history))
    check(plan, history, backend)


class Counted(JudgedToy):
    """The toy without a judge, with as many items as are wanted."""

    asks_judge = False

    def call_bounds(self, item: Item) -> CallBounds:
        del item
        return CallBounds()

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        solved = float(trajectory.turns[-1].content == "yes")
        return Scored(hard=solved, soft=solved), f"lacks {item.content['needs']}"


class Eager(Mumbling):
    """A toy that always has something new to propose; its target knows nothing, or learns all from the first hint."""

    def __init__(self, *, learns: bool = False) -> None:
        hint = {"op": "append", "support": 2}
        replies = {
            "Analyse failures": lambda: {"title": "t", "edits": [{**hint, "content": f"- hint {self.asked}"}]},
            "Reflect on an epoch": lambda: {"title": "m", "edits": [{**hint, "content": f"- insight {self.asked}"}]},
            "Slow update": lambda: {"title": "s", "guidance": f"- advice {self.asked}"},
        }
        said = {kind: lambda _, reply=reply: json.dumps(reply()) for kind, reply in replies.items()}
        super().__init__(script=said)
        self.learns = learns

    def _target(self, messages) -> str:
        return "yes" if self.learns and "hint" in messages[0].text else "no"


def eager(backend: Eager, counts: tuple[int, int, int], **sections) -> tuple[Plan, Counter[tuple[str, str]]]:
    """Return the plan of a training, and the calls that were made of it by role and stage."""
    environment = Counted()
    environment.counts = dict(zip(Split, counts, strict=True))
    made, planner, history = training(backend, environment, **sections)
    plan = planned(planner)
    asyncio.run(run_to_end(made, history))
    check(plan, history, backend)
    calls: Counter[tuple[str, str]] = Counter()
    for transition in history:
        for part in getattr(transition.event, "cost", Cost()).parts:
            calls[part.role, part.stage] += part.cost.calls
    return plan, calls


def test_a_training_that_always_goes_on_makes_all_planned_calls():
    """Bounds are met, so that a stage that is left out of the plan is missed."""
    plan, calls = eager(
        Eager(),
        (8, 5, 3),
        train={"num_epochs": 3, "batch_size": 4, "placebo": 1, "stop_at_ceiling": False},
        gradient={"failure_only": True, "minibatch_size": 3, "use_deep_reflect": True, "deep_reflect_successes": 0},
        optimizer={"use_meta_reflect": True, "slow_update_samples": 4},
        gate={"early_stop": False},
        evaluation={"use_gate": False},
    )
    for role, stage in (("target", "selection"), ("target", "probe"), ("optimizer", "analyst")):
        wanted = sum(row.calls for row in plan.stages if row.role == role and row.stage in STAGES[role, stage])
        wanted -= 6 if stage == "analyst" else 0  # probes are asked for, and then read
        assert calls[role, stage] == wanted, (role, stage)
    assert calls["target", "rollout"] >= 24 - 4, "of a step after a slow update, some are known"
    for stage in ("meta_reflect", "probe"):
        assert calls["optimizer", stage] >= 3
    [slow] = [row.calls for row in plan.stages if (row.role, row.stage) == ("optimizer", "slow update")]
    assert calls["optimizer", "slow_update"] + calls["optimizer", "meta_skill"] == slow - 1, (
        "the last epoch keeps no memory"
    )


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_candidate_that_changes_every_item_takes_all_planned_repeats(repeats):
    plan, calls = eager(
        Eager(learns=True),
        (4, 5, 1),
        train={"num_epochs": 1, "batch_size": 4, "stop_at_ceiling": False},
        gate={"repeats": repeats},
    )
    wanted = [row.calls for row in plan.stages if row.role == "target" and row.stage in STAGES["target", "selection"]]
    assert calls["target", "selection"] == sum(wanted) == 5 * (2 + 2 * repeats)


@pytest.mark.parametrize("use_gate", [True, False])
@pytest.mark.parametrize("guidance", [True, False])
def test_a_plan_repeats_every_measurement_that_a_gate_decides_on(use_gate, guidance):
    environment = Counted()
    environment.counts = dict.fromkeys(Split, 4)
    _, planner, _ = training(
        ToyBackend(),
        environment,
        train={"num_epochs": 3, "batch_size": 2, "placebo": 2},
        optimizer={"use_meta_reflect": True, "salvage": True, "slow_update_gate_with_selection": guidance},
        gate={"repeats": 2},
        evaluation={"use_gate": use_gate},
    )
    rows = {(row.role, row.stage): row.calls for row in planned(planner).stages}
    gates = ["meta reflect", *(["guidance"] if guidance else ())]
    gates += ["selection", "salvage", "placebo"] if use_gate else []
    assert rows["target", "repeats"] == 2 * 2 * sum(rows["target", stage] for stage in gates)


def test_a_plan_has_rows_for_the_judge():
    environment = JudgedToy()
    environment.counts = dict.fromkeys(Split, 8)
    _, planner, _ = training(ToyBackend(), environment)
    plan = planned(planner)
    rows = {(row.role, row.stage): row for row in plan.stages}
    for (role, stage), row in rows.items():
        if role == "target":
            assert rows["judge", stage].calls == row.calls
    assert rows["judge", AGAIN].calls == sum(row.calls for (role, _), row in rows.items() if role == "target")
    assert rows["judge", "baseline"].bound is Bound.EXACTLY
    assert plan.total.unpriced == ("toy/judge", "toy/optimizer", "toy/target")


def test_an_environment_that_does_not_say_what_a_rollout_takes_has_no_upper_bound():
    _, planner, _ = training(ToyBackend(), ToyEnvironment())
    plan = planned(planner)
    rows = {(row.role, row.stage): row.bound for row in plan.stages}
    assert (rows["target", "baseline"], rows["target", "rollout"]) == (Bound.AT_LEAST, Bound.ABOUT)
    assert plan.total.bound is Bound.ABOUT


def outcome(item: Item, *, solved: bool) -> Rollout:
    return Rollout(item=item, trajectory=None, outcome=Scored(float(solved), float(solved)))


@given(
    fates=st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=3),
    size=st.integers(1, 5),
    failure_only=st.booleans(),
)
def test_batches_are_cut_into_no_more_minibatches_than_planned(fates, size, failure_only):
    made = MethodSettings.model_validate({"gradient": {"minibatch_size": size, "failure_only": failure_only}})
    cut = 0
    for number, batch in enumerate(fates):
        listed = items(f"b{number}-", len(batch))
        cutter = Cutter(listed, number, made.gradient)
        cut += sum(len(cutter.take(outcome(item, solved=solved))) for item, solved in zip(listed, batch, strict=True))
    assert cut <= most_analysts([len(batch) for batch in fates], made)


@given(failures=st.integers(0, 20), successes=st.integers(0, 20), size=st.integers(2, 9))
def test_drafts_take_no_more_merges_than_planned(failures, successes, size):
    def merges(drafts: int) -> int:
        made = 0
        while drafts > 1:
            groups = [min(size, drafts - start) for start in range(0, drafts, size)]
            made += sum(group > 1 for group in groups)
            drafts = len(groups)
        return made

    final = bool(failures and successes)
    assert merges(failures) + merges(successes) + final <= most_merges(failures + successes, size)


@pytest.mark.parametrize(
    ("known", "seconds", "tiny"),
    [({}, 2.0, True), ({("target", "toy/target"): 0.5, ("optimizer", "toy/optimizer"): 0.5}, 0.5, False)],
)
def test_a_model_without_a_pace_has_that_of_its_first_answer(known, seconds, tiny, monkeypatch):
    environment = Counted()
    environment.counts = dict.fromkeys(Split, 8)
    made, planner, _ = training(ToyBackend(), environment)
    monkeypatch.setattr(train.spending, "paces", lambda _: known)
    for role in ("target", "optimizer"):
        cost = Cost(calls=1, seconds=2.0)
        made.session.calls.meter.add(Charge(key=role, role=role, stage=PREFLIGHT, cost=cost))
    workspace = SimpleNamespace(index=None)
    plan = train.plan_of_started(workspace, planner.setup, made.session, SEED)
    (baseline,) = (row for row in plan.stages if row.stage == "baseline")
    assert baseline.seconds == seconds * 8 / made.session.workers
    assert plan.total.untimed == ()
    assert bool(plan.notes) is tiny


@given(
    calls=st.integers(1, 500),
    width=st.integers(1, 16),
    in_a_row=st.integers(0, 50),
    limits=st.tuples(st.none() | st.integers(1, 100), st.none() | st.integers(1, 1000)),
)
def test_a_stage_takes_as_long_as_its_calls_in_a_row_and_under_the_limits_of_a_minute(calls, width, in_a_row, limits):
    _, made, _ = training(ToyBackend(), ToyEnvironment())
    planner = Planner(made.setup, made.session, {("optimizer", "toy/optimizer"): 3.0})
    values = made.setup.config.values.calls
    values.requests_per_minute, values.tokens_per_minute = limits
    planner.ask(Asks(stage="s", calls=calls, prompt=4, reply=1, in_a_row=min(in_a_row, calls), width=width))
    first, _ = planner.plan("c", {}, caps=Caps()).stages
    requests, tokens = limits
    least = (
        *(3.0 * calls / width, 3.0 * min(in_a_row, calls)),
        *(60 * calls / requests if requests else 0, 60 * calls * 5 / tokens if tokens else 0),
    )
    assert first.seconds == pytest.approx(max(least))
