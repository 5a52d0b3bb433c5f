from __future__ import annotations

import asyncio

import pytest
from sample_run import write_run
from textual.events import Key
from textual.widgets import Input

from skillgit.store.repo import Repo
from skillgit.tui.screens.compare import CompareScreen
from skillgit.tui.screens.dialogs import AskScreen, CopyScreen, NameScreen
from skillgit.tui.screens.history import EventList, HistoryScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.lines import FilterBar, FindBar, KeyLine

RUN = "demo-20261121-abcd"


def lines(widget) -> list[str]:
    return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]


def shown(app) -> str:
    return "\n".join(lines(app.screen.query_one(EventList)))


def command_asked(app) -> str:
    assert isinstance(app.screen, AskScreen)
    return app.screen.command


async def to(pilot, press, label: str) -> None:
    """Move the cursor of the history to the event with a label."""
    events = pilot.app.screen.query_one(EventList)
    place = next(n for n in range(events.count) if f" {label} " in f"{lines(events)[n - events.scroll_offset.y]} ")
    await press(pilot, *["j"] * (place - events.cursor))


def test_it_opens_with_the_newest_event_in_full(visit):
    async def scenario(app, _pilot):
        assert isinstance(app.screen, HistoryScreen)
        history = shown(app)
        for label in ("v0", "v1", "v2", "v3", "r2", "r5", "s3"):
            assert f" {label} " in history
        assert app.screen.focused is app.screen.events
        assert app.screen.detail.row.kind == "run-finished"
        assert RUN[:20] in lines(app.screen.runs)[0]

    visit(scenario)


def test_lists_are_walked_by_letters_and_arrows(visit, press):
    async def scenario(app, pilot):
        events = app.screen.events
        last = events.count - 1
        for keys, place in ((("j",), 1), (("down",), 2), (("k",), 1), (("up",), 0), (("k",), 0)):
            await press(pilot, *keys)
            assert events.cursor == place
        for keys, place in ((("G",), last), (("g",), 0), ((">",), last), (("<",), 0), (("end",), last), (("home",), 0)):
            await press(pilot, *keys)
            assert events.cursor == place
        await press(pilot, "ctrl+d")
        half = events.cursor
        assert half > 1
        await press(pilot, "ctrl+u")
        assert events.cursor == 0

    visit(scenario)


def test_panes_have_numbers_and_an_order(visit, press):
    async def scenario(app, pilot):
        screen = app.screen
        for key, pane in (("1", "runs"), ("2", "events"), ("3", "scores"), ("0", "detail")):
            await press(pilot, key)
            assert screen.at == pane
        for pane in ("runs", "events", "scores", "detail"):
            await press(pilot, "tab")
            assert screen.at == pane
        await press(pilot, "shift+tab")
        assert screen.at == "scores"

    visit(scenario)


def test_a_pane_can_have_the_whole_screen(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "+")
        assert app.screen.events.size.width > 90
        assert not app.screen.detail.display
        await press(pilot, "_")
        assert app.screen.detail.display
        await press(pilot, "+", "escape")
        assert app.screen.detail.display

    visit(scenario)


def test_tabs_show_difference_edits_items_traces_and_message(visit, press):
    async def scenario(app, pilot):
        detail = app.screen.detail
        await to(pilot, press, "v1")
        assert "SKILL.md" in "\n".join(lines(detail.view))
        said = []
        for _ in range(4):
            await press(pilot, "]")
            said.append("\n".join(lines(detail.view)))
        edits, items, trace, message = said
        assert "support" in edits
        assert "fixed" in items
        assert "broken" in items
        assert trace.strip()
        assert "Skillgit-Event: accepted" in message or "accepted" in message
        await press(pilot, "[")
        assert detail.view.id == "trace"

    visit(scenario)


def test_opening_goes_to_the_detail_and_escape_back(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "enter")
        assert app.screen.at == "detail"
        await press(pilot, "escape")
        assert app.screen.at == "events"
        await press(pilot, "1", "enter")
        assert app.screen.at == "events"

    visit(scenario)


def test_evidence_has_a_key(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "e")
        assert app.screen.detail.view.id == "trace"
        assert app.screen.detail.view.has_focus

    visit(scenario)


def test_rejected_and_slow_can_be_hidden(visit, press):
    async def scenario(app, pilot):
        before = app.screen.events.count
        await press(pilot, "x")
        assert app.screen.events.count == before - 2
        assert " r2 " not in shown(app)
        await press(pilot, "x", "o")
        assert app.screen.events.count == before - 2
        await press(pilot, "o", "ctrl+g")
        assert app.screen.events.count == before
        assert not any(line.lstrip().startswith("│") for line in lines(app.screen.events))

    visit(scenario)


