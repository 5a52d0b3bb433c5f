from __future__ import annotations

import re
from dataclasses import replace

import pytest
from asking import ask
from read_page import number, parsed, rows, text
from sample_run import RUN, write_run

from skillgit.app.history.cost import cost
from skillgit.app.history.log import log
from skillgit.app.history.requests import LogRequest
from skillgit.domain.cost import Grouping
from skillgit.errors import RevisionNotFoundError
from skillgit.index.event_pages import CurveRow
from skillgit.verbs.browse import curves
from skillgit.view.curve import Axis, Baseline, course, overlaid, run_curve
from skillgit.web.rendering import environment

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


def long_run(context, steps: int, outcome: str):
    """Return the curve of a run of ``steps`` whose scores go up and down."""
    (sample,) = ask(curves, context, [RUN])
    first, rejected = sample.points[0].row, next(point.row for point in sample.points if point.row.version is None)
    made, standing = [], 0.4
    for step in range(steps + 1):
        score = (7 * step % 20) / 20
        is_version = step == 0 or score > standing or step % 97 == 0
        row = replace(first if is_version else rejected, step=step, score=score, delta=None, bound=None)
        standing = score if is_version else standing
        made.append(CurveRow(replace(row, commit=f"{step:040}", epoch=step // 50 + 1), standing, 20, step * 3, 0.0))
    run = replace(sample.run, outcome=outcome, steps=steps, total_steps=steps + 90)
    return run_curve(run, made, len(made))


def scale(places: dict[float, float]):
    """Return what turns places of a drawing into amounts, by two that are written beside an axis."""
    (low, at), (high, stop) = min(places.items()), max(places.items())
    return lambda place: at + (float(place) - low) / ((high - low) or 1) * (stop - at)


@pytest.mark.parametrize(
    ("steps", "outcome", "within"),
    [(1, "", None), (5, "improved", None), (410, "improved", None), (410, "", None), (410, "improved", (100, 140))],
)
def test_a_drawing_has_all_of_its_run_and_nothing_that_is_not_in_its_table(context, steps, outcome, within):
    curve = long_run(context, steps, outcome)
    if within is not None:
        curve = run_curve(curve.run, [CurveRow(p.row, p.score, 20, 0, 0.0) for p in curve.points], 0, within=within)
    half = replace(curve, points=curve.points[: len(curve.points) // 2 + 1])
    template = environment().get_template("curve.html").make_module({})
    for drawings in (course(curve, within, Baseline("other/v1", 0.3)), overlaid([curve, half], within)):
        page = parsed(f"<!DOCTYPE html><title>curve</title>{template.plot(drawings, 'name', 'title')}")
        cells = [row[-6:] for row in rows(page)]
        standings = {float(row[4]) for row in cells}
        own = {number(shown) for row in cells for shown in row[2:4] if shown != "–"}  # noqa: RUF001 - a dash
        for svg in (element for element in page.iter("svg") if element.get("data-ends")):
            left, right, *_ = map(float, svg.get("data-axes").split())
            groups = {element.get("class"): element for element in svg.iter("g")}
            score = scale({float(one.get("y")) - 4: float(text(one)) for one in groups["grid"].iter("text")})
            lines = [one for one in svg.iter("path") if one.get("class") in {"line", "run-line"}]
            for line in lines:
                corners = re.findall(r"[ML]([\d.]+) ([\d.]+)H([\d.]+)", line.get("d"))
                assert float(corners[0][0]) == left, "it begins where the axis does"
                assert {round(score(y), 2) for _, y, _ in corners} <= standings
                if within is None:
                    share = (float(corners[-1][2]) - left) / (right - left)
                    begin, end = map(float, svg.get("data-ends").split())
                    assert begin == 0
                    ends = [pytest.approx(steps if line is lines[0] else steps // 2, abs=1)]
                    assert [begin + share * (end - begin)] == ends, "and ends where the run does"
                    assert (end > steps + 80) is (not outcome and line.get("class") == "line"), "with the steps to come"
            marks = list(svg.iter("use"))
            assert marks
            assert {round(score(one.get("y")), 2) for one in marks} <= own
            classes = {
                name: [one for one in svg.iter() if one.get("class") == name] for name in ("lead-out", "run-label")
            }
            for leader, label, line in zip(*classes.values(), lines if classes["run-label"] else (), strict=True):
                begin, stop = map(float, re.findall(r"[ML]([\d.]+)", leader.get("d")))
                end = float(line.get("d").rpartition("H")[2])
                assert end < begin < stop < float(label.get("x")) < end + 20, "its name is at its end, behind its data"
        kept = {float(row[4]) for row in cells}
        assert {max(p.score for p in curve.points), min(p.score for p in curve.points)} <= kept, "extremes stay"
