from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from program import git
from sample_run import RUN

from skillgit.tui.commands import Ran
from skillgit.tui.screens.dialogs import AskScreen, ChoiceScreen, CommandLogScreen, NameScreen
from skillgit.tui.screens.history import HistoryScreen
from skillgit.tui.widgets.painted_lines import Paragraphs
from skillgit.verbs.command_line import question_of


def asked(app) -> str:
    assert isinstance(app.screen, AskScreen)
    return str(app.screen.query_one("#command").content).removeprefix("$ ")


def log(app) -> str:
    assert isinstance(app.screen, CommandLogScreen)
    return "\n".join("".join(part.text for part in line) for line in app.screen.query_one(Paragraphs).lines)


def told(app) -> list[str]:
    return [note.message for note in app._notifications]


async def to_version(app, pilot, press, version: int) -> None:
    await press(pilot, "g")
    while app.screen.current.version != version:
        await press(pilot, "j")


def test_what_writes_anything_shows_its_command_and_asks(visit, press):
    commands = [
        (["E", "enter"], f"skillgit export {RUN}/v1 {RUN}-v1.skill"),
        (["E", *"out", "enter"], f"skillgit export {RUN}/v1 out"),
        (["A", "4"], f"skillgit install {RUN}/v1 --to codex --scope project"),
        (["A", "j", "enter"], f"skillgit install {RUN}/v1 --to claude --scope project"),
        (["C", *"too long", "enter"], f"skillgit note {RUN}/v1 'too long'"),
        (["C", *"-x", "enter"], f"skillgit note -- {RUN}/v1 -x"),
        (["H"], f"skillgit report {RUN} --output {RUN}.html"),
    ]

    async def scenario(app, pilot):
        await to_version(app, pilot, press, 1)
        for keys, command in commands:
            await press(pilot, *keys)
            assert asked(app) == command
            await press(pilot, "n")
            assert app.ran == []

    visit(scenario)


def test_a_question_that_is_not_answered_runs_nothing(visit, press):
    async def scenario(app, pilot):
        for key in ("E", "A", "C"):
            await press(pilot, key)
            assert isinstance(app.screen, NameScreen | ChoiceScreen)
            await press(pilot, "escape")
            assert isinstance(app.screen, HistoryScreen)
        await press(pilot, "C", "enter")
        assert isinstance(app.screen, HistoryScreen), "an empty note is none"
        assert app.ran == []

    visit(scenario)


def test_without_a_remote_pushing_tells_what_makes_one(visit, press):
    async def scenario(app, pilot):
        await press(pilot, "P")
        assert told(app) == ["there are no remotes yet\nhint: git remote add origin URL"]

    visit(scenario)


def test_one_remote_is_named_and_of_several_one_is_chosen(visit, press, sample):
    git("remote", "add", "origin", "https://example.org/[b]a", cwd=sample.workdir)

    async def scenario(app, pilot):
        await press(pilot, "P")
        assert asked(app) == "skillgit push origin"
        await press(pilot, "n")
        await asyncio.to_thread(git, "remote", "add", "team", "https://example.org/b", cwd=sample.workdir)
        await press(pilot, "p")
        assert isinstance(app.screen, ChoiceScreen)
        await press(pilot, "2")
        assert asked(app) == "skillgit pull team"
        await press(pilot, "n", "p")
        await press(pilot, "escape")
        assert isinstance(app.screen, HistoryScreen)

    visit(scenario)


def test_a_push_runs_beside_the_screen_and_a_refusal_is_told_with_its_hint(visit, press, sample, tmp_path):
    there = tmp_path / "there.git"
    git("init", "--bare", "-q", str(there), cwd=tmp_path)
    git("remote", "add", "origin", str(there), cwd=sample.workdir)

    async def run(app, pilot, *keys):
        for key in keys:
            await press(pilot, key)
        await app.workers.wait_for_complete()
        await press(pilot)

    async def scenario(app, pilot):
        await run(app, pilot, "P", "y")
        assert "$ skillgit push origin" in log(app)
        assert f"run/{RUN}" in git("branch", "--list", "run/*", cwd=there).out
        await press(pilot, "q")
        await asyncio.to_thread(git, "remote", "set-url", "origin", str(tmp_path / "gone"), cwd=sample.workdir)
        await run(app, pilot, "p", "y")
        assert app.ran[-1].code == 5
        assert "hint: " in log(app)
        assert told(app)[-1].startswith("skillgit: ")
        assert "\nhint: " in told(app)[-1]

    visit(scenario)


def test_an_export_lies_where_it_was_asked_for(visit, press, sample):
    async def scenario(app, pilot):
        await to_version(app, pilot, press, 1)
        await press(pilot, "E", *"out.skill", "enter", "y")
        await app.workers.wait_for_complete()
        assert app.ran[0].code == 0, app.ran[0].output
        assert (sample.workdir / "out.skill").read_bytes()[:2] == b"PK"

    visit(scenario)


def test_the_log_counts_the_seconds_of_what_runs():
    began = datetime(2026, 11, 21, 12, tzinfo=UTC)
    ran = Ran(argv=("eval", "v1"), began=began)
    assert ran.state(began.replace(second=41)) == "runs, 41 s"
    assert Ran(argv=("eval", "v1"), code=5).state(began) == "exit 5"
    assert Ran(argv=("eval", "v1"), code=0).state(began) == ""


def test_of_what_failed_the_error_is_told_wherever_it_stands():
    ran = Ran(argv=("push",), output=["run/a  rejected", "skillgit: 1 ref was refused", "hint: skillgit pull"], code=4)
    assert ran.last == "skillgit: 1 ref was refused\nhint: skillgit pull"
    assert Ran(argv=("x",), output=["", "no words"], code=70).last == "no words"


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["tasks", "draft", "skill", "--limit", "20"], "money"),
        (["tasks", "draft", "skill", "-n"], ""),
        (["cherry-pick", "--rejected", "--limit", "3"], "money"),
        (["push", "-n"], ""),
        (["push"], "another repository"),
        (["export", "v1", "x"], "files"),
        (["lint"], ""),
    ],
)
def test_the_question_says_what_a_command_may_change(argv, word):
    why, _ = question_of(argv)
    assert (word in why) if word else not why