def test_the_filter_narrows_while_it_is_typed(visit, press):
    async def scenario(app, pilot):
        before = app.screen.events.count
        await press(pilot, "slash", *"step:2")
        assert app.screen.events.count == 1
        assert " r2 " in shown(app)
        await press(pilot, "enter")
        assert app.screen.events.has_focus
        await press(pilot, "escape")
        assert app.screen.events.count == before

    visit(scenario)


def test_a_filter_that_finds_nothing_says_so_and_a_wrong_one_too(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "slash", *"step:99")
        assert "no matching events" in shown(app)
        app.screen.query_one("#filter Input").value = "nonsense:1"
        await press(pilot)
        left = app.screen.query_one("#left")
        assert left.has_class("-wrong")
        assert "no token" in str(left.content)
        await press(pilot, "escape")
        assert app.screen.events.count

    visit(scenario)


def test_hits_of_a_filter_are_walked(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "slash", *"event:rej", "enter", "n")
        assert app.screen.events.cursor == 1
        await press(pilot, "N")
        assert app.screen.events.cursor == 0

    visit(scenario)


def test_the_text_of_the_detail_is_searched(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "v1")
        await press(pilot, "0", "slash", *"skill", "enter")
        view = app.screen.detail.view
        assert view.has_focus
        assert view.sought == "skill"
        assert view.hits
        await press(pilot, "n", "N")
        assert view.hit == 0

    visit(scenario)


def test_a_marked_event_is_compared_with_another_one(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "c")
        assert isinstance(app.screen, HistoryScreen), "nothing is marked yet"
        await to(pilot, press, "v3")
        await press(pilot, "w", "c")
        assert isinstance(app.screen, HistoryScreen), "an event is not compared with itself"
        await to(pilot, press, "v1")
        await press(pilot, "c")
        assert isinstance(app.screen, CompareScreen)
        assert (app.screen.a, app.screen.b) == (f"{RUN}/v1", f"{RUN}/v3"), "older to newer"
        await press(pilot, "escape", "w", "w")
        assert app.screen.events.mark == ""

    visit(scenario)


def offered(app) -> set[str]:
    return {binding.id for binding, _ in app.screen.query_one(KeyLine).keys[0]}


def test_an_event_is_compared_with_its_base(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "r2")
        await press(pilot, "b")
        assert isinstance(app.screen, CompareScreen)
        assert (app.screen.a, app.screen.b) == (f"{RUN}/v1", f"{RUN}/r2")
        await press(pilot, "escape")
        assert "history.compare_base" in offered(app)
        await press(pilot, "G", "b")
        assert isinstance(app.screen, HistoryScreen), "the seed rests on nothing"
        assert "history.compare_base" not in offered(app)
        assert "history.compare_best" in offered(app)

    visit(scenario)


def test_an_item_opens(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "v1")
        await press(pilot, "]", "]", "0", "j", "enter")
        assert isinstance(app.screen, ItemScreen)

    visit(scenario)


def test_what_changes_anything_asks_first_and_shows_the_command(visit, press):
    commands = {
        "space": f"skillgit checkout {RUN}/v1",
        "V": f"skillgit revert --to {RUN}/v1",
        "M": f"skillgit promote {RUN}/v1",
        "T": f"skillgit eval {RUN}/v1 --split test",
        "U": f"skillgit use {RUN}",
    }

    async def scenario(app, pilot):
        await to(pilot, press, "v1")
        for key, command in commands.items():
            await press(pilot, key)
            assert command_asked(app) == command
            await press(pilot, "escape")
            assert app.ran == []

    visit(scenario)


def test_a_fork_asks_for_a_name(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "v1")
        await press(pilot, "F")
        assert isinstance(app.screen, NameScreen)
        await press(pilot, *"mine", "enter")
        assert command_asked(app) == f"skillgit fork {RUN}/v1 mine"
        await press(pilot, "n", "F", "escape")
        assert isinstance(app.screen, HistoryScreen)

    visit(scenario)


def test_only_versions_can_be_promoted(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "r2")
        await press(pilot, "M", "F", "V")
        assert isinstance(app.screen, HistoryScreen)
        assert app.ran == []

    visit(scenario)


def test_the_copy_menu_copies(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "v1")
        await press(pilot, "y")
        assert isinstance(app.screen, CopyScreen)
        await press(pilot, "a")
        assert app.clipboard == f"{RUN}/v1"
        await press(pilot, "y", "j", "enter")
        assert app.clipboard == app.screen.current.commit
        await press(pilot, "y", "escape")
        assert isinstance(app.screen, HistoryScreen)

    visit(scenario)


