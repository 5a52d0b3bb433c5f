from __future__ import annotations

from dataclasses import replace

import diff_sample
import pytest

from skillgit.errors import NotFoundError
from skillgit.tui.screens.compare import CompareScreen, ItemsView
from skillgit.tui.screens.dialogs import CopyScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.lines import FindBar
from skillgit.verbs.diff import ITEM_DIFF
from skillgit.verbs.verb import Answer

SIZES = [
    pytest.param((104, 30), id="104x30"),
    pytest.param((80, 24), id="80x24", marks=pytest.mark.soak),
    pytest.param((60, 16), id="60x16", marks=pytest.mark.soak),
]


def screen() -> CompareScreen:
    return CompareScreen("v6", "v7")


@pytest.mark.parametrize("size", SIZES)
def test_the_text_looks_as_it_should(shot, size):
    assert shot(screen(), size=size)


@pytest.mark.parametrize("size", SIZES)
def test_the_rules_look_as_they_should(shot, size):
    assert shot(screen(), size=size, press=("tab",))


@pytest.mark.parametrize("size", SIZES)
def test_the_items_look_as_they_should(shot, size):
    assert shot(screen(), size=size, press=("tab", "tab", "j"))


def test_two_columns_look_as_they_should(shot):
    assert shot(screen(), size=(104, 30), press=("S",))


def test_light_colours_and_a_terminal_without_all_signs_look_as_they_should(shot):
    assert shot(screen(), size=(104, 30), press=("ctrl+t",), unicode=False)


def test_both_sides_their_scores_and_the_sums_are_told(play):
    async def scenario(_app, press):
        text = await press()
        assert "v6 → v7" in text
        assert "hard .7000 → .7250 (+.0250)" in text
        assert "6 items" in text
        assert "rules: 2 added · 2 removed · 1 changed · 1 moved · 12 kept" in text
        assert "2 fixed (q17 q22) · 1 broken (q03) · 1 stable pass · 1 stable fail · 1 missing" in text

    play(screen(), scenario)


@pytest.mark.parametrize("sample", [diff_sample.OTHER_ITEMS, diff_sample.OTHER_SEED_ITEMS, diff_sample.ITEMS])
def test_what_differs_besides_the_text_stands_above_the_scores(play, monkeypatch, sample):
    verb = replace(ITEM_DIFF, run=lambda *_: Answer(result=sample))
    monkeypatch.setattr("skillgit.tui.screens.compare.ITEM_DIFF", verb)

    async def scenario(_app, press):
        text = await press("tab", "tab")
        first = text.splitlines()[0]
        assert first.strip() == (f"! {sample.differs[0].sentence}" if sample.differs else first.strip())
        assert first.startswith(" ! ") == bool(sample.differs)
        tested = sample.p is not None
        assert ("2 fixed" in text, "2 higher" in text) == (tested, not tested)
        assert ("sign test" in text, "no test: more than the text differs" in text) == (tested, not tested)

    play(screen(), scenario)


def test_a_narrow_screen_keeps_scores_and_sums(play):
    async def scenario(_app, press):
        text = await press()
        assert "v6 → v7   hard .7000 → .7250 (+.0250)" in text
        assert "2 fixed · 1 broken · 1 stable pass · 1 stable fail" in text

    play(screen(), scenario, size=(60, 16))


def test_tab_goes_round_the_views_and_shift_tab_goes_back(play):
    async def scenario(app, press):
        seen = []
        for key in ("tab", "tab", "tab", "shift+tab", "right_square_bracket", "left_square_bracket"):
            await press(key)
            seen.append(app.screen.view)
            assert app.focused.id == app.screen.view
        assert seen == ["rules", "items", "text", "items", "text", "items"]

    play(screen(), scenario)


