"""What an analyst sees of the other outcome, and what is merged without a question."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from random import Random

import pytest
from toy import ONE_STEP, History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.domain.evaluation import Scored
from skillgit.domain.trajectory import Item, Rollout, Trajectory, Turn
from skillgit.engine.method_settings import GradientSettings
from skillgit.engine.proposals import Draft, disjoint
from skillgit.engine.reflect import Cutter, joined
from skillgit.engine.replies import FailurePattern


def rollout(number: int, task: str, *, solved: bool, task_type: str = "default") -> Rollout:
    item = Item(id=f"i{number}", content={"task": task}, task_type=task_type)
    trajectory = Trajectory(item_id=item.id, turns=(Turn(role="user", content=task),), answer="")
    return Rollout(item=item, trajectory=trajectory, outcome=Scored(float(solved), float(solved)))


def cut(rollouts, *, order=None, **settings):
    given = GradientSettings.model_validate({"failure_only": False} | settings)
    cutter = Cutter([rollout.item for rollout in rollouts], 0, given)
    return [batch for index in order or range(len(rollouts)) for batch in cutter.take(rollouts[index])]


TASKS = [
    rollout(0, "invoice of 900 euros, plan Basic", solved=True),
    rollout(1, "the site is down for everybody", solved=True),
    rollout(2, "invoice of 1,200 euros, plan Enterprise", solved=False),
    rollout(3, "wish for a dark theme", solved=True),
    rollout(4, "please delete my data", solved=True, task_type="law"),
]


def test_failures_are_seen_with_the_solved_tasks_that_are_most_like_them():
    (failures, successes) = cut(TASKS, contrast=2)
    assert failures.source is EditSource.FAILURE
    assert failures.contrast[0].item.id == "i0"
    assert len(failures.contrast) == 2
    assert "i4" not in {other.item.id for other in failures.contrast}, "tasks of another type come last"
    assert [other.item.id for other in successes.contrast] == ["i2"]


def test_contrast_does_not_depend_on_the_order_in_which_rollouts_come():
    random = Random(3)  # noqa: S311 - orders
    rollouts = [rollout(n, f"task {n % 5} about {n % 3}", solved=n % 3 == 0) for n in range(30)]
    expected = cut(rollouts, minibatch_size=4, contrast=2)
    for _ in range(20):
        order = random.sample(range(30), 30)
        batches = cut(rollouts, order=order, minibatch_size=4, contrast=2)
        assert sorted(batches, key=lambda b: b.place) == sorted(expected, key=lambda b: b.place)


def again(trial: Rollout, *, solved: bool) -> Rollout:
    return replace(trial, outcome=Scored(float(solved), float(solved)))


def test_another_outcome_of_the_same_item_comes_before_other_items_and_one_that_ended_alike_is_not_shown():
    settings = GradientSettings.model_validate({"contrast": 2, "failure_only": False})
    cutter = Cutter([trial.item for trial in TASKS], 0, settings)
    others = {
        "i2": [again(TASKS[2], solved=False), again(TASKS[2], solved=True)],
        "i0": [again(TASKS[0], solved=False)],
    }
    batches = [batch for trial in TASKS for batch in cutter.take(trial, others.get(trial.item.id, ()))]
    failures, successes = batches
    assert (failures.contrast[0].item.id, failures.contrast[0].outcome.hard) == ("i2", 1.0)
    assert len(failures.contrast) == 2
    assert [(twin.item.id, twin.outcome.hard) for twin in successes.contrast] == [("i0", 0.0), ("i2", 0.0)]


class Moody(ToyBackend):
    """A target that fails at every item the first time, and solves it from then on."""

    def _target(self, messages):
        question = messages[1].text
        return "yes" if sum(request.messages[1].text == question for request in self.requests) > 1 else "no"


def test_samples_of_an_item_that_end_otherwise_are_shown_as_a_pair_and_kept():
    backend, history = Moody(), History()
    train = {"num_epochs": 1, "batch_size": 4, "seed": 1}
    made = trainer(backend, history, gradient={"contrast": 0, "samples": 2, "minibatch_size": 4}, train=train)
    asyncio.run(run_to_end(made, history))
    [first, *_] = [r.messages[1].text for r in backend.requests if r.messages[0].text.startswith("# Analyse failures")]
    assert first.count('of="the same task') == first.count("<trajectory id=") == 4
    evidence = history[1].evidence
    rows = [json.loads(evidence[name]) for name in ("rollout.json", "sample-2.json")]
    assert len({tuple(row["id"] for row in side) for side in rows}) == 1
    assert [{row["hard"] for row in side} for side in rows] == [{0.0}, {1.0}]


def test_contrast_is_a_section_of_its_own_and_supports_nothing():
    backend, history = ToyBackend(), History()
    made = trainer(backend, history, gradient={"contrast": 1}, train={"num_epochs": 2, "batch_size": 8, "seed": 1})
    asyncio.run(run_to_end(made, history))
    prompts = [request.messages[1].text for request in backend.requests if "# Analyse" in request.messages[0].text]
    shown = [prompt for prompt in prompts if "<contrast count=" in prompt]
    assert shown, "a later step has both"
    assert all(prompt.count("<contrasting ") == 1 for prompt in shown)
    assert all(prompt.index("</trajectories>") < prompt.index("<contrast ") for prompt in shown)
    system = next(request.messages[0].text for request in backend.requests if "# Analyse" in request.messages[0].text)
    assert "`<contrast>`" in system


def edit(content: str, op: Op = Op.APPEND, anchor: str = "", file: str = "") -> Edit:
    return Edit(op=op, content=content, anchor=anchor, file=file)


def drafts(*edits: Edit) -> list[Draft]:
    return [Draft(proposals=(one,)) for one in edits]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (edit("- Give numbers without their unit."), edit("- Leave the unit out where a number is asked for.")),
        (edit("- Give the year."), edit("- Leave the year out.")),
        (edit("x", Op.REPLACE, "Answer briefly."), edit("y", Op.REPLACE, "- Answer briefly.")),
        (edit("x", Op.INSERT_AFTER, "Answer briefly."), edit("", Op.DELETE, "Answer  briefly.")),
    ],
)
def test_what_may_ask_for_the_same_or_the_contrary_is_merged_by_a_model(first, second):
    assert not disjoint(drafts(first, second))
    assert disjoint([Draft(proposals=(first, second))]), "one analyst has read both"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            edit("- Requests to delete personal data go to LEG with priority 1, however politely they are worded."),
            edit("- When the plan is Enterprise, raise what any other plan would get by one level."),
        ),
        (edit("- Dates as day, month, year."), edit("x", Op.REPLACE, "Answer briefly.")),
        (edit("x", Op.REPLACE, "Answer briefly.", "a.md"), edit("y", Op.REPLACE, "Answer briefly.", "b.md")),
    ],
)
def test_edits_that_have_nothing_in_common_are_put_in_a_row(first, second):
    assert disjoint(drafts(first, second))


def test_disjoint_edits_cost_no_merge_call():
    words = iter(["amber one", "birch two"])
    analysts = {"Analyse failures": lambda _: json.dumps({"edits": [{"op": "append", "content": f"- {next(words)}"}]})}
    backend, history = ToyBackend(script=analysts), History()
    one_step = ONE_STEP
    made = trainer(backend, history, train=one_step, gradient={"minibatch_size": 4})
    asyncio.run(run_to_end(made, history))
    titles = [request.messages[0].text.splitlines()[0] for request in backend.requests if request.model == "optimizer"]
    assert titles.count("# Analyse failures") == 2
    assert "# Merge patches" not in titles
    assert history[1].event.patch.applied == 2


def test_a_rival_cause_is_told_with_the_finding():
    findings = [
        FailurePattern(pattern="keeps the unit", count=2, rival="answers in the words of the text"),
        FailurePattern(pattern="late"),
    ]
    assert [finding.pattern for finding in joined(findings, 4)] == [
        "keeps the unit; or else: answers in the words of the text",
        "late",
    ]
