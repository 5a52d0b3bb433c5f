"""Whoever cannot see all colours, has no mouse, no keyboard to speak of or no Unicode sees and reaches everything."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from cli_sample import COST
from sample_run import RUN
from soaking import sampled, soak
from textual.color import Color
from textual.css.stylesheet import Stylesheet
from textual.filter import Monochrome
from textual.screen import ModalScreen

from skillgit.app.workspace.live import LiveLook, LiveProgress, RunLimits, StageCount, Standing
from skillgit.domain.outcomes import Failing
from skillgit.tui import theme
from skillgit.tui.screens.compare import CompareScreen
from skillgit.tui.screens.dialogs import AskScreen
from skillgit.tui.screens.event import EventScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.screens.live import LiveScreen
from skillgit.view.surface import ASCII, UNICODE, Glyphs, Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.dom import DOMNode

    from skillgit.tui.app import SkillgitApp

READABLE = 4.5
"""Contrast of text, as WCAG 2.1 asks for at level AA (success criterion 1.4.3)."""
BOXES = range(0x2500, 0x25A0)
"""Lines, corners and blocks, which frame text and fill bars and are none themselves."""
RUNNING = LiveLook(
    run=RUN,
    standing=Standing.RUNNING,
    pid=4127,
    snapshot=LiveProgress(
        run=RUN,
        pid=4127,
        command="skillgit train demo",
        limits=RunLimits(calls=500, tokens=2_000_000, usd=0.9),
        seconds=1_700.0,
        epoch=1,
        epochs=2,
        step=3,
        steps=6,
        budget=4,
        stage="rollout",
        done=3,
        total=4,
        stages=(StageCount(stage="rollout", done=3, total=4),),
        score=0.7,
        best=0.8,
        spent=COST.whole,
        failing=(Failing(task_type="units", reason="expected #", example="expected 3", items=("q01", "q02"), count=2),),
        failed=2,
        rolled=4,
        looked_at="rollout",
        remarks=("5 steps in a row brought nothing: worse",),
    ),
)


async def _compare(app, _pilot) -> None:
    await app.push_screen(CompareScreen("v0", "v3"))


async def _item(app, _pilot) -> None:
    await app.push_screen(ItemScreen("q01", RUN, "v3"))


async def _event(app, _pilot) -> None:
    await app.push_screen(EventScreen(app.screen.events.event_at(2)))


async def _live(app, _pilot) -> None:
    screen = LiveScreen(RUN, last=RUN)
    screen.look_again = lambda: None
    await app.push_screen(screen)
    screen._show(RUNNING)


async def _idle(app, _pilot) -> None:
    await app.push_screen(LiveScreen(last=RUN))


async def _ask(app, _pilot) -> None:
    await app.push_screen(AskScreen("skillgit checkout v1", "It changes files in the work tree."))


def _by(*keys: str):
    async def press(_app, pilot) -> None:
        await pilot.press(*keys)

    return press


SCREENS = {
    "history": _by(),
    "history, a rejected candidate": _by("j", "j"),
    "history, the detail": _by("0"),
    "history, edits": _by("right_square_bracket", "0"),
    "history, items": _by("right_square_bracket", "right_square_bracket", "0", "j"),
    "history, the message": _by("left_square_bracket", "0"),
    "history, the scores": _by("3"),
    "history, a filter": _by("slash", *"unit"),
    "history, a wrong filter": _by("slash", *"step:x"),
    "compare": _compare,
    "item": _item,
    "event": _event,
    "live": _live,
    "live, nobody trains": _idle,
    "ask": _ask,
    "copy": _by("y"),
    "prompt": _by("colon", *"chec"),
    "help": _by("question_mark"),
    "commands": _by("at"),
}
ROUND = 6
LARGE = ["history", "compare", "item", "event", "live", "ask", "prompt"]


def texts(app: SkillgitApp) -> Iterator[tuple[str, Color, Color, bool]]:
    """Yield every text on the screen with its colours, and whether it is bold."""
    lines, screen = app.screen._compositor.render_strips(), app.screen
    if isinstance(screen, ModalScreen):  # what is below it is dimmed, since it takes no keys
        top = screen.focused or screen
        box = max(
            (node.region for node in top.ancestors_with_self if node is not screen and node in screen.walk_children()),
            key=lambda one: one.area,
        )
        lines = [line.crop(box.x, box.right) for line in lines[box.y : box.bottom]]
    for strip in lines:
        for segment in strip:
            style = segment.style
            words = "".join(sign for sign in segment.text if ord(sign) not in BOXES).strip()
            if words and style is not None and style.color is not None and style.bgcolor is not None:
                front, back = (Color.from_rich_color(one) for one in (style.color, style.bgcolor))
                yield words, *((back, front) if style.reverse else (front, back)), bool(style.bold)


def luminance(color: Color) -> float:
    """Return the relative luminance as WCAG 2.1 defines it."""
    parts = [part / 255 for part in color.rgb]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio as WCAG 2.1 defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_counted_as_the_standard_says():
    assert contrast(Color.parse("#000000"), Color.parse("#ffffff")) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), Color.parse("#ffffff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("wanted", [theme.DARK.name, soak(theme.LIGHT.name)])
def test_every_text_can_be_read_in_both_themes(visit, press, wanted):
    async def scenario(app, pilot):
        app.theme = wanted
        await press(pilot)
        first, faint = app.screen, {}
        for name, go in SCREENS.items():
            await go(app, pilot)
            await press(pilot)
            for text, front, back, _ in texts(app):
                if contrast(front, back) < READABLE:
                    faint[front.hex, back.hex] = (round(contrast(front, back), 2), name, text)
            while app.screen is not first:
                await app.pop_screen()
            await press(pilot, "escape", "escape", "g")
        assert faint == {}

    visit(scenario)


@pytest.mark.soak
def test_a_terminal_without_unicode_gets_none(visit, press):
    async def scenario(app, pilot):
        first, foreign = app.screen, {}
        for name, go in SCREENS.items():
            await go(app, pilot)
            await press(pilot)
            shown = "".join(segment.text for strip in app.screen._compositor.render_strips() for segment in strip)
            if not shown.isascii():
                foreign[name] = "".join(sorted({sign for sign in shown if not sign.isascii()}))
            while app.screen is not first:
                await app.pop_screen()
            await press(pilot, "escape", "escape", "g")
        assert foreign == {}

    visit(scenario, unicode=False)


@pytest.mark.parametrize("name", sampled(LARGE, 3))
def test_tab_and_mouse_reach_everything_that_takes_keys(visit, press, name):
    async def scenario(app, pilot):
        await SCREENS[name](app, pilot)
        await press(pilot)
        wanted = [widget for widget in app.screen.focus_chain if widget.region.area]
        assert wanted, "something has the keys"
        for widget in wanted:
            await pilot.click(widget)
            await press(pilot)
            if not widget.is_attached:  # a button does what it says at once
                return
            assert app.focused is widget, f"a click on {widget.id}"
        assert {widget.id for widget in wanted} <= set(await tabbed(app, press, pilot))

    visit(scenario)


async def tabbed(app, press, pilot) -> list[str | None]:
    """Press tab until it has surely gone round, and return what had the keys."""
    found: list[str | None] = []
    for _ in range(ROUND):
        await press(pilot, "tab")
        found.append(app.focused.id)
    return found


def test_both_buttons_of_a_question_are_reached_by_tab(visit, press):
    async def scenario(app, pilot):
        await _ask(app, pilot)
        assert set(await tabbed(app, press, pilot)) == {"yes", "no"}

    visit(scenario)


@pytest.mark.parametrize("wanted", [theme.DARK, theme.LIGHT], ids=lambda one: one.name)
def test_styles_are_understood_whole(visit, wanted):
    async def scenario(app, _pilot):
        sheet = Stylesheet(variables={**app.get_css_variables(), **wanted.to_color_system().generate()})
        sheet.read_all(app.css_path)
        for node in _kinds(app):
            for where, css, specificity, scope in node._get_default_css():
                sheet.add_source(css, read_from=where, is_default_css=True, tie_breaker=specificity, scope=scope)
        sheet.parse()
        assert [error for rule in sheet.rules for error in rule.errors] == []

    visit(scenario)


def _kinds(app: SkillgitApp) -> Iterator[DOMNode]:
    yield app
    for screen in (CompareScreen("v0", "v3"), ItemScreen("q01", RUN), LiveScreen(), *app.screen_stack):
        yield screen
        yield from screen.walk_children()


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_what_became_of_an_event_is_told_by_its_sign_alone(glyphs):
    kinds = ("best", "accepted", "rejected", "slow", "skipped", "reverted", "edited", "running")
    assert len({getattr(glyphs, kind) for kind in kinds}) == len(kinds)
    assert {field.name for field in fields(Glyphs)} >= set(kinds)


def test_without_colours_the_chosen_row_and_the_open_tab_still_stand_out(visit, press, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(app, pilot):
        await press(pilot, "j")
        assert any(isinstance(one, Monochrome) for one in app.get_line_filters())
        events = app.screen.events
        chosen, other = (events.render_line(place) for place in (1, 2))
        backs = {next(iter(strip)).style.bgcolor.triplet for strip in (chosen, other)}
        greys = {
            Monochrome().apply(list(strip), Color.parse("#000000"))[0].style.bgcolor.triplet
            for strip in (chosen, other)
        }
        assert len(backs) == len(greys) == 2
        assert all(segment.style.bold for segment in chosen if segment.text.strip())
        assert app.facts.glyphs.running + "Diff" in app.screen.query_one("#tabs").text

    visit(scenario)


@pytest.mark.parametrize("wanted", [theme.DARK.name, theme.LIGHT.name])
def test_styles_that_mean_different_things_do_not_look_alike(wanted):
    apart = [Style.BEST, Style.REJECTED, Style.SLOW, Style.SKIPPED, Style.REVERTED, Style.EDITED, Style.RUNNING]
    assert len({theme.paint(style, wanted).color.triplet for style in apart}) == len(apart)
