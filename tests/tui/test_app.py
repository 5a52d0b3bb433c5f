from __future__ import annotations

import asyncio
import json
import re
import sys

import pytest
from sample_run import RUN, write_run

from skillgit.app.workspace.command_journal import commands as commands_of
from skillgit.app.workspace.command_journal import start_command
from skillgit.errors import UsageError
from skillgit.tui import commands, keymap, theme
from skillgit.tui.commands import Ran
from skillgit.tui.screens.dialogs import AskScreen, CommandLogScreen, HelpScreen, PromptScreen
from skillgit.tui.screens.history import HistoryScreen
from skillgit.tui.widgets.painted_lines import Paragraphs
from skillgit.verbs.command_line import question_of


@pytest.fixture
def instead(monkeypatch):
    """Let commands succeed without a process; the answer collects them."""
    ran: list[tuple[str, ...]] = []

    async def run(_context, one, told):
        ran.append(one.argv)
        one.output.append("done")
        told()
        one.code = 0

    monkeypatch.setattr(commands, "run", run)
    return ran


def palette(app) -> set[str]:
    return {command.help for command in app.get_system_commands(app.screen)}


def text(screen) -> str:
    lines = screen.query_one(Paragraphs)
    return "\n".join("".join(part.text for part in line) for line in lines.lines)


def test_a_command_that_reads_runs_at_once_and_is_shown(visit, press, instead):
    async def scenario(app, pilot):
        await press(pilot, "colon", *"skillgit log -n 3", "enter")
        assert isinstance(app.screen, CommandLogScreen)
        assert instead == [("log", "-n", "3")]
        assert "$ skillgit log -n 3" in text(app.screen)
        assert "done" in text(app.screen)
        await press(pilot, "q")
        assert isinstance(app.screen, HistoryScreen)

    visit(scenario)


def test_a_command_that_changes_anything_is_asked_about(visit, press, instead):
    async def scenario(app, pilot):
        await press(pilot, "colon", *"checkout v1", "enter")
        assert isinstance(app.screen, AskScreen)
        await press(pilot, "n")
        assert instead == []
        await press(pilot, "space", "y")
        assert instead == [("checkout", str(app.screen.current.address))]
        await press(pilot, "at")
        assert "checkout" in text(app.screen)

    visit(scenario)


def test_the_prompt_knows_commands_and_refuses_itself(visit, press, instead):
    async def scenario(app, pilot):
        await press(pilot, "colon", *"chec")
        assert "checkout: Put a version" in str(app.screen.query_one("#told").content)
        await press(pilot, "escape", "colon", *"tui", "enter")
        assert isinstance(app.screen, PromptScreen)
        await press(pilot, "escape", "colon", *"log 'x", "enter")
        assert "quotation" in str(app.screen.query_one("#told").content)
        assert instead == []

    visit(scenario)


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        (["log"], False),
        (["checkout", "v1"], True),
        (["train", "demo"], True),
        (["train", "demo", "--dry-run"], False),
        (["fsck"], False),
        (["fsck", "--repair"], True),
        (["train", "--help"], False),
        (["whatever-comes"], False),
        (["help", "train"], False),
        (["-C", "elsewhere", "checkout", "v1"], True),
        (["--color=never", "push"], True),
    ],
)
def test_only_what_changes_nothing_goes_unasked(argv, asked):
    assert bool(question_of(argv)[0]) is asked


@pytest.mark.parametrize(
    ("argv", "plan"),
    [
        (["eval", "v1"], ("eval", "v1", "--dry-run", "--json")),
        (["revert", "--to", "v1", "--gate"], ("revert", "--to", "v1", "--gate", "--dry-run", "--json")),
        (["revert", "v1"], ("revert", "v1", "--dry-run", "--json")),
        (["revert", "--to", "v1"], ()),
        (["checkout", "v1"], ()),
    ],
)
def test_what_pays_is_planned_before_it_is_asked_about(argv, plan):
    assert question_of(argv)[1] == plan


def test_the_question_tells_the_plan(visit, press, monkeypatch):
    plan = json.dumps({"sentence": "at most 8 calls", "notes": ["a note"]}, indent=1)
    monkeypatch.setattr(
        commands, "command_line", lambda *_: (sys.executable, "-c", f"print('a warning')\nprint({plan!r})")
    )

    async def scenario(app, pilot):
        await press(pilot, "colon", *"eval v1", "enter")
        assert isinstance(app.screen, AskScreen)
        while not (shown := str(app.screen.query_one("#plan").content)):
            await pilot.pause(0.01)
        assert shown == "at most 8 calls\na note"
        await press(pilot, "n")

    visit(scenario)


def test_a_plan_that_cannot_be_made_says_why(context_of, sample):
    plan = commands.plan_text(context_of(sample.workdir), question_of(("eval", "v99"))[1])
    assert plan == f"skillgit: run {RUN} has no v99\nhint: it has v0 to v3"


def test_a_command_is_run_as_a_process_and_its_output_is_kept(context_of, sample):
    ran = Ran(argv=("rev-parse", "v0"))
    told: list[int] = []
    asyncio.run(commands.run(context_of(sample.workdir), ran, lambda: told.append(len(ran.output))))
    assert (ran.code, len(ran.output), told) == (0, 1, [1])
    assert len(ran.last) == 40


