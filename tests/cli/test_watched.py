from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillgit.app.train.requests import TrainRequest
from skillgit.app.workspace import command_journal
from skillgit.tui import start
from skillgit.tui.app import SkillgitApp
from skillgit.verbs.command_line import read_words

if TYPE_CHECKING:
    from skillgit.tui.screens.compare import CompareScreen


class Process:
    """A trainer that ends as a test says."""

    pid = 4127
    ends: int | None = 0
    began: tuple[str, ...] = ()

    def __init__(self, context, words, *, options) -> None:
        assert context.environ
        Process.began = (*options, *words)

    def now(self) -> Process:
        return self

    @property
    def code(self) -> int | None:
        return Process.ends

    def outputs(self) -> tuple[bytes, bytes]:
        return b"the report\n", b"skillgit: what went wrong\nhint: what helps\n"


@pytest.fixture
def ends(monkeypatch):
    """Let the trainer end with a code, and somebody look at it."""
    monkeypatch.setattr("skillgit.verbs.tui.has_terminal", lambda _: True)
    monkeypatch.setattr(command_journal, "start_command", Process)
    monkeypatch.setattr(start, "watch", lambda *_, **__: "demo-1")

    def set_code(code: int | None) -> None:
        monkeypatch.setattr(Process, "ends", code)

    return set_code


@pytest.mark.parametrize(("ended", "told"), [(0, 0), (20, 20), (5, 5), (130, 130), (137, 137)])
def test_what_the_trainer_said_and_its_code_reach_the_user(skillgit, ends, ended, told):
    ends(ended)
    found = skillgit("train", "demo", "--tui")
    assert found.code == told
    assert found.text == "the report\n"
    assert found.err == "skillgit: what went wrong\nhint: what helps\n"


def test_a_trainer_that_goes_on_is_named_with_what_watches_it(skillgit, ends):
    ends(None)
    found = skillgit("train", "demo", "--tui")
    assert (found.code, found.text) == (0, "")
    assert found.err.splitlines() == [
        "run demo-1 goes on as process 4127",
        "hint: skillgit tui demo-1, then L, watches it; K stops it after its step",
    ]


def test_the_trainer_gets_every_option_of_the_command(skillgit, ends):
    ends(0)
    skillgit("train", "demo", "--tui")
    assert Process.began == ("--color=never", "train", "demo", "--quiet")
    skillgit(
        *("--color=always", "train", "demo", "-o", "train.num_epochs=2", "--run", "mine", "--from", "v3", "--tui"),
        *(
            "--max-calls",
            "10",
            "--max-tokens",
            "1000",
            "--max-usd",
            "2.5",
            "-o",
            "train.placebo=3",
            "--json",
            "--exit-code",
        ),
    )
    assert (Process.began[0], Process.began[-1]) == ("--color=always", "--json")
    assert read_words(Process.began[1:])[1] == TrainRequest(
        config="demo",
        overrides=("train.num_epochs=2", "train.placebo=3"),
        run="mine",
        start="v3",
        max_calls=10,
        max_tokens=1000,
        max_usd=2.5,
        strict=True,
    )


@pytest.mark.parametrize(
    ("command", "instead"),
    [(("train", "demo", "--tui"), "skillgit train demo")],
)
def test_without_a_terminal_there_is_no_screen(skillgit, command, instead):
    found = skillgit(*command)
    assert (found.code, found.text) == (2, "")
    assert found.err == f"skillgit: {command[0]} --tui needs a terminal\nhint: {instead}\n"


def test_two_versions_are_compared_on_the_screen(skillgit, fake, monkeypatch):
    import diff_sample  # noqa: PLC0415 - only this test compares

    opened: list[CompareScreen] = []
    monkeypatch.setattr(SkillgitApp, "run", lambda app, **_: opened.append(app._opening()))
    monkeypatch.setattr("skillgit.verbs.tui.has_terminal", lambda _: True)
    fake("history.diff.text.diff", diff_sample.DIFFED)
    assert skillgit("tui", "v6..v7").code == 0
    run = diff_sample.DIFFED.b.run
    assert [(screen.a, screen.b) for screen in opened] == [(f"{run}/v6", f"{run}/v7")]
