"""What the floor has to wait for, on a small training of which everything is known."""

from __future__ import annotations

import pytest
from bench.workload.order import Course, Plan, plan_of, user_turn
from bench.workload.reference_schedule import phases
from bench.workload.trainings import Call, Recording
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Evaluation, Scored, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.engine.measure import WAVE, EarlyStop, order

PASS, FAIL = Scored(1.0, 1.0), Scored(0.0, 0.0)
ITEMS = {
    split: [{"id": f"{split}-{n}", "question": f"{split} {n}?", "context": "", "answers": ["yes"]} for n in range(size)]
    for split, size in (("train", 4), ("val", 3), ("test", 2))
}
SEED, BETTER = "the seed", "a better skill"


def asked(scope, stage, skill, split, *, solved):
    return [
        Call(
            scope=scope,
            role="target",
            stage=stage,
            document={
                "model": "reader",
                "messages": [{"content": skill}, {"content": user_turn(item)}],
            },
            text=f"<answer>{'yes' if number in solved else 'no'}</answer>",
        )
        for number, item in enumerate(ITEMS[split])
    ]


def optimizer(stage, text, scope="step-1"):
    document = {"model": "analyst", "messages": [{"content": stage}, {"content": text}]}
    return Call(scope=scope, role="optimizer", stage=stage, document=document, text="{}")


def reads(*numbers):
    return optimizer("analyst", "\n".join(f'<trajectory id="train-{number}" hard="0">' for number in numbers))


def merge(level):
    return optimizer("merge", f'<patches source="failure" level="{level}">')


CALLS = (
    *asked("start", "selection", SEED, "val", solved={0}),
    *asked("step-1", "rollout", SEED, "train", solved={3}),
    reads(0, 2),
    reads(1),
    merge(1),
    merge(0),
    optimizer("rank", ""),
    *asked("step-1", "selection", BETTER, "val", solved={0, 1}),
    *asked("step-2", "rollout", BETTER, "train", solved={0, 1}),
    *asked("finish", "test", BETTER, "test", solved={0, 1}),
)
RECORDING = Recording(calls=CALLS, accepted=frozenset({"step-1"}), measured=frozenset({"step-1"}), items=ITEMS)


def before(plan: Plan) -> list[set[int]]:
    """Return for each call the numbers of the calls that must have ended."""
    numbers = [n for n, body in enumerate(plan.bodies) if body is not None]
    closed: list[set[int]] = []
    for needs in plan.needs:
        closed.append(set().union(*({need} | closed[need] for need in needs)))
    return [{numbers.index(node) for node in closed[number] if node in numbers} for number in numbers]


def test_each_call_waits_for_what_decides_it_and_for_nothing_else():
    plan = plan_of(RECORDING)
    assert plan.calls == len(CALLS)
    waits = before(plan)
    rollouts = {3, 4, 5, 6}
    assert waits[0:3] == [set()] * 3, "the baseline"
    assert waits[3:7] == [set()] * 4, "the first step needs the seed only"
    assert waits[7] == {3, 4, 5}, "the analyst of items 0 and 2 knows that item 1 is not in its minibatch"
    assert waits[8] == {3, 4}
    assert waits[9] == {3, 4, 5, 7, 8}, "a merge needs all analysts"
    assert waits[10] == waits[9] | {9}
    assert waits[11] == waits[10] | {10}
    assert waits[12:15] == [waits[11] | {11}] * 3, "three items are certain from the start"
    assert waits[15:19] == [waits[12] | {12, 13, 14}] * 4, "the next step needs the decision"
    assert rollouts & waits[15] == {3, 4, 5}
    assert waits[19:] == [waits[15] | {15, 16, 17, 18}] * 2, "the test split is measured at the end"
    assert plan.longest == 8


def test_a_stage_that_nobody_knows_is_refused():
    odd = Recording(calls=(*CALLS, optimizer("dream", "")), accepted=frozenset(), measured=frozenset(), items=ITEMS)
    with pytest.raises(RuntimeError, match="dream"):
        plan_of(odd)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40),
)
def test_an_item_that_is_due_is_due_whatever_the_others_bring(table):
    names = [str(number) for number in range(len(table))]
    base = Evaluation(
        split=Split.SELECTION,
        item_set="",
        outcomes=dict(zip(names, (PASS if b else FAIL for b, _ in table), strict=True)),
        seed=0,
    )
    after = dict(zip(names, (PASS if new else FAIL for _, new in table), strict=True))
    course = Course(base, after)
    places = order(base, GateRule())
    assert course.items == places[: len(course.items)]
    assert course.settled <= len(course.items)
    assert [wait <= place for place, wait in enumerate(course.waits)] == [True] * len(course.waits)
    for place, wait in enumerate(course.waits):
        known = {item: after[item] for item in places[:wait]}
        # Whatever comes between: even if all of it fails, the decision is open where the item's wave begins.
        begin = place - place % WAVE if place < WAVE else max(wait, place - WAVE + 1)
        stop = EarlyStop(GateRule(), base, 1)
        for item, outcome in (known | dict.fromkeys(places[wait:begin], FAIL)).items():
            assert stop.needed is None
            stop.take(item, outcome)
        assert stop.needed is None


def test_the_reference_makes_as_many_calls_as_its_logs_tell():
    calls = tuple(Call(scope="", role=role, stage="", document={}, text="") for role in ("target", "optimizer"))
    measured = frozenset(f"step-{step}" for step in range(1, 25))
    recording = Recording(calls=calls, accepted=frozenset(), measured=measured, items={})
    found = [len(phase) for phase in phases(recording, epochs=8)]
    assert sum(found) == 3366
    assert sum(-(-size // 8) for size in found) * 0.05 == pytest.approx(25.05)
    assert len(found) == 153
