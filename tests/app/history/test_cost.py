from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
import sample_run
from asking import ask

from skillgit.app.history.cost import CostRow, Unpriced, cost
from skillgit.domain.cost import Cost, CostPart, Grouping
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import RevisionNotFoundError
from skillgit.store.event_writer import RunWriter

ROLLOUT = CostPart(
    role="target",
    stage="rollout",
    cost=Cost(calls=4, tokens_in=600, tokens_out=50, usd=0.25, seconds=8.0, cached=300, cache_written=60),
)
SELECTION = CostPart(role="target", stage="selection", cost=Cost(calls=2, tokens_in=200, tokens_out=25, usd=0.125))
REFLECT = CostPart(
    role="optimizer", stage="reflect", cost=Cost(calls=1, tokens_in=200, tokens_out=25, usd=0.625, reasoning=20)
)
WHOLE = replace(ROLLOUT.cost + SELECTION.cost + REFLECT.cost, seconds=5.0, parts=(REFLECT, ROLLOUT, SELECTION))
PAID = 8
"""Events of the sample run that cost something."""


def write(repo, spent=WHOLE, run=sample_run.RUN):
    """Write the sample run with another cost for each event."""
    writer = RunWriter(repo, run, sample_run.clock_from(count()))
    for sample in sample_run.transitions(run):
        event = sample.event
        told = event if event.kind in {EventKind.SLOW_MERGED, EventKind.REVERTED} else replace(event, cost=spent)
        writer.append(told, sample.skill, sample.evidence)


def numbers(row: CostRow):
    return row.calls, row.tokens_in, row.usd


def test_a_run_is_told_by_role_and_stage(context, repo):
    write(repo)
    found = ask(cost, context, None)
    assert (found.run, found.by, found.share_of, found.unpriced) == (sample_run.RUN, "role stage", "usd", ())
    assert [(row.role, row.stage, *numbers(row), row.share) for row in found.rows] == [
        ("optimizer", "reflect", PAID, PAID * 200, PAID * 0.625, 0.625),
        ("target", "rollout", PAID * 4, PAID * 600, PAID * 0.25, 0.25),
        ("target", "selection", PAID * 2, PAID * 200, PAID * 0.125, 0.125),
    ]
    assert [row.seconds for row in found.rows] == [0.0, PAID * 8.0, 0.0]
    assert numbers(found.total) == (PAID * 7, PAID * 1000, PAID)
    assert (found.total.cached, found.total.cache_written, found.total.reasoning) == (2400, 480, 160)
    assert (found.total.seconds, found.total.share) == (PAID * 5.0, 1.0)


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        (Grouping.ROLE, [("optimizer", "", "", PAID), ("target", "", "", PAID * 6)]),
        (Grouping.STAGE, [("", "reflect", "", PAID), ("", "rollout", "", PAID * 4), ("", "selection", "", PAID * 2)]),
        (Grouping.MODEL, [("", "", "offline/teacher", PAID), ("", "", "offline/student", PAID * 6)]),
    ],
)
def test_it_can_be_told_by_one_thing(by, rows, context, repo):
    write(repo)
    found = ask(cost, context, sample_run.RUN, by=by)
    assert [(row.role, row.stage, row.model, row.calls) for row in found.rows] == rows


def test_a_version_costs_all_that_came_since_the_one_before_it(context, repo):
    write(repo)
    found = ask(cost, context, None, by=Grouping.VERSION)
    # v2 is the merge: before it stand a rejected step, a skipped one and the guidance
    assert [(row.version, row.calls) for row in found.rows] == [(0, 7), (1, 7), (2, 21), (3, 7), (None, 14)]
    assert sum(row.share for row in found.rows) == 1.0
    assert found.rows[2].seconds == 15.0


def test_steps_are_told_one_by_one_with_what_became_of_them(context, repo):
    write(repo)
    found = ask(cost, context, None, by=Grouping.STEP)
    assert [(row.step, row.kind, row.version) for row in found.rows] == [
        (0, "run-started", 0),
        (1, "accepted", 1),
        (2, "rejected", None),
        (3, "skipped", None),
        (3, "slow-proposed", None),
        (4, "accepted", 3),
        (5, "rejected", None),
        (5, "run-finished", None),
    ]
    assert {row.seconds for row in found.rows} == {5.0}


@pytest.mark.usefixtures("records")
def test_a_run_whose_commits_tell_no_parts_is_one_row_and_complete(context):
    found = ask(cost, context, None)
    (row,) = found.rows
    assert (row.role, row.stage, row.share) == ("", "", 1.0)
    assert replace(row, share=1.0) == found.total
    assert row.usd == pytest.approx(sum(sample_run.cost(step).usd for step in (0, 1, 2, 3, 3, 4, 5, 5)))
    assert [row.model for row in ask(cost, context, None, by=Grouping.MODEL).rows] == [""]


def test_prices_that_are_not_known_are_named_and_shares_are_those_of_tokens(context, repo):
    unknown = replace(REFLECT, cost=replace(REFLECT.cost, usd=0.0, unpriced=1))
    write(repo, replace(WHOLE, usd=0.375, unpriced=1, parts=(unknown, ROLLOUT, SELECTION)))
    found = ask(cost, context, None)
    assert found.unpriced == (Unpriced(model="offline/teacher", calls=PAID),)
    assert found.share_of == "tokens"
    assert [row.usd for row in found.rows] == [None, PAID * 0.25, PAID * 0.125]
    assert found.rows[0].share == 225 / 1100
    assert found.total.usd == PAID * 0.375


def test_what_is_free_is_shared_out_by_tokens(context, repo):
    write(repo, Cost(calls=1, tokens_in=10, parts=(replace(ROLLOUT, cost=Cost(calls=1, tokens_in=10)),)))
    found = ask(cost, context, None)
    assert (found.share_of, found.total.usd, found.rows[0].share) == ("tokens", 0.0, 1.0)


def test_all_runs_are_told_side_by_side(context, repo):
    write(repo)
    write(repo, Cost(calls=1, usd=3.0), run="other")
    found = ask(cost, context, None, all_runs=True)
    assert (found.run, found.by) == ("", "run")
    assert {row.run: numbers(row) for row in found.rows} == {
        sample_run.RUN: (PAID * 7, PAID * 1000, PAID),
        "other": (PAID, 0, PAID * 3.0),
    }
    assert found.total.usd == PAID * 4.0


def test_where_there_is_no_run_there_is_no_cost(context):
    found = ask(cost, context, None)
    assert (found.run, found.rows, found.total.calls) == ("", (), 0)
    assert ask(cost, context, None, all_runs=True).rows == ()
    with pytest.raises(RevisionNotFoundError):
        ask(cost, context, "missing")