def test_a_command_that_fails_tells_its_first_line(context_of, sample):
    ran = Ran(argv=("show", "v99"))
    asyncio.run(commands.run(context_of(sample.workdir), ran, lambda: None))
    assert ran.code == 3
    assert ran.last.startswith("skillgit: ")


def test_a_command_ends_with_who_waits_for_it(context_of, sample, monkeypatch):
    monkeypatch.setattr(commands, "command_line", lambda *_: (sys.executable, "-c", "import time; time.sleep(600)"))

    async def cancelled():
        ran = Ran(argv=("log",))
        task = asyncio.create_task(commands.run(context_of(sample.workdir), ran, lambda: None))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ran.code is not None

    asyncio.run(cancelled())


def test_what_changes_anything_is_in_the_journal_and_what_others_ran_in_the_log(visit, press, context_of, sample):
    context = context_of(sample.workdir)
    ran = Ran(argv=("fork", "v99"), changes=True)
    asyncio.run(commands.run(context, ran, lambda: None))
    start_command(context, ["note", "v98", "a text"], by="Ada").wait()
    own, others = commands_of(context)[::-1]
    assert (own, ran.code, ran.output) == (ran.record, 3, own.text().splitlines())

    async def scenario(app, pilot):
        await press(pilot, "at")
        while len(app.ran) < 2 or any(entry.code is None for entry in app.ran):
            await pilot.pause(0.01)
        log = text(app.screen)
        assert log.index("$ skillgit fork v99") < log.index("$ skillgit note v98 'a text'   Ada, exit 3")
        assert others.text().splitlines()[0] in log

    visit(scenario)


def test_help_lists_the_focused_keys_first_and_what_users_bound(visit, press, sample):
    sample.set_config("skillgit.tui.keymap.history.mark", "ctrl+k")

    async def scenario(app, pilot):
        await press(pilot, "ctrl+k")
        assert app.screen.events.mark, "the user's key works"
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        told = text(app.screen)
        assert told.index("list.down") < told.index("history.mark") < told.index("app.quit")
        assert next(line for line in told.splitlines() if "history.mark" in line).split()[0] == "^k"
        assert "event:" in told
        for name, key in keymap.BY_ID.items():
            assert name not in told or re.search(rf"{re.escape(key.label)}  +{name}\b", told), name
        await press(pilot, "escape")
        assert isinstance(app.screen, HistoryScreen)

    visit(scenario)


def test_every_key_of_the_history_is_reached_by_the_palette(visit, press):
    async def scenario(app, pilot):
        for key in keymap.at("app", "history", "list", "tabs", "diff"):
            assert key.id == "app.palette" or key.id in palette(app), key.id
        found = palette(app)
        assert {key.id for key in keymap.at("app", "history")} - found == {"app.palette"}
        await press(pilot, "ctrl+p", *"mark for", "enter", "enter")
        assert app.screen.events.mark

    visit(scenario)


def test_the_theme_changes_by_key_and_by_configuration(visit, press, sample):
    sample.set_config("skillgit.tui.theme", "light")

    async def scenario(app, pilot):
        assert app.theme == theme.LIGHT.name
        await press(pilot, "ctrl+t")
        assert app.theme == theme.DARK.name

    visit(scenario)


def test_a_ref_that_moves_is_seen(visit, sample, press):
    async def scenario(app, pilot):
        app._look()
        await press(pilot)
        before = app.screen.runs.count
        await asyncio.to_thread(write_run, sample, "second", "skills/second", events=2)
        app._look()
        while app.screen.runs.count == before:
            await pilot.pause(0.01)
        assert [run.name for run in app.screen.runs.all] == [RUN, "second"] or app.screen.runs.count == 2

    visit(scenario)


def test_nothing_is_handed_to_an_app_that_has_ended(visit):
    seen, taken = [], []

    async def scenario(app, pilot):
        await pilot.pause()
        app._hand_on(taken.append, "in time")
        seen.append(app)

    visit(scenario)
    seen[0]._hand_on(taken.append, "too late")
    assert taken == ["in time"]


def test_an_error_is_told_with_its_hint(visit, press):
    def wrong(_context):
        raise UsageError("that [b]cannot[/b] be", hint="do this")

    async def scenario(app, pilot):
        app.read(wrong, then=lambda _: None)
        await press(pilot)
        told = [note.message for note in app._notifications]
        assert told == ["that [b]cannot[/b] be\nhint: do this"]

    visit(scenario)


def test_of_reads_of_one_group_only_the_newest_is_shown(visit, press):
    got: list[int] = []

    async def scenario(app, pilot):
        for number in range(5):
            app.read(lambda _context, n: n, number, then=got.append, group="one")
        await press(pilot)
        assert got[-1] == 4

    visit(scenario)


def test_refreshing_reads_again(visit, press, sample):
    async def scenario(app, pilot):
        await asyncio.to_thread(write_run, sample, "second", "skills/second", events=2)
        await press(pilot, "R")
        assert app.screen.runs.count == 2

    visit(scenario)
