from __future__ import annotations

import pytest
from asking import ask
from sample_run import RUN, write_run

from skillgit.app.history.cost import cost
from skillgit.app.history.log import log
from skillgit.app.history.requests import LogRequest
from skillgit.domain.cost import Grouping
from skillgit.errors import RevisionNotFoundError
from skillgit.verbs.browse import curves
from skillgit.view.curve import Axis

pytestmark = pytest.mark.usefixtures("records")


def test_a_curve_has_every_event_of_a_short_run(context):
    (curve,) = ask(curves, context, [RUN])
    events = ask(log, context, LogRequest(words=(RUN,), reverse=True)).rows
    assert [point.row for point in curve.points] == list(events)
    assert [point.x for point in curve.points] == [row.step for row in events]
    scores = {row.version: row.score for row in events if row.version is not None}
    assert [point.score for point in curve.points] == [scores[row.at] for row in events]
    assert [point.row.label for point in curve.points if point.is_mark] == ["v0", "v1", "r2", "v2", "v3", "r5"]
    assert curve.left_out == 0


def test_along_calls_a_curve_ends_at_what_the_run_cost(context):
    spent = ask(cost, context, RUN, by=Grouping.STEP)
    for axis, total in ((Axis.CALL, spent.total.calls), (Axis.DOLLAR, spent.total.usd)):
        (curve,) = ask(curves, context, [RUN], axis)
        places = [point.x for point in curve.points]
        assert places == sorted(places)
        assert places[-1] == curve.end == pytest.approx(total)
        assert places[0] == pytest.approx(getattr(spent.rows[0], "calls" if axis is Axis.CALL else "usd"))


def test_of_a_long_run_every_new_best_stays(context):
    (curve,) = ask(curves, context, [RUN], most=2)
    (whole,) = ask(curves, context, [RUN])
    assert 0 < curve.left_out == len(whole.points) - len(curve.points)
    assert set(curve.points) <= set(whole.points), "what is left out changes no point"
    assert max(point.score for point in curve.points) == max(point.score for point in whole.points)
    assert ask(curves, context, [RUN], most=2) == (curve,)


def test_curves_are_in_the_order_in_which_they_are_asked_for(context, repo):
    write_run(repo, "other", events=4)
    assert [curve.run.name for curve in ask(curves, context, ["other", RUN, "other"])] == ["other", RUN]
    with pytest.raises(RevisionNotFoundError, match="no run 'third'"):
        ask(curves, context, [RUN, "third"])
