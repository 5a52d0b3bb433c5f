"""Manual pages are made of the commands; ``UPDATE_GOLDEN=1 pytest tests/cli`` writes those that are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from skillgit.cli.main import cli
from skillgit.verbs import manual as man
from skillgit.verbs.command_line import SHARED
from skillgit.view.catalogue import ENTRIES

FOLDER = Path(__file__).parents[2] / "docs" / "man"


def written() -> dict[str, str]:
    return {f"{man.page_name(path)}.1": text for path, text in man.pages(cli, "skillgit")}


def rendered(text: str) -> str:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff here")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-c", "-P-b", "-P-u"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_installed_pages_are_those_of_the_commands():
    pages = written()
    if os.environ.get("UPDATE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        for path in FOLDER.glob("*.1"):
            path.unlink()
        for name, text in pages.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.1")} == pages


def test_every_command_has_a_page():
    names = set(written())
    assert {"skillgit.1", "skillgit-log.1", "skillgit-rev-parse.1", "skillgit-tasks-add.1"} <= names
    assert {f"skillgit-{name.replace(' ', '-')}.1" for name in ENTRIES} <= names


def test_groff_finds_no_fault_in_any_page():
    shown = rendered("".join(written().values()))
    assert "\\[" not in shown


def test_a_page_says_what_help_says(skillgit):
    shown = " ".join(rendered(skillgit("help", "log", "--man").text).split())
    assert "skillgit-log - show the events of a run, newest first" in shown
    assert "--since, --after TIME Show events of TIME or later, like '2 days ago'" in shown
    assert "● new best" in shown


def test_man_shows_a_page():
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("there is no man here")
    environ = os.environ | {"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFOPT": "", "MAN_KEEP_FORMATTING": ""}
    done = subprocess.run(
        ["man", "-l", "-"], input=written()["skillgit-sql.1"], env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or "minimized" in done.stdout:
        pytest.skip(f"man does not work here: {done.stderr}")
    assert "SYNOPSIS" in done.stdout
    assert "Answer an SQL query from the index" in " ".join(done.stdout.split())


def test_help_is_that_of_the_command(skillgit):
    assert skillgit("help", "log").text == skillgit("log", "--help").text
    assert skillgit("help", "tasks", "add").text == skillgit("tasks", "add", "--help").text
    assert skillgit("help").text == skillgit("--help").text


def test_help_for_what_is_not_there_says_what_was_meant(skillgit):
    ended = skillgit("help", "tasks", "ad")
    assert (ended.code, ended.err) == (
        2,
        "skillgit: there is no command 'ad', did you mean 'add'?\nhint: skillgit tasks --help\n",
    )
    assert "skillgit log has no commands of its own" in skillgit("help", "log", "x").err


def test_help_explains_the_options_that_commands_share_once(skillgit):
    text = skillgit("help", "options").text
    for option in SHARED:
        assert text.count(f"\n  {', '.join(option.opts)} ") == 1, option.long
        assert " ".join((option.help or "").split())[:20] in " ".join(text.split())
    assert "(log, sql)" in " ".join(text.split())
    assert "(all but tui, mcp, completion, help, rev-parse)" in " ".join(text.split())
    page = skillgit("help", "options", "--man").text
    assert all(option.long.replace("-", r"\-") in page for option in SHARED)
