"""One letter has one meaning, whichever command it stands behind; and what git's users type works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cli_sample as sample
import click
import pytest
from documents import page

from skillgit.cli.main import cli
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

MEANINGS = {
    "-C": "-C",
    "-L": "-L",
    "-U": "--unified",
    "-f": "--file",
    "-h": "--help",
    "-m": "--message",
    "-n": "--dry-run",
    "-o": "--cfg-options",
    "-p": "--patch",
    "-q": "--quiet",
    "-v": "--verbose",
    "-y": "--yes",
}
"""The long name of each letter; a letter that has none stands for itself."""
GIT = {("skillgit log", "-n"): "--limit"}
"""Where a letter is git's own: log only reads, so that there is nothing to try dry."""


def commands(command: click.Command = cli, path: str = "skillgit") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, **cli.context_settings)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


def options() -> Iterator[tuple[str, click.Option]]:
    for path, command in commands():
        context = click.Context(command, **cli.context_settings)
        params = command.get_params(context)
        yield from ((path, option) for option in params if isinstance(option, click.Option) and not option.hidden)


def test_one_letter_has_one_meaning():
    for path, option in options():
        long = next((name for name in option.opts if name.startswith("--")), "")
        for letter in (name for name in option.opts if not name.startswith("--")):
            assert GIT.get((path, letter), MEANINGS[letter]) == (long or letter), path


def test_every_dry_run_has_its_letter_and_every_count_its_name():
    for path, option in options():
        assert ("--dry-run" in option.opts) <= ("-n" in option.opts), path
        assert not {"--of", "--onto", "--count", "--most"} & {*option.opts}, path
        if "--run" in option.opts:
            assert option.metavar in {"RUN", "NAME"}, path
        if "--output" in option.opts:
            assert option.metavar == "FILE", path
        if "--limit" in option.opts:
            assert option.metavar == "N", path


@pytest.mark.parametrize("words", [("-n", "5"), ("-5",), ("--limit", "5"), ("--max-count=5",)])
def test_log_counts_as_git_does(words, skillgit, fake):
    calls = fake("history.log.log", sample.LOG)
    assert skillgit("log", *words).code == ExitCode.OK
    assert calls[0][0].limit == 5


def test_push_takes_runs_behind_the_remote(skillgit, fake):
    calls = fake("exchange.push.push", click.Abort())
    skillgit("push", "origin", "one", "two", "three")
    assert (calls[0][0].remote, calls[0][0].runs) == ("origin", ("one", "two", "three"))


def test_note_takes_its_text_as_git_does(skillgit, fake):
    calls = fake("interventions.note.note", click.Abort())
    skillgit("note", "v3", "-m", "shorter")
    skillgit("note", "-m", "shorter")
    assert calls == [("v3", "shorter"), ("head", "shorter")]
    assert "TEXT cannot be combined with --message" in skillgit("note", "v3", "long", "-m", "short").err
    assert skillgit("note", "-m", "x", "--list").code == ExitCode.USAGE


def test_show_prints_a_file_as_git_does(skillgit, fake):
    calls = fake("history.plumbing.cat", b"\x00bytes")
    assert skillgit("show", "v3:SKILL.md").out == b"\x00bytes"
    assert calls == [("v3:SKILL.md",)]
    for option in ("--stat", "--json"):
        assert "cannot be combined with REV:PATH" in skillgit("show", "v3:SKILL.md", option).err


def test_names_of_commits_that_hold_a_colon_name_no_file(skillgit, fake):
    calls = fake("history.show.show", sample.SHOWN["v7"])
    for name in (":/quote", "v3^{/fix: it}"):
        assert skillgit("show", name).code == ExitCode.OK
    assert len(calls) == 2


def test_show_stat_tells_how_much_changed(skillgit, fake):
    fake("history.show.show", sample.SHOWN["v7"])
    fake("history.log.changes", [(sample.V7, b" SKILL.md | 2 +-\n")])
    shown = skillgit("show", "v7", "--stat").text
    assert "\n\n SKILL.md | 2 +-\n\n" in shown
    assert "@@" not in shown


def test_the_documents_say_what_a_letter_means():
    text = page("commands.md")
    assert "An option has one meaning wherever it stands." in text
