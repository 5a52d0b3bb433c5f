from __future__ import annotations

from dataclasses import replace

from chronicle import Chronicle
from event_strategies import costs, models
from hypothesis import given, settings
from stories import COST, Story, answering, moves, recorded, told

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.event import FACTS_OF
from skillgit.index import index_check, schema, table_writer
from skillgit.index.refresh import open_index
from skillgit.index.spending import paces, spent_rows

RUN = "demo-20261121-aaaa"
PARTS = (
    CostPart(role="judge", stage="selection", cost=Cost(calls=1, tokens_in=40, unpriced=1)),
    CostPart(role="target", stage="rollout", cost=Cost(calls=2, tokens_in=60, tokens_out=10, usd=0.1, cached=30)),
)
SPENT = replace(COST, cached=30, unpriced=1, parts=PARTS)


def index_of(events):
    connection = schema.in_memory()
    table_writer.insert(connection, RUN, recorded(events), lambda _: "")
    return answering(connection)


def test_every_event_tells_what_it_cost_with_the_models_that_were_asked():
    story = Story().proposed(0.5, cost=SPENT).proposed(0.375).slow(0.75)
    rows = spent_rows(index_of(story.events), RUN)
    assert [(row.kind, row.step, row.version, row.cost) for row in rows] == [
        ("run-started", 0, 0, COST),
        ("accepted", 1, 1, SPENT),
        ("rejected", 2, None, COST),
        ("slow-proposed", 2, None, COST),
        ("slow-merged", 2, 2, Cost()),
    ]
    assert rows[1].models == {"target": "offline/reader", "optimizer": "offline/analyst", "judge": ""}


def test_the_judge_is_named_without_the_digest_of_its_parameters():
    story = Story().proposed(0.5)
    event = story.events[1]
    judged = replace(event, models=replace(event.models, judge="acme/judge@vertex@0123456789ab"))
    (_, row) = spent_rows(index_of([story.events[0], judged]), RUN)
    assert row.models["judge"] == "acme/judge@vertex"


def test_the_pace_of_a_model_is_the_mean_of_its_calls_and_tiny_ones_do_not_count():
    def timed(role: str, stage: str, calls: int, seconds: float) -> CostPart:
        return CostPart(role=role, stage=stage, cost=Cost(calls=calls, seconds=seconds))

    parts = (
        *(timed("judge", "selection", 2, 3.0), timed("optimizer", "analyst", 1, 9.0)),
        *(timed("target", "preflight", 9, 900.0), timed("target", "rollout", 3, 6.0), timed("target", "test", 1, 6.0)),
    )
    story = Story().proposed(0.5, cost=replace(COST, parts=parts))
    event = story.events[1]
    judged = replace(event, models=replace(event.models, judge="acme/judge@0123456789ab"))
    assert paces(index_of([story.events[0], judged])) == {
        ("judge", "acme/judge"): 1.5,
        ("optimizer", "offline/analyst"): 9.0,
        ("target", "offline/reader"): 3.0,
    }


@settings(max_examples=60)
@given(costs, models)
def test_a_cost_comes_out_of_the_index_as_it_went_in(cost, asked):
    events = Story().proposed(0.5, cost=cost, models=asked).events
    row = spent_rows(index_of(events), RUN)[1]
    assert row.cost == cost
    assert (row.models["target"], row.models["optimizer"]) == (asked.target, asked.optimizer)


@given(moves)
def test_deleting_a_run_leaves_none_of_its_parts(made):
    connection = schema.in_memory()
    events = [
        replace(event, cost=SPENT) if "cost" in FACTS_OF[event.kind].names else event for event in told(made).events
    ]
    table_writer.insert(connection, RUN, recorded(events), lambda _: "")
    assert connection.execute("SELECT COUNT(*) FROM spent").fetchone()[0] >= len(PARTS)
    table_writer.delete(connection, RUN)
    assert connection.execute("SELECT COUNT(*) FROM spent").fetchone() == (0,)


def test_parts_come_from_git_and_are_compared_with_it(repo):
    Chronicle(repo, Story().proposed(0.5, cost=SPENT)).go_on()
    with open_index(repo) as index:
        assert spent_rows(index, RUN)[1].cost == SPENT
        assert index_check.differing_runs(index) == frozenset()
        index.connection.execute("UPDATE spent SET calls = 9 WHERE role = 'judge'")
        assert index_check.differing_runs(index) == {RUN}
