"""How the events of several runs hang together, drawn in front of them."""

from __future__ import annotations

from datetime import timedelta

import cli_sample as sample
import pytest

from skillgit.app.history.log import Log
from skillgit.view.log import draw, log_lines
from skillgit.view.surface import Screen
from skillgit.view.text import width

WIDE = Screen()


def event(name, kind="accepted", **changes):
    """Return an event that is called after its run and its version, such as ``a3``."""
    return sample.row(kind, run=name[0], commit=name, version=int(name[1:]), step=int(name[1:]), **changes)


def run(name, newest, oldest=0):
    return [event(f"{name}{number}") for number in range(newest, oldest - 1, -1)]


def drawn(rows, parents, screen=WIDE, room=0):
    graph = draw(rows, parents, screen, room).rows
    return [f"{cell.row.rstrip():<20}{row.commit}" for cell, row in zip(graph, rows, strict=True)]


def test_runs_that_have_nothing_to_do_with_each_other_take_one_lane():
    assert drawn([*run("a", 1), *run("b", 1)], {}) == [f"{'○':<20}{name}" for name in ("a1", "a0", "b1", "b0")]


def test_a_fork_leads_to_the_version_that_it_began_at():
    rows = [*run("b", 1), *run("a", 2)]
    assert drawn(rows, {"b0": ("a1",)}) == [
        f"{'○':<20}b1",
        f"{'○':<20}b0",
        f"{'│   ○':<20}a2",
        f"{'○───╯':<20}a1",
        f"{'○':<20}a0",
    ]


def test_forks_of_one_version_share_a_lane():
    rows = [*run("b", 0), *run("c", 0), *run("d", 1), *run("a", 1)]
    assert drawn(rows, dict.fromkeys(("b0", "c0", "d0"), ("a0",))) == [
        f"{'○':<20}b0",
        f"{'├───○':<20}c0",
        f"{'│   ○':<20}d1",
        f"{'├───○':<20}d0",
        f"{'│   ○':<20}a1",
        f"{'○───╯':<20}a0",
    ]


def test_a_fork_branches_off_the_line_that_leads_to_its_version():
    rows = [event("a2"), event("b0"), event("a1"), event("a0")]
    assert drawn(rows, {"b0": ("a1",)}) == [
        f"{'○':<20}a2",
        f"{'├───○':<20}b0",
        f"{'○':<20}a1",
        f"{'○':<20}a0",
    ]


def test_a_merge_has_a_line_to_what_it_took_in():
    rows = [event("a2"), event("b1"), event("b0"), event("a1"), event("a0")]
    assert drawn(rows, {"a2": ("b1",)}) == [
        f"{'○───╮':<20}a2",
        f"{'│   ○':<20}b1",
        f"{'│   ○':<20}b0",
        f"{'○':<20}a1",
        f"{'○':<20}a0",
    ]


def test_an_edge_runs_under_the_lines_that_it_crosses():
    rows = [*run("b", 0), *run("c", 0), event("a3"), event("a2"), event("a1")]
    assert drawn(rows, {"b0": ("a2",), "c0": ("a1",)}) == [
        f"{'○':<20}b0",
        f"{'│   ○':<20}c0",
        f"{'│   │   ○':<20}a3",
        f"{'○───│───╯':<20}a2",
        f"{'○───╯':<20}a1",
    ]


def test_several_lines_meet_at_one_event():
    rows = [event("b0"), event("c0"), event("d0"), event("a9", "rejected"), event("a8")]
    parents = {"b0": ("a9",), "c0": ("a8",), "d0": ("a8", "a9")}
    assert drawn(rows, parents) == [
        f"{'○':<20}b0",
        f"{'│   ○':<20}c0",
        f"{'├───┼───○':<20}d0",
        f"{'╰───│─────×':<20}a9",  # noqa: RUF001 - the sign of the screens
        f"{'    ○':<20}a8",
    ]


def test_candidates_stand_beside_the_line_of_their_run():
    rows = [event("a4", "rejected"), event("a3"), event("b9", "rejected"), event("a2", "rejected"), event("a1")]
    assert [line[:12].rstrip() for line in drawn(rows, {})] == ["  ×", "○", "│     ×", "│ ×", "○"]  # noqa: RUF001 - likewise


def test_lanes_move_together_before_they_are_cut():
    rows, parents = forks(6)
    assert max(len(cell.row) for cell in draw(rows, parents, WIDE).rows) == 25
    close = draw(rows, parents, WIDE, 16)
    assert close.width == 13
    assert "…" not in "".join(cell.row for cell in close.rows)
    assert close.rows[6].row.rstrip() == "│ │ │ │ │ │ ○"


def forks(count):
    """Return runs that began at one version each, and the run that has these versions."""
    tips = [sample.row("run-started", run=f"fork{number}", commit=f"f{number}", version=0) for number in range(count)]
    line = [event(f"a{number}") for number in range(count, -1, -1)]
    return [*tips, *line], {f"f{number}": (f"a{number}",) for number in range(count)}


def test_an_ellipsis_stands_for_lanes_that_are_left_over():
    rows, parents = forks(40)
    graph = draw(rows, parents, WIDE, 10)
    assert graph.width == 10
    assert {width(cell.row) for cell in graph.rows} == {10}
    assert [cell.row.rstrip() for cell in graph.rows[:6]] == [
        "○",
        "│ ○",
        "│ │ ○",
        "│ │ │ ○",
        "│ │ │ │ …○",
        "│ │ │ │ …○",
    ]
    assert graph.rows[5].below == "│ │ │ │ … "
    assert graph.rows[40].row.rstrip() == "│ │ │ │ …○"


@pytest.mark.parametrize("columns", [72, 80, 100, 140])
@pytest.mark.parametrize("unicode", [True, False])
def test_lines_with_a_graph_fit_the_terminal(columns, unicode):
    rows, parents = forks(60)
    screen = Screen(terminal=True, width=columns, unicode=unicode)
    lines = [line.text for line in log_lines(rows, screen, sample.NOW, graph=parents, runs=True)]
    assert max(map(width, lines)) <= columns
    assert screen.glyphs.ellipsis in lines[59]
    assert "fork59" in lines[59]
    assert unicode or all(line.isascii() for line in lines)


def test_the_command_hands_on_how_events_hang_together(skillgit, fake):
    seed = sample.row("run-started", run="fork", commit=sample.oid("f0"), version=0, time=sample.ago(11))
    calls = fake(
        "history.log.log", Log(run="", rows=(seed, sample.V8, sample.V7), parents={seed.commit: (sample.V7.commit,)})
    )
    lines = skillgit("log", "--all", "--graph").text.splitlines()
    assert calls[0][0].graph is True
    assert [line[:5] for line in lines] == ["○    ", "│   ●", "●───╯"]


@pytest.mark.parametrize("form", ["--json", "--plain"])
def test_a_graph_is_for_people(skillgit, form):
    ended = skillgit("log", "--graph", form)
    assert ended.code == 2
    assert "--graph is for people" in ended.err


def test_a_graph_of_many_lanes_can_be_drawn():
    rows, parents = forks(1_000)
    start = sample.NOW - timedelta(days=1)
    assert len(list(log_lines(rows, Screen(width=120), start, graph=parents))) == len(rows)
