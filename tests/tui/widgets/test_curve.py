from __future__ import annotations

import pytest

from skillgit.domain.score import Score
from skillgit.index.event_pages import Point
from skillgit.tui.widgets.curve import Scale, ScorePlot, by_event, drawing, overlaid, ticks
from skillgit.view.surface import ASCII, UNICODE, Screen


def point(step: int, score: float, kind: str, decision: str = "", *, at_most: bool = False) -> Point:
    return Point(step=step, score=Score(score, at_most=at_most), kind=kind, decision=decision, commit=f"{step}{kind}")


POINTS = [
    point(0, 0.25, "run-started"),
    point(3, 0.5, "rejected", at_most=True),
    point(5, 0.75, "accepted", "accept_new_best"),
    point(5, 0.75, "rejected"),
    point(10, 0.5, "slow-merged"),
]


def lines(runs, scale, glyphs=UNICODE) -> list[str]:
    grid = drawing(runs, scale, glyphs)
    return ["".join(grid.get((x, y), (" ", ""))[0] for x in range(scale.columns)) for y in range(scale.rows)]


def test_a_run_is_a_line_of_its_best_score_under_the_signs_of_its_events():
    run = by_event(POINTS, UNICODE)
    scale = Scale.over(run.dots, 11, 3)
    assert lines([run], scale) == [
        "     ●─────",
        "   ≤ │    ◆",
        "○────╯     ",
    ]
    assert [scale.score(row) for row in range(3)] == [0.75, 0.5, 0.25]
    assert lines([by_event(POINTS, ASCII)], scale, ASCII) == [
        "     *-----",
        "   < |    M",
        "o----'     ",
    ]


def test_a_run_with_one_score_has_a_plot():
    run = by_event(POINTS[:1], UNICODE)
    assert set(drawing([run], Scale.over(run.dots, 20, 5), UNICODE)) == {(0, 2)}


def test_a_run_in_progress_leaves_room_for_its_steps_to_come():
    run = by_event(POINTS[:3], UNICODE)
    assert lines([run], Scale.over(run.dots, 21, 3, last=20))[0] == "     ●               "


@pytest.mark.parametrize("known", range(1, len(POINTS)))
def test_while_a_run_goes_on_what_it_has_measured_stays_where_it_is(known):
    before, after = (by_event(points, UNICODE).dots for points in (POINTS[:known], POINTS))
    scales = [Scale.over(dots, 21, 9, last=20, is_still=True) for dots in (before, after)]
    assert [scales[0].at(dot) for dot in before] == [scales[1].at(dot) for dot in before]


def test_runs_over_each_other_have_signs_and_colours_of_their_own():
    runs = overlaid([[(0, 0.0), (10, 1.0)], [(0, 0.0), (5, 0.5), (10, 0.5)]], Screen())
    assert lines(runs, Scale.over([dot for run in runs for dot in run.dots], 11, 3)) == [
        "          ●",
        "     ▲────▲",
        "●─────────╯",
    ]
    assert len({(run.dots[0].sign, run.style) for run in overlaid([[(0, 0.5)]] * 8, Screen())}) == 8


@pytest.mark.parametrize(
    ("first", "last", "most", "places"),
    [
        (0, 4, 10, [0, 1, 2, 3, 4]),
        (0, 40, 4, [0, 10, 20, 30, 40]),
        (3, 3, 4, [3]),
        (0, 4, 1, [0]),
        (0.0, 0.25, 5, [0.0, 0.05, 0.1, 0.15, 0.2, 0.25]),
        (13, 178, 3, [100]),
    ],
)
def test_places_are_numbered_in_round_steps(first, last, most, places):
    assert [*ticks(first, last, most)] == pytest.approx(places)


@pytest.mark.parametrize(("size", "numbers"), [((40, 8), 3), ((100, 30), 8)])
def test_a_plot_fills_its_room(play, size, numbers):
    plot = ScorePlot()

    async def scenario(stage, pilot):
        plot.show(POINTS, steps=20)
        await pilot.pause()
        shown = stage.lines()
        assert len(shown) == size[1]
        assert sum(line.lstrip().startswith((".", "1")) for line in shown) == numbers
        assert shown[0].startswith(" .7500 │")
        assert shown[-2].startswith(" .2500 │○─")
        assert shown[-1].split() == ["step", "0", *(["10", "20"] if size[0] == 40 else ["5", "10", "15", "20"])]

    play(plot, scenario, size=size)