def test_editor_and_pager_get_the_event(visit, press, monkeypatch):
    commands: list[list[str]] = []
    monkeypatch.setattr(HistoryScreen, "in_terminal", lambda _screen, command: commands.append(list(command)))

    async def scenario(_app, pilot):
        await to(pilot, press, "v1")
        await press(pilot, "l", "i")
        assert commands[0][-2:] == ["show", f"{RUN}/v1"]
        assert commands[1][0] == "vi"
        assert commands[1][-1].endswith("v1-SKILL.md")

    visit(scenario)


def test_keys_of_differences_reach_the_difference(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "v1")
        await press(pilot, "0")
        diff = app.screen.query_one(DiffView)
        await press(pilot, "S", "W", "}")
        assert (diff.side, diff.word) == (True, False)
        assert diff.context > 3
        await press(pilot, "J", "K", "{")
        assert diff.context == 3

    visit(scenario)


def test_the_mouse_chooses_opens_and_turns_tabs(visit, press):
    async def scenario(app, pilot):
        await pilot.click("#events", offset=(5, 3))
        await press(pilot)
        assert app.screen.events.cursor == 2
        await pilot.click("#events", offset=(5, 4), times=2)
        await press(pilot)
        assert app.screen.at == "detail"
        await pilot.click("#tabs", offset=(8, 0))
        assert app.screen.detail.view.id == "edits"

    visit(scenario)


def test_another_run_shows_its_own_history(visit, press, sample):
    write_run(sample, "short", "skills/short", events=2)

    async def scenario(app, pilot):
        assert app.screen.runs.count == 2
        first = app.screen.events.count
        await press(pilot, "1", "j")
        assert app.screen.events.count != first
        await press(pilot, "2", "slash", *"run:all")
        assert app.screen.events.count > max(first, 2)
        assert "short" in shown(app)

    visit(scenario)


def test_new_events_appear_and_the_cursor_stays(visit, press, sample):
    write_run(sample, "live", "skills/live", events=3)

    async def scenario(app, pilot):
        assert app.screen.runs.current.name == "live"
        await to(pilot, press, "v1")
        chosen = app.screen.current.commit
        write_more = asyncio.to_thread(grow, sample)
        await write_more
        app.reload()
        await press(pilot)
        assert app.screen.current.commit == chosen
        assert app.screen.events.count == 4
        await press(pilot, "g")
        assert app.screen.current.kind == "skipped"

    visit(scenario, run="live")


def grow(repo) -> None:
    from itertools import count  # noqa: PLC0415 - used here only

    from sample_run import clock_from, transitions  # noqa: PLC0415 - likewise

    from skillgit.store.event_writer import RunWriter  # noqa: PLC0415 - likewise

    one = transitions("live", "skills/live")[3]
    RunWriter(repo, "live", clock_from(count(3))).append(one.event, one.skill, one.evidence)


def test_no_runs_are_told_with_what_to_do(visit, tmp_path):
    async def scenario(app, pilot):
        assert "no runs yet" in shown(app)
        assert "hint: skillgit train" in shown(app)
        for key in ("j", "enter", "w", "c", "b", "space", "y", "i", "l", "e", "x"):
            await pilot.press(key)
        assert isinstance(app.screen, HistoryScreen)
        assert [binding.id for _, binding, _ in app.screen.query_one(KeyLine).placed()] == [
            *("drafts.open", "app.help", "command.prompt", "app.quit")
        ]

    visit(scenario, repo=Repo.init(tmp_path / "empty"))


def test_a_folder_without_repository_is_told(context_of, tmp_path):
    from skillgit.tui.app import SkillgitApp  # noqa: PLC0415 - used here only

    async def run():
        app = SkillgitApp(context_of(tmp_path), watch=False)
        async with app.run_test(size=(104, 30)) as pilot:
            while "reading" in shown(app):
                await pilot.pause(0.01)
            assert "not in a git repository" in " ".join(shown(app).split())

    asyncio.run(run())


def test_ascii_terminals_get_ascii(visit, press):
    async def scenario(app, pilot):
        await to(pilot, press, "r2")
        for widget in (app.screen.events, app.screen.runs, app.screen.detail.view):
            assert "\n".join(lines(widget)).isascii()

    visit(scenario, unicode=False)


@pytest.mark.parametrize("pane", ["2", "0"])
def test_keys_that_follow_at_once_are_typed_into_the_bar(visit, press, settled, pane):
    async def scenario(app, pilot):
        await press(pilot, pane)
        for key in ("slash", "u", "q", "slash", "x"):
            app.post_message(Key(key, "/" if key == "slash" else key))
        await settled(pilot)
        bar = app.screen.query_one(FilterBar).query_one(Input) if pane == "2" else app.screen.query_one(FindBar)
        assert bar.has_focus
        assert bar.value == "uq/x"

    visit(scenario)
