from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from sample_run import RUN
from soaking import soak

from skillgit.app.history.item import ItemReply, ItemWords
from skillgit.tui.screens.compare import CompareScreen, ItemsView
from skillgit.tui.screens.item import ItemScreen, TrajectoryView
from skillgit.tui.screens.printed import Printed, PrintedScreen
from skillgit.tui.widgets.curve import ScorePlot
from skillgit.tui.widgets.lines import KeyLine, OneLine
from skillgit.view.items import said
from skillgit.view.surface import Screen


def printed(screen) -> str:
    lines = screen.query_one(Printed)
    return "\n".join(lines.text_of(line) for line in range(lines.count))


def line_keys(app) -> list[str]:
    return [key.description for _, key, _ in app.screen.query_one(KeyLine).placed()]


def test_a_run_that_is_over_opens_on_itself_in_short(visit, press):
    async def scenario(app, pilot):
        await press(pilot)
        assert app.screen.detail.view.id == "whole"
        text = printed(app.screen)
        assert "improved" in text
        assert ".4000" in text
        assert ".8000" in text
        assert "Rules of v3 that training brought" in text
        await press(pilot, "0", "G", "enter")
        assert isinstance(app.screen, PrintedScreen)
        assert app.screen.query_one(Printed).words[0] == "why"

    visit(scenario)


def test_the_seed_shows_its_text_and_other_events_what_they_changed(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "G")
        assert app.screen.detail.view.id == "whole"
        assert "seed" in printed(app.screen)
        await press(pilot, "k")
        assert app.screen.detail.view.id == "diff"

    visit(scenario)


def test_a_key_opens_what_a_command_prints(visit, press):
    printing = {
        "r": ("report", RUN),
        "t": ("blame", f"{RUN}/end"),
        "m": ("items", RUN),
        "dollar_sign": ("cost", RUN),
        "s": ("show", f"{RUN}/v0", "--settings"),
    }

    async def scenario(app, pilot):
        for key, words in printing.items():
            await press(pilot, key)
            assert isinstance(app.screen, PrintedScreen)
            assert app.screen.query_one(Printed).words == words
            await press(pilot, "escape")
            assert not isinstance(app.screen, PrintedScreen)

    visit(scenario)


def test_what_is_wider_than_the_screen_keeps_its_columns(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "t")
        lines = app.screen.query_one(Printed)
        widths = [len(lines.text_of(line)) for line in range(lines.count)]
        await press(pilot, "right")
        assert lines.beside == max(0, min(lines.room // 2, max(widths) - lines.room))
        await press(pilot, "left", "left")
        assert lines.beside == 0

    visit(scenario, size=(60, 20))


def test_items_say_what_they_ask_and_what_was_answered():
    replies = (ItemReply(answer="324 m"), ItemReply(answer="1,063\nft"), ItemReply())
    words = ItemWords(question="<context>much</context><question>How tall\x1b[2J?</question>", replies=replies)
    assert said({"q": words}, Screen())["q"] == "324 m → 1,063 ft  How tall^[[2J?"
    assert said({"q": replace(words, question="", replies=(replies[0], replies[0]))}, Screen())["q"] == "324 m"
    assert said({"q": ItemWords(question="", replies=())}, Screen())["q"] == ""


def test_a_line_of_items_opens_the_item(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "m")
        await press(pilot, "j")
        await press(pilot, "enter")
        assert isinstance(app.screen, ItemScreen)

    visit(scenario)


def test_an_item_of_a_comparison_has_exactly_its_two_sides(visit, press):
    async def scenario(app, pilot):
        for a, b in (pair for names in (("v1", "v3"), ("v0", "r2")) for pair in permutations(names)):
            await app.push_screen(CompareScreen(f"{RUN}/{a}", f"{RUN}/{b}"))
            await press(pilot, "tab", "tab")
            assert isinstance(app.screen.focused, ItemsView)
            await press(pilot, "enter")
            sides = [app.screen.query_one(f"#{side}-title", OneLine).text.split()[0] for side in ("base", "chosen")]
            assert sides == [a, b]
            assert len(app.screen.query(TrajectoryView)) == 2
            await press(pilot, "escape", "escape")

    visit(scenario)


@pytest.mark.parametrize("size", [(80, 24), soak((200, 60))])
def test_help_and_commands_are_in_the_line_of_keys_which_follows_the_focus(visit, press, size):
    async def scenario(app, pilot):
        lines = {}
        for pane in "0123":
            await press(pilot, pane)
            lines[pane] = line_keys(app)
            assert lines[pane][-3:] == ["help", "command", "quit"]
        assert len(set(map(tuple, lines.values()))) == len(lines)

    visit(scenario, size=size)


def test_a_click_in_the_line_of_keys_presses_one(visit, press):
    async def scenario(app, pilot):
        line = app.screen.query_one(KeyLine)
        column = next(column for column, key, _ in line.placed() if key.description == "help")
        await pilot.click(KeyLine, offset=(column + 1, 0))
        await press(pilot)
        assert type(app.screen).__name__ == "HelpScreen"

    visit(scenario)


def test_marked_runs_have_their_curves_over_each_other_and_runs_are_sorted_and_filtered(visit, press, sample):
    from sample_run import write_run  # noqa: PLC0415 - one test needs a second run

    write_run(sample, "second", "skills/second", events=2)

    async def scenario(app, pilot):
        screen = app.screen
        await press(pilot, "1", "g", "w", "j", "w")
        assert set(screen.runs.marked) == {RUN, "second"}
        assert len(screen.query_one(ScorePlot).runs) == 2
        await press(pilot, "a")
        assert "by call" in screen.query_one(ScorePlot).border_title
        await press(pilot, "w", "k", "w", "a", "a")
        assert not screen.runs.marked
        await press(pilot, "O", "s")
        assert [run.name for run in screen.runs.all] == [RUN, "second"]
        await press(pilot, "slash", *"score>.7", "enter")
        assert [run.name for run in screen.runs.all] == [RUN]
        await press(pilot, "slash", "escape")
        assert len(screen.runs.all) == 2

    visit(scenario)
