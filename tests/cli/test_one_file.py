"""A command is one file: what is written there once, the command line, its help, the manual and other surfaces have."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import click
import pytest

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.cli.main import cli
from skillgit.verbs import manual as man
from skillgit.verbs.command_line import read_words
from skillgit.verbs.verb import ReadingSession
from skillgit.view import catalogue
from skillgit.view.surface import Screen

FILE = '''
from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfPast, Opt
from skillgit.verbs.verb import Answer, Effect, Verb


@dataclass(frozen=True, kw_only=True)
class CountRequest(OfPast):
    """Letters count, spaces do not."""

    word: Annotated[str, Arg("WORD", words="runs")]
    twice: Annotated[bool, Opt("Count every letter twice")] = False


def _count(session, request):
    count = len(request.word) * (1 + request.twice)
    return Answer("count/1", {"count": count}, [f"{count} letters"])


COUNT = Verb("count", CountRequest, _count, lambda request: Effect.PAYS if request.twice else Effect.READS)
'''


@pytest.fixture(autouse=True)
def counting(monkeypatch):
    module = ModuleType("skillgit.verbs.counting")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(FILE, module.__dict__)  # noqa: S102 - the file of a new command
    entry = catalogue.CommandEntry("count", "counting", "Count the letters of a word")
    monkeypatch.setitem(catalogue.ENTRIES, entry.name, entry)
    return module


def test_the_command_line_has_it_with_its_option_and_its_forms(skillgit):
    assert skillgit("count", "abc").text == "3 letters\n"
    assert json.loads(skillgit("count", "abc", "--twice", "--json").out) == {"schema": "skillgit.count/1", "count": 6}
    wrong = skillgit("count")
    assert (wrong.code, "hint: skillgit count --help" in wrong.err) == (2, True)
    assert "did you mean '--twice'" in skillgit("count", "abc", "--twise").err


def test_its_help_and_its_manual_have_it(skillgit):
    for words in (("count", "--help"), ("help", "count", "--man")):
        text = " ".join(skillgit(*words).text.replace("\\-", "-").split())
        assert "ount the letters of a word" in text
        assert "Letters count, spaces do not." in text
        assert "Count every letter twice" in text
        assert "Also: --as-of REV, --json" in text
    assert "skillgit count" in [path for path, _ in man.pages(cli, "skillgit")]


def test_completion_has_it():
    context = click.Context(cli, info_name="skillgit")
    assert "count" in [item.value for item in cli.shell_complete(context, "cou")]
    command = cli.get_command(context, "count")
    assert command is not None
    inner = click.Context(command, info_name="count", parent=context)
    assert "--twice" in [item.value for item in command.shell_complete(inner, "--tw")]


def test_other_surfaces_show_the_command_ask_before_it_and_show_its_answer(counting, tmp_path):
    request = counting.CountRequest(word="abc", twice=True)
    words = counting.COUNT.words(request)
    assert words == ("count", "abc", "--twice")
    assert read_words(words) == (counting.COUNT, request)
    assert counting.COUNT.question(request) == "It may call models, which may cost money."
    assert counting.COUNT.question(counting.CountRequest(word="abc")) == ""
    session = ReadingSession(Workspace(Context.from_process(tmp_path)), Screen())
    assert [*counting.COUNT.run(session, request).for_people(session.screen, session.now)] == ["6 letters"]
