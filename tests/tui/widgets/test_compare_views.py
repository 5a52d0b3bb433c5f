from __future__ import annotations

from dataclasses import replace

import diff_sample
import pytest

from skillgit.app.history.diff.items import ItemChange
from skillgit.app.history.item import Attempt, ItemTrajectory
from skillgit.domain.trajectory import Turn
from skillgit.tui.screens.compare import ItemsView, RulesView
from skillgit.tui.screens.item import TrajectoryView
from skillgit.tui.widgets.painted_lines import AT_ONCE

HOSTILE = "[red]a[/red]\x1b[31m\x1b]52;c;AAAA\x07 \u202eb"
AS_TEXT = "[red]a[/red]^[[31m^[]52;c;AAAA^G <U+202E>b"
ATTEMPT = Attempt(name="v1", commit="a" * 40, version=1, title="", outcome=None, answer=HOSTILE, feedback="x\ny")


def trajectory(*contents: str) -> ItemTrajectory:
    turns = tuple(Turn(role="tool", content=content) for content in contents)
    return ItemTrajectory(run="r", item="q", attempt=ATTEMPT, turns=turns)


def test_a_rule_of_a_model_is_text(play):
    rules = replace(diff_sample.RULES, rows=(diff_sample.rule("changed", HOSTILE, before=HOSTILE),))

    async def scenario(app, pilot):
        app.widget.show(rules)
        await pilot.pause()
        text = " ".join(app.lines())
        assert text.count(AS_TEXT) == 2
        assert "\x1b" not in text

    play(RulesView(), scenario, size=(104, 12))


def test_an_item_of_a_stranger_is_text_and_opens_by_its_own_name(play):
    opened = []

    class Opening(ItemsView):
        def on_painted_lines_opened(self):
            opened.append(self.item)

    row = ItemChange(item=HOSTILE, task_type=HOSTILE, before=0.0, after=1.0, change="fixed")

    async def scenario(app, pilot):
        app.widget.show(replace(diff_sample.ITEMS, rows=(row,)))
        await pilot.press("enter")
        await pilot.pause()
        assert app.lines()[0].count(AS_TEXT) == 2
        assert opened == [HOSTILE]

    play(Opening(), scenario, size=(104, 12))


def test_a_click_chooses_an_item_and_a_second_one_opens_it(play):
    opened = []

    class Opening(ItemsView):
        def on_painted_lines_opened(self):
            opened.append(self.item)

    async def scenario(app, pilot):
        app.widget.show(diff_sample.ITEMS)
        await pilot.click(app.widget, offset=(3, 1))
        assert (app.widget.item, opened) == ("q17", [])
        await pilot.click(app.widget, offset=(3, 2), times=2)
        await pilot.pause()
        assert opened == ["q22"]

    play(Opening(), scenario)


def test_items_that_changed_stand_first(play):
    async def scenario(app, pilot):
        app.widget.show(diff_sample.ITEMS)
        await pilot.pause()
        assert [line.split()[1] for line in app.lines()[:6]] == [
            "broken",
            "fixed",
            "fixed",
            "missing",
            "stable",
            "stable",
        ]

    play(ItemsView(), scenario, size=(80, 20))


def test_a_turn_answer_and_feedback_of_a_model_are_text(play):
    async def scenario(app, pilot):
        app.widget.show(trajectory(HOSTILE, "second\r\nline"))
        await pilot.pause()
        assert app.lines()[:12] == [
            "1 tool",
            f"  {AS_TEXT}",
            "",
            "2 tool",
            "  second",
            "  line",
            "",
            "answer",
            f"  {AS_TEXT}",
            "feedback",
            "  x",
            "  y",
        ]

    play(TrajectoryView(), scenario, size=(80, 14))


@pytest.mark.parametrize(
    ("view", "facts"),
    [
        (RulesView, replace(diff_sample.RULES, rows=diff_sample.RULES.rows * AT_ONCE)),
        (ItemsView, replace(diff_sample.ITEMS, rows=diff_sample.ITEMS.rows * AT_ONCE)),
        (TrajectoryView, trajectory("word " * 30_000)),
    ],
)
def test_what_is_long_is_laid_out_beside_the_screen_and_can_be_searched(play, view, facts):
    async def scenario(app, pilot):
        app.widget.tell("reading")
        app.widget.show(facts)
        assert app.widget.count == 0
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.widget.count > AT_ONCE
        app.widget.seek("d")
        await pilot.press("N")
        assert app.widget.hit == len(app.widget.hits) - 1
        assert app.widget.scroll_offset.y > 0

    play(view(), scenario)


@pytest.mark.parametrize("width", [20, 60])
def test_an_error_is_told_in_the_width_that_there_is(play, width):
    async def scenario(app, pilot):
        app.widget.tell(f"one two three four five six {HOSTILE}", "seven eight nine ten eleven")
        await pilot.pause()
        lines = app.lines()
        assert all(len(line) <= width for line in lines)
        said = " ".join(" ".join(lines).split())
        assert "one two three four five six" in said
        assert "hint: seven eight nine ten eleven" in said
        assert "\x1b" not in said

    play(TrajectoryView(), scenario, size=(width, 12))
