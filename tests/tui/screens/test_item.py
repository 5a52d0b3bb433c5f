from __future__ import annotations

from dataclasses import replace

import pytest

from skillgit.errors import NotFoundError
from skillgit.tui.screens.item import ItemScreen, TrajectoryView, VersionStrip, _window
from skillgit.verbs.items import ITEM_STORY

SIZES = [
    pytest.param((104, 30), id="104x30"),
    pytest.param((80, 24), id="80x24", marks=pytest.mark.soak),
    pytest.param((60, 16), id="60x16", marks=pytest.mark.soak),
]


def screen(version: str = "v7") -> ItemScreen:
    return ItemScreen("q17", "searchqa-20261121-7k2m", version)


@pytest.mark.parametrize("size", SIZES)
def test_an_item_looks_as_it_should(shot, size):
    assert shot(screen(), size=size)


def test_missing_evidence_looks_as_it_should(shot):
    assert shot(screen("v8"), size=(104, 30), unicode=False)


def test_question_outcome_and_both_trajectories_are_told(play):
    async def scenario(_app, press):
        text = await press()
        assert "first solved by v7 · 1 of 7 versions solve it" in text
        assert "hard 1.0000  soft 1.0000  correct: [red]1,063 ft[/red]" in text
        assert "v7 ✓ 1,063 ft" in text
        assert "v6 (base) (×) 324 m" in text  # noqa: RUF001 - the sign of the screens

    play(screen(), scenario)


def test_markup_and_escapes_of_models_are_text(play):
    async def scenario(_app, press):
        text = await press()
        assert text.count("How tall is the [b]tower[/b] in feet?^[[2J") == 3
        assert "[bold]1,063 ft[/bold]" in text
        assert "\x1b" not in text

    play(screen(), scenario)


def test_left_and_right_move_through_the_attempts_and_stop_at_the_ends(play):
    async def scenario(app, press):
        strip = app.screen.query_one(VersionStrip)
        assert "▸v7" in await press()
        text = await press("left")
        assert "▸r16" in text
        assert "not measured on it" in text
        assert "there is no trajectory of q17 under r16" in text
        assert "hint: fetch the evidence" in text
        assert "v6 (base)" in text
        assert "(hard .0000  soft .5000)  inherited" in await press("h")
        await press(*["left"] * 9)
        assert strip.cursor == 0
        assert "v0 rests on no other version" in await press()
        text = await press(*["right"] * 12)
        assert strip.cursor == len(strip.attempts) - 1
        assert "failed to evaluate  the server was gone" in text
        assert "v7 (base)" in text

    play(screen(), scenario)


def test_without_a_version_the_newest_one_is_shown(play):
    async def scenario(app, press):
        await press()
        assert app.screen.version == "v8"

    play(screen(""), scenario)


def test_tab_goes_to_the_other_trajectory_and_a_search_looks_there(play):
    async def scenario(app, press):
        base, chosen = app.screen.query(TrajectoryView)
        assert app.focused is chosen
        await press("tab")
        assert app.focused is base
        await press("slash", *"324", "enter")
        assert app.focused is base
        assert (len(base.hits), len(chosen.hits)) == (3, 0)
        await press("n", "n")
        assert base.hit == 2
        await press("slash", "escape", "escape")
        assert not isinstance(app.screen, ItemScreen)

    play(screen(), scenario)


def test_reading_again_keeps_the_place_in_a_trajectory(play):
    async def scenario(app, press):
        view = app.screen.query(TrajectoryView).last()
        await press("j", "j", "R")
        assert view.scroll_offset.y == 2
        await press("left", "right")
        assert view.scroll_offset.y == 0, "another one is read from its beginning"

    play(screen(), scenario, size=(60, 16))


def test_trajectories_scroll_on_a_small_screen(play):
    async def scenario(app, press):
        view = app.screen.query(TrajectoryView).last()
        await press("j", "j", "k")
        assert view.scroll_offset.y == 1
        await press("G")
        assert view.scroll_offset.y == view.count - view.size.height
        await press("g")
        assert view.scroll_offset.y == 0

    play(screen(), scenario, size=(60, 16))


def test_what_can_be_copied_is_what_models_wrote(play):
    async def scenario(app, press):
        await press("y", "a")
        assert app.clipboard == "1,063 ft"
        await press("y", "escape")
        assert isinstance(app.screen, ItemScreen)

    play(screen(), scenario)


def test_an_unknown_item_is_told_with_its_hint(play, monkeypatch):
    def unknown(*_, **__):
        raise NotFoundError("run x has no selection item 'q99'", hint="did you mean q17?")

    monkeypatch.setattr("skillgit.tui.screens.item.ITEM_STORY", replace(ITEM_STORY, run=unknown))

    async def scenario(_app, press):
        text = await press("left", "right", "y")
        assert "run x has no selection item 'q99'" in text
        assert "hint: did you mean q17?" in text

    play(screen(), scenario)


def test_the_strip_shows_as_many_on_both_sides_as_fit():
    assert _window([5] * 9, 4, 100) == (0, 9)
    assert _window([5] * 9, 4, 15) == (3, 6)
    assert _window([5] * 9, 0, 15) == (0, 3)
    assert _window([5] * 9, 8, 15) == (6, 9)
    assert _window([50], 0, 15) == (0, 1)
