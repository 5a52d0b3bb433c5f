from __future__ import annotations

from dataclasses import replace

import pytest
from asking import ask
from sample_run import RUN, write_run

from skillgit.app.history.run_list import run_list
from skillgit.errors import UsageError
from skillgit.store.lock import RunLock
from skillgit.verbs.browse import courses
from skillgit.view.runs import RUNS


@pytest.fixture
def rows(context, records):  # noqa: ARG001 - the repository has it
    row = ask(run_list, context).rows[0]
    others = (
        replace(row, name="better", best_score=0.9, best_test=None, target="live/large"),
        replace(row, name="dear", best_score=0.2, usd=9.0, outcome="", environment="other"),
    )
    return (row, *others)


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["score>.5"], [RUN, "better"]),
        (["score>.5", "model=LARGE"], ["better"]),
        (["state=stopped"], ["dear"]),
        (["test>=0"], [RUN, "dear"]),
        (["cost>=9"], ["dear"]),
        (["bet"], ["better"]),
        ([], [RUN, "better", "dear"]),
    ],
)
def test_filters_narrow(rows, conditions, names):
    assert [row.name for row in RUNS.chosen(rows, filters=conditions)] == names


def test_what_no_run_costs_is_said_in_the_unit_that_is_compared(rows):
    free, unpriced = ([replace(row, usd=usd, unpriced=1) for row in rows] for usd in (0.0, None))
    assert RUNS.why_empty(free, ["cost>1"]) == "cost is $0.00"
    assert RUNS.why_empty(unpriced, ["cost>1"]) == "no run has a price, and tokens>N compares what was spent"


def test_what_lacks_a_value_comes_last_either_way(rows):
    assert [row.name for row in RUNS.chosen(rows, sort="test")][-1] == "better"
    assert [row.name for row in RUNS.chosen(rows, sort="-test")][-1] == "better"
    assert [row.name for row in RUNS.chosen(rows, sort="-score")] == ["better", RUN, "dear"]
    for key in RUNS.keys:
        forward, back = RUNS.chosen(rows, sort=key), RUNS.chosen(rows, sort=f"-{key}")
        assert sorted(forward, key=id) == sorted(back, key=id)


@pytest.mark.parametrize("condition", ["score>much", "model>a"])
def test_conditions_that_cannot_hold_are_refused(rows, condition):
    with pytest.raises(UsageError):
        RUNS.chosen(rows, filters=[condition])
    with pytest.raises(UsageError):
        RUNS.chosen(rows, sort="colour")


@pytest.mark.usefixtures("records")
def test_the_list_begins_with_what_is_trained_now(context, repo):
    write_run(repo, "other", events=2)
    with RunLock(repo, "other", context.clock):
        assert [row.name for row in ask(run_list, context).rows] == ["other", RUN]
    whole = ask(run_list, context)
    assert ask(courses, context, [RUN])[RUN][-1] == pytest.approx(whole.rows[0].best_score)
    assert [*ask(courses, context, ["other"], 2)] == ["other"]
    assert (whole.total, whole.environments, whole.models) == (2, ("toy",), ("offline/student",))