def test_rules_stand_under_the_text_where_there_is_room(play):
    async def wide(_app, press):
        assert "step 17" in await press()

    async def narrow(_app, press):
        assert "step 17" not in await press()
        assert "step 17" in await press("tab")

    play(screen(), wide)
    play(screen(), narrow, size=(80, 24))


def test_swapping_asks_again_the_other_way_round(play):
    async def scenario(app, press):
        text = await press("s")
        assert (app.screen.a, app.screen.b) == ("v7", "v6")
        assert app.asked[-1] == ("v7", "v6", 3)
        assert "v7 → v6" in text or "v6 → v7" in text

    play(screen(), scenario)


def test_context_is_read_again_and_told(play):
    async def scenario(app, press):
        text = await press("left_curly_bracket")
        assert app.asked[-1] == ("v6", "v7", 1)
        assert "1 around" in text
        text = await press("right_curly_bracket", "right_curly_bracket")
        assert app.asked[-1] == ("v6", "v7", 4)
        assert "4 around" in text

    play(screen(), scenario)


def test_keys_of_the_text_work_from_the_screen(play):
    async def scenario(app, press):
        view = app.screen.query_one(DiffView)
        assert "lines · 3 around" in await press("W")
        assert not view.word
        assert "│" in await press("S")
        await press("left_curly_bracket", "left_curly_bracket")
        assert "hunk 2 of" in await press("J")
        assert "hunk 1 of" in await press("K")

    play(screen(), scenario)


def test_a_search_is_typed_found_and_gone_on_with(play):
    async def scenario(app, press):
        await press("slash", *"unit")
        assert app.focused is app.screen.query_one(FindBar)
        text = await press("enter")
        assert app.focused is app.screen.query_one(DiffView)
        assert "1 of 5  unit" in text
        assert "2 of 5  unit" in await press("n")
        assert "1 of 5  unit" in await press("N")
        assert "nothing found for  zzz" in await press("slash", *"zzz", "enter")
        await press("slash", "escape")
        assert app.screen.is_current
        assert not app.screen.query_one(FindBar).has_class("-open")
        assert "nothing found" not in await press("slash", "enter")

    play(screen(), scenario)


def test_an_item_is_opened_under_the_newer_version_and_left_again(play):
    async def scenario(app, press):
        compare = app.screen
        await press("enter")
        assert compare.view == "items"
        await press("j", "enter")
        assert isinstance(app.screen, ItemScreen)
        assert (app.screen.item, app.screen.run_name, app.screen.version) == ("q17", diff_sample.ITEMS.b.run, "v7")
        await press("escape")
        assert app.screen is compare
        await press("escape")
        assert not isinstance(app.screen, CompareScreen)

    play(screen(), scenario)


def test_below_the_items_there_is_nothing_to_open(play):
    async def scenario(app, press):
        await press("tab", "tab", "G", "enter")
        assert app.screen.query_one(ItemsView).item == ""
        assert isinstance(app.screen, CompareScreen)

    play(screen(), scenario)


def test_the_command_and_both_commits_can_be_copied(play):
    async def scenario(app, press):
        await press("y")
        assert isinstance(app.screen, CopyScreen)
        await press("c")
        assert app.clipboard == "skillgit diff v6 v7"
        await press("y", "b")
        assert app.clipboard == diff_sample.ITEMS.b.commit

    play(screen(), scenario)


def test_what_is_not_known_is_told_with_its_hint_and_the_rest_is_shown(play, monkeypatch):
    def unknown(*_):
        raise NotFoundError("the outcomes of v6 are not known here", hint="fetch the [evidence]\x1b[2J")

    monkeypatch.setattr("skillgit.tui.screens.compare.ITEM_DIFF", replace(ITEM_DIFF, run=unknown))

    async def scenario(_app, press):
        text = await press()
        assert "the outcomes of v6 are not known here" in text
        assert "Quote the row" in text
        text = await press("tab", "tab")
        assert "hint: fetch the [evidence]^[[2J" in text

    play(screen(), scenario)
