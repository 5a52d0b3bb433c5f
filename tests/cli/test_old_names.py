"""Old names of commands and options work for a release, with one line that says what they are now."""

from __future__ import annotations

import os
import subprocess
import sys

import cli_sample as sample
import click
import pytest

from skillgit.cli.main import cli
from skillgit.errors import ExitCode
from skillgit.view.catalogue import ENTRIES, RENAMED, RENAMED_OPTIONS, current

WARNING = "warning: skillgit {} is now {}; the old name goes with the next release\n"


@pytest.mark.parametrize("name", [name for name in RENAMED if " " not in name])
def test_an_old_name_leads_to_a_command_and_is_listed_nowhere(name, skillgit):
    ended = skillgit(name, "--help")
    assert (ended.code, ended.err) == (ExitCode.OK, WARNING.format(name, RENAMED[name].now))
    assert ended.text.startswith(f"Usage: skillgit {RENAMED[name].words[0] if RENAMED[name].words else name} ")
    assert name not in cli.list_commands(click.Context(cli))
    assert not any(line.split()[:1] == [name] for line in skillgit("help", "--all").text.splitlines())
    environ = os.environ | {"_SKILLGIT_COMPLETE": "bash_complete", "COMP_WORDS": f"skillgit {name}", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "skillgit"], env=environ, capture_output=True, text=True, check=True)
    assert f"plain,{name}\n" not in done.stdout


def test_every_old_name_has_a_command_of_today_or_is_still_there():
    for name, renamed in RENAMED.items():
        assert name not in ENTRIES
        assert bool(renamed.words) != bool(renamed.module), name
        assert not renamed.words or renamed.words[0] in ENTRIES
    context = click.Context(cli)
    for name, options in RENAMED_OPTIONS.items():
        command = cli.get_command(context, (RENAMED[name].words if name in RENAMED else (name,))[0])
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(options.values()) <= known, name


@pytest.mark.parametrize(
    ("old", "new", "sentences"),
    [
        ("adopt v1 --to x", "install v1 --to x", 1),
        ("adopt --undo --to x --skill a", "uninstall --to x a", 1),
        ("adopt --list --json", "install --list --json", 1),
        ("resurrect one -n 3 --dry-run", "retry one --limit 3 --dry-run", 2),
        ("retest v1 --model m", "eval --fresh v1 --model m", 1),
        ("cherry-pick v1 --onto two", "cherry-pick v1 --run two", 1),
        ("cherry-pick v1 --onto=two", "cherry-pick v1 --run=two", 1),
        ("bisect --item q --of one", "bisect --item q --run one", 1),
        ("gate --base main -o gate.md -o train.seed=1", "gate --base main --output gate.md -o train.seed=1", 1),
        ("report -o -", "report --output -", 1),
        ("best --plain", "best --plain", 1),
        ("log -n 3", "log -n 3", 0),
        ("eval v1 -o a=b", "eval v1 -o a=b", 0),
        ("", "", 0),
    ],
)
def test_a_command_line_in_old_names_is_read_as_one_of_today(old, new, sentences):
    words, told = current(old.split())
    assert (words, len(told)) == (new.split(), sentences)


def test_options_that_were_renamed_are_told_too(skillgit, fake):
    calls = fake("interventions.retry.retry", click.Abort())
    ended = skillgit("resurrect", "one", "-n", "3")
    assert calls[0][0].most == 3
    assert ended.err.startswith(
        WARNING.format("resurrect", "skillgit retry") + WARNING.format("resurrect -n", "--limit")
    )


def test_a_name_of_today_is_no_occasion_for_a_warning(skillgit, fake):
    fake("history.show.show", sample.SHOWN["v7"])
    assert skillgit("show", "v7").err == ""
    assert "did you mean 'status'" in skillgit("statsu").err
    assert "adopt" not in skillgit("adop").err
