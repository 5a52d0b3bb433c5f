"""No text of a stranger or of a model acts on the terminal, whatever command shows it."""

from __future__ import annotations

import io
import json
import re

import pytest
from hostile_run import ACTS, EVIL, write_hostile_run
from sample_run import RUN

from skillgit.cli.output import Output
from skillgit.store.repo import Repo
from skillgit.view.surface import Screen

COMMANDS = (
    ("status",),
    ("runs",),
    ("log",),
    ("log", "--graph"),
    ("show", "v1"),
    ("show", "r2"),
    ("show", "v5"),
    ("show", "best"),
    ("diff", "v0", "v1", "--items"),
    ("diff", "v0", "v5", "--rules"),
    ("blame",),
    ("why", "2"),
    ("why", "the unit that the question asks for, and say it"),
    ("why", "metres"),
    ("items",),
    ("items", "--plain"),
    ("log", "--item", "q01"),
    ("report", "--output", "-"),
    ("items", "--models"),
    ("cost",),
    ("log", "--jsonl"),
    ("rev-parse", "v1"),
    ("fsck",),
    ("lint", "v5"),
    ("lint", "--secrets"),
    ("sql", "select * from event"),
    ("sql", "select name, sql from sqlite_master"),
    ("fsck", f"no{EVIL.replace(chr(0x1B), '')}such"),
    ("show", "no\x1b[2J\u202esuch"),
    ("train", "no\x1b[2J\u202esuch"),
)
DIFFS = (("diff", "v0", "v1"), ("diff", "v0", "v5", "--stat"), ("log", "-p"), ("log", "--stat"))
FORMS = ((), ("--json",), ("--plain",))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    repo = Repo.init(tmp_path_factory.mktemp("hostile") / "repository")
    write_hostile_run(repo)
    return repo


def check_inert(ended, colour):
    for stream in (ended.out.decode(), ended.err):
        assert "\x1b[31mFORGED" not in stream
        shown = re.sub(r"\x1b\[[0-9;]{0,5}m", "", stream) if colour else stream
        assert ACTS.search(shown.replace("\0", "\n")) is None, repr(shown)[:2000]


@pytest.mark.parametrize("colour", [False, True], ids=["pipe", "colour"])
@pytest.mark.parametrize("words", [*COMMANDS, *DIFFS], ids=" ".join)
def test_no_command_lets_text_act(words, colour, place, skillgit):
    if words in DIFFS and not colour:
        pytest.skip("a pipe gets git's own bytes, which git apply takes")
    for form in FORMS if not colour else ((),):
        done = skillgit("-C", str(place.workdir), f"--color={'always' if colour else 'never'}", *words, *form)
        assert done.code != 70, done.err
        check_inert(done, colour)
        if form == ("--json",) and done.code == 0:
            json.loads(done.text)


def test_a_pipe_gets_a_file_byte_for_byte(place, skillgit):
    written = place.commit(place.tips()[f"refs/heads/run/{RUN}"]).tree["skills/demo/SKILL.md"].data
    assert b"\x1b]0;x\x07" in written
    assert skillgit("-C", str(place.workdir), "show", "v5:SKILL.md").out == written


def test_a_terminal_gets_a_file_with_nothing_that_acts():
    stream = io.BytesIO()
    output = Output(stream, screen=Screen(terminal=True), encoding="utf-8", pager=lambda: None)
    output.raw(f"one {EVIL}\ntwo\n".encode())
    shown = stream.getvalue().decode()
    assert ACTS.search(shown) is None
    assert shown.endswith("\ntwo\n")


def test_fsck_and_lint_name_what_is_hidden(place, skillgit):
    for words in (("fsck",), ("lint", "v5")):
        done = skillgit("-C", str(place.workdir), *words)
        assert "SKILL.md has " in done.text
        assert "hidden characters, the first in line" in done.text
