"""Keys never wait for git or the index: all of that is read in threads, and no more of it than a key needs."""

from __future__ import annotations

import threading

import pytest
from sample_run import RUN
from soaking import sampled

from skillgit.store.repo import Repo
from skillgit.tui import keymap
from skillgit.tui.app import SkillgitApp
from skillgit.tui.screens.compare import CompareScreen
from skillgit.tui.screens.event import EventScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.screens.live import LiveScreen
from skillgit.tui.screens.printed import PrintedScreen
from skillgit.tui.widgets.lines import KeyLine
from skillgit.tui.widgets.painted_lines import Paragraphs
from skillgit.verbs.verb import Verb

SESSION = (
    *("j", "k", "ctrl+d", "ctrl+u", "G", "g", "x", "x", "o", "o", "ctrl+g", "R"),
    *("right_square_bracket", "0", "j", "tab", "tab", "1", "j", "3", "2"),
    *("w", "j", "c", "tab", "tab", "S", "escape", "b", "escape", "slash", "u", "n", "enter", "slash", "escape"),
    *("e", "question_mark", "escape", "y", "escape", "plus", "underscore", "L", "escape"),
)


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """Collect what is read: the names of verbs and of other reads."""
    found: list[str] = []
    read = SkillgitApp.read

    def noted(app, function, *args, **kwargs):
        verb = getattr(function, "__self__", None)
        found.append(verb.name if isinstance(verb, Verb) else function.__name__)
        read(app, function, *args, **kwargs)

    monkeypatch.setattr(SkillgitApp, "read", noted)
    return found


def test_no_key_opens_a_repository_while_the_screen_waits(visit, press, monkeypatch):
    opened: list[threading.Thread] = []
    discover = Repo.discover

    def noted(path):
        opened.append(threading.current_thread())
        return discover(path)

    monkeypatch.setattr(Repo, "discover", staticmethod(noted))

    async def scenario(_app, pilot):
        await press(pilot, *SESSION)
        assert opened
        assert threading.main_thread() not in opened

    visit(scenario)


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (["j"], ["show"]),
        (["G"], ["read", "show"]),
        (["x"], ["page", "read", "show"]),
        (["right_square_bracket"], []),
        (["0", "1", "3", "2"], []),
        (["w"], []),
        (["ctrl+g"], []),
        (["plus", "underscore"], []),
        (["question_mark", "escape"], []),
        (["y", "escape"], []),
    ],
)
def test_a_key_reads_no_more_than_it_shows(visit, press, asked, keys, wanted):
    async def scenario(_app, pilot):
        asked.clear()
        await pilot.press(*keys)
        await press(pilot)
        assert asked == wanted

    visit(scenario)


def test_what_is_narrowed_reads_no_scores_again(visit, press, asked):
    async def scenario(_app, pilot):
        asked.clear()
        await press(pilot, "slash", *"un")
        assert set(asked) <= {"page", "show"}
        assert asked.count("page") == 2

    visit(scenario)


def test_the_line_of_keys_is_made_anew_only_for_other_keys(visit, press):
    async def scenario(app, pilot):
        line = app.screen.query_one(KeyLine)
        before = line.keys
        assert all(before)
        await press(pilot, "j", "j", "G", "g")
        assert line.keys is before
        await press(pilot, "slash")
        assert line.keys != before

    visit(scenario)


PLACES = {
    "compare": ("app", "compare", "tabs", "find"),
    "item": ("app", "item", "find"),
    "event": ("app", "event", "tabs", "find", "diff", "list"),
    "live": ("app", "live"),
}


@pytest.mark.parametrize("name", sampled(PLACES, 2))
def test_every_key_of_a_screen_is_in_its_palette_which_a_right_click_opens(visit, press, name):
    async def scenario(app, pilot):
        screens = {
            "compare": lambda: CompareScreen("v0", "v3"),
            "item": lambda: ItemScreen("q01", RUN, "v3"),
            "event": lambda: EventScreen(app.screen.events.event_at(2)),
            "live": lambda: LiveScreen(RUN, last=RUN),
        }
        await app.push_screen(screens[name]())
        await press(pilot)
        screen, keys = app.screen, keymap.at(*PLACES[name])
        listed = list(app.get_system_commands(screen))
        assert {key.id for key in keys} - {command.help for command in listed} == {"app.palette"}
        named = [name for command in listed for name in command.title.partition("  (")[2].removesuffix(")").split()]
        assert named.count("q") == 1, "a key is named where it does something else"
        await pilot.click(screen.focused, button=3)
        await press(pilot)
        assert app.screen is not screen
        assert type(app.screen).__name__ == "CommandPalette"

    visit(scenario)


@pytest.mark.parametrize("name", [*PLACES, "printed"])
def test_q_goes_back_from_every_screen_and_leaves_only_the_first_one(visit, press, name):
    async def scenario(app, pilot):
        screens = {
            "compare": lambda: CompareScreen("v0", "v3"),
            "item": lambda: ItemScreen("q01", RUN, "v3"),
            "event": lambda: EventScreen(app.screen.events.event_at(2)),
            "printed": lambda: PrintedScreen("Text", {"Text": ("blame", "v3")}),
            "live": lambda: LiveScreen(RUN, last=RUN),
        }
        history = app.screen
        await app.push_screen(screens[name]())
        await press(pilot, "question_mark")
        lines = app.screen.query_one(Paragraphs).lines
        written = ["".join(part.text for part in line).split() for line in lines]
        assert sum("q" in words[:2] for words in written) == 1, "help says of a key what it does here"
        await press(pilot, "escape", "q")
        assert app.screen is history
        assert not app._exit
        await pilot.press("q")
        assert app._exit

    visit(scenario)
