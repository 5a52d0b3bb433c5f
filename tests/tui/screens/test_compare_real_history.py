from __future__ import annotations

import pytest
from sample_run import RUN

from skillgit.tui.screens.compare import CompareScreen, ItemsView, RulesView
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.widgets.diff_view import DiffView


async def until(pilot, holds) -> None:
    """Wait for what a thread lays out; that it never comes is told by the time limit of a test."""
    while not holds():
        await pilot.pause(0.01)


def said(screen) -> str:
    strips = screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def test_two_versions_of_a_run_are_compared_and_an_item_is_opened(visit, press):
    async def scenario(app, pilot):
        await app.push_screen(CompareScreen("v0", "v3"))
        await until(pilot, lambda: app.screen.query_one(DiffView).hunks)
        screen = app.screen
        await press(pilot, "tab")  # what is hidden is not laid out
        await until(pilot, lambda: screen.query_one(RulesView).count)
        await until(pilot, lambda: screen.query_one(ItemsView).item)
        await press(pilot, "tab", "enter")
        assert isinstance(app.screen, ItemScreen)
        assert app.screen.version == "v3"
        assert f"run {RUN}" in said(app.screen)

    visit(scenario)


def test_one_key_compares_seed_and_best_and_enter_shows_the_first_broken_item_with_both_answers(visit, press):
    async def scenario(app, pilot):
        best = app.screen.runs.current.best_version
        await press(pilot, "B")
        screen = app.screen
        await until(pilot, lambda: screen.query_one(ItemsView).item)
        assert (screen.a, screen.b, screen.view) == (f"{RUN}/v0", f"{RUN}/v{best}", "items")
        changes = {row.item: row.change for row in screen.query_one(ItemsView).facts.rows}
        kinds = [kind for kind in ("broken", "lost", "fixed", "gained") if kind in changes.values()]
        assert changes[screen.query_one(ItemsView).item] == kinds[0]
        await press(pilot, "enter")
        titles = next(
            line for line in said(app.screen).splitlines() if " v0 " in line and f" v{best} " in line and "─" in line
        )
        assert titles.index(" v0 ") < titles.index(f" v{best} "), "older left, newer right"

    visit(scenario)


def test_history_that_goes_on_is_read_again(visit, press):
    async def scenario(app, pilot):
        await app.push_screen(CompareScreen("v0", "v3"))
        await press(pilot, "R")
        assert "v0 → v3" in said(app.screen)

    visit(scenario)


@pytest.mark.parametrize("keys", [("R",), ("left", "right")])
def test_an_item_survives_being_read_again(visit, press, keys):
    async def scenario(app, pilot):
        await app.push_screen(CompareScreen("v0", "v3"))
        await press(pilot, "enter")  # and the items are read
        await press(pilot, "enter", *keys)
        assert isinstance(app.screen, ItemScreen)
        assert app.screen.version == "v3"

    visit(scenario)
