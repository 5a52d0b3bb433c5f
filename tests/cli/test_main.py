from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import cli_sample as sample
import click
import pytest
from documents import page
from soaking import soak

from skillgit import errors
from skillgit.cli.main import cli
from skillgit.errors import ExitCode, SkillgitError
from skillgit.view.catalogue import DAILY, ENTRIES, SECTIONS

COMMANDS = list(ENTRIES)


def options_of(command: click.Command) -> list[click.Option]:
    context = click.Context(command, info_name="skillgit", **cli.context_settings)
    return [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]


def command_called(name: str) -> click.Command:
    found: click.Command | None = cli
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_catalogue_says_what_the_command_says(name):
    command = command_called(name)
    assert command.name == name.split()[-1]
    assert command.get_short_help_str(limit=200).removesuffix(".") == ENTRIES[name].summary


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, skillgit):
    ended = skillgit(*name.split(), "--help")
    assert ended.code == 0
    assert ended.text.startswith(f"Usage: skillgit {name} ")
    assert ENTRIES[name].summary in " ".join(ended.text.split())


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_options_are_imperative_and_end_without_a_full_stop(name):
    for option in options_of(command_called(name) if name else cli):
        assert option.help, option.name
        assert option.help[0].isupper(), option.help
        assert not option.help.endswith("."), option.help


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("log", "--item", ""), "--item is empty"),
        (("log", "--item", "q1", "--item", ""), "--item is empty"),
        (("log", "--since="), "--since is empty"),
        (("log", "--until", ""), "--until is empty"),
        (("log", "-n", ""), "--limit is empty"),
        (("log", ""), "the argument RUN | REV | REV..REV is empty"),
        (("log", "v1", ""), "the argument RUN | REV | REV..REV is empty"),
        (("diff", "v1", "v2", "--as-of", ""), "--as-of is empty"),
        (("blame", ""), "the argument REV is empty"),
        (("blame", "v1", ""), "the argument PATH is empty"),
        (("gc", "--evidence-older", ""), "--evidence-older is empty"),
        (("plugins", ""), "the argument NAME is empty"),
    ],
)
def test_an_empty_value_is_no_value(arguments, said, skillgit):
    ended = skillgit(*arguments)
    assert (ended.code, ended.out) == (ExitCode.USAGE, b"")
    assert ended.err.splitlines()[0] == f"skillgit: {said}"
    assert ended.err.splitlines()[1].startswith(f"hint: skillgit {arguments[0]}")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_looks_at_the_past_behind_nothing(name, skillgit):
    if any("--as-of" in option.opts for option in options_of(command_called(name))):
        ended = skillgit(*name.split(), "--as-of", "")
        assert (ended.code, ended.err.splitlines()[0]) == (ExitCode.USAGE, "skillgit: --as-of is empty")


def test_what_only_ends_like_an_empty_value_is_none(fake, skillgit):
    calls = fake("history.log.log", sample.LOG)
    assert skillgit("log", "--grep", "score=").code == ExitCode.OK
    assert calls[0][0].grep == "score="


def test_every_module_with_a_verb_is_in_the_catalogue():
    folder = Path(__file__).parents[2] / "skillgit" / "verbs"
    modules = {path.stem for path in folder.glob("*.py") if " = Verb(" in path.read_text(encoding="utf-8")}
    assert modules - {"verb"} == {entry.module for entry in ENTRIES.values() if entry.module}


def test_help_lists_the_commands_of_every_day_and_says_how_to_see_the_rest(skillgit):
    lines = skillgit("--help").text.splitlines()
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 : -3] if line[2] != " "]
    assert listed == list(DAILY)
    assert len(DAILY) <= 12
    assert lines[-2] == "skillgit help --all lists every command. skillgit help COMMAND explains one."
    assert lines[-1] == "skillgit help options explains options that commands share."


def test_help_lists_all_commands_by_section(skillgit):
    lines = skillgit("help", "--all").text.splitlines()
    for title, entries in SECTIONS.items():
        start = lines.index(f"{title}:")
        end = lines.index("", start) if "" in lines[start:] else len(lines)
        # a long summary goes on on a further line, which begins further to the right
        listed = [re.split(r"\s{2,}", line.strip())[0] for line in lines[start + 1 : end] if line[2] != " "]
        assert listed == [entry.name for entry in entries]


def test_without_a_command_help_goes_to_stderr(skillgit):
    ended = skillgit()
    assert (ended.code, ended.out) == (ExitCode.USAGE, b"")
    assert "Usage: skillgit" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lgo",), "skillgit: there is no command 'lgo', did you mean 'log'?\nhint: skillgit --help\n"),
        (
            ("resume",),
            "skillgit: there is no command 'resume', did you mean 'train --run NAME'?\nhint: skillgit --help\n",
        ),
        (
            ("train", "demo", "--placebo", "3"),
            (
                "skillgit: there is no option '--placebo', did you mean '-o train.placebo=N'?\n"
                "hint: skillgit train --help\n"
            ),
        ),
        (
            ("gate", "--base", "main", "--markdown"),
            "skillgit: there is no option '--markdown', did you mean '--output -'?\nhint: skillgit gate --help\n",
        ),
        (("statsu",), "skillgit: there is no command 'statsu', did you mean 'status'?\nhint: skillgit --help\n"),
        (("zzzzzz",), "skillgit: there is no command 'zzzzzz'\nhint: skillgit --help\n"),
        (
            ("log", "--jsom"),
            "skillgit: there is no option '--jsom', did you mean '--json' or '--jsonl'?\nhint: skillgit log --help\n",
        ),
        (("log", "--json", "--plain"), "skillgit: choose one output format\nhint: skillgit log --help\n"),
        (("log", "--grep"), "skillgit: option '--grep' requires an argument\nhint: skillgit log --help\n"),
        (
            ("diff", "v1", "--color"),
            "skillgit: option '--color' requires an argument\nhint: skillgit diff --help\n",
        ),
        (("diff", "..v1"), "skillgit: name two versions, as in v3 v7 or v3..v7\nhint: skillgit diff --help\n"),
        (
            ("-C", "/nowhere/at/all", "log"),
            "skillgit: there is no folder /nowhere/at/all\nhint: check the path after -C\n",
        ),
    ],
)
def test_a_mistaken_command_line_ends_with_2_and_says_what_was_meant(arguments, said, skillgit):
    ended = skillgit(*arguments)
    assert (ended.code, ended.out, ended.err) == (ExitCode.USAGE, b"", said)


def every_error() -> list[type[SkillgitError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, SkillgitError)]
    assert len(found) > 15
    return found


@pytest.mark.parametrize("error", every_error())
def test_every_error_becomes_one_sentence_its_hint_and_its_code(error, skillgit, fake):
    fake("history.log.log", error("run x is gone", hint="skillgit runs"))
    ended = skillgit("log")
    assert ended.code == error.exit_code
    assert ended.err == "skillgit: run x is gone\nhint: skillgit runs\n"
    assert ended.out == b""


def test_a_bug_is_one_sentence_and_code_70(skillgit, fake):
    fake("history.log.log", KeyError("x"))
    ended = skillgit("log")
    assert ended.code == ExitCode.INTERNAL
    first, hint = ended.err.splitlines()
    assert first == "skillgit: internal error: KeyError: 'x'"
    assert hint.startswith("hint: ")
    assert "--debug" in hint


@pytest.mark.parametrize("error", [KeyError("x"), SkillgitError("no")])
def test_only_debug_shows_a_traceback(error, skillgit, fake):
    fake("history.log.log", error)
    assert "Traceback" not in skillgit("log").err
    assert "Traceback" in skillgit("--debug", "log").err


def test_ctrl_c_ends_with_130(skillgit, fake):
    fake("history.log.log", KeyboardInterrupt())
    ended = skillgit("log")
    assert (ended.code, ended.err) == (130, "skillgit: interrupted\n")


def test_the_documented_exit_codes_are_those_of_the_program():
    text = page("scripting.md")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(code.value, code.name) for code in ExitCode]


def run_process(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "skillgit", *arguments], check=False, capture_output=True, **options
    )


def test_a_full_disk_is_told():
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "skillgit", "completion", "bash"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == ExitCode.CONFLICT
    sentence = b"skillgit: the disk is full: cannot write to stdout: No space left on device\nhint: "
    assert ended.stderr.startswith(sentence)


def test_closed_streams_and_a_deleted_folder_are_no_bugs(tmp_path):
    python = f'"{sys.executable}" -m skillgit'
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        f'{python} completion bash >&-; echo $?; {python} nope 2>&-; echo $?; cd "{gone}"; rmdir "{gone}"; {python} log'
    )
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert ended.stdout == "0\n2\n"
    assert ended.returncode == ExitCode.USAGE
    assert ended.stderr.splitlines()[-2:] == [
        "skillgit: the current folder does not exist any more",
        "hint: cd to one that does",
    ]


HEAVY = ("pygit2", "sqlite3", "sqlite_utils", "yaml", "pydantic", "rich", "textual", "rapidfuzz")


def loaded_by(*arguments: str) -> set[str]:
    script = (
        "import sys\n"
        "from skillgit.cli.main import run\n"
        f"code = run({list(arguments)!r})\n"
        "print('|'.join(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return set(ended.stderr.splitlines()[-1].split("|"))


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("log", "--help"), ("completion", "bash")])
def test_help_loads_nothing_heavy(arguments):
    assert not loaded_by(*arguments) & set(HEAVY)


@pytest.mark.parametrize("verb", ["log", soak("checkout")])
def test_reading_history_loads_no_configuration_and_no_display(verb, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    run_process("-C", str(tmp_path), "log")  # the first look builds the index, and may load what that needs
    loaded = loaded_by("-C", str(tmp_path), verb, *(["v1"] if verb == "checkout" else []))
    assert "pygit2" in loaded
    assert not loaded & {"yaml", "pydantic", "rich", "textual", "sqlite_utils"}


def test_completion_lists_commands_without_loading_the_store():
    environ = os.environ | {"_SKILLGIT_COMPLETE": "bash_complete", "COMP_WORDS": "skillgit chec", "COMP_CWORD": "1"}
    ended = run_process(env=environ)
    assert ended.stdout == b"plain,checkout\n"
    assert ended.stderr == b""


def test_completing_a_run_outside_a_repository_is_silent(tmp_path):
    environ = os.environ | {"_SKILLGIT_COMPLETE": "bash_complete", "COMP_WORDS": "skillgit log ", "COMP_CWORD": "2"}
    ended = run_process(env=environ, cwd=tmp_path)
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"\n", b"", 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell, skillgit):
    ended = skillgit("completion", shell)
    assert ended.code == 0
    assert f"_SKILLGIT_COMPLETE={shell}_complete" in ended.text


def test_version_tells_the_version(skillgit):
    assert skillgit("--version").text == f"skillgit 0.1.0 (Python {sys.version.split()[0]})\n"


def test_sigint_while_a_command_runs(tmp_path):
    script = "import os, signal, time, skillgit.app.history.log as m\n"
    # what runs these tests may ignore the signal, and processes inherit that
    script += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "m.log = lambda *a, **k: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))\n"
    script += "import sys; from skillgit.cli.main import run; sys.exit(run(['log']))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGINT, "skillgit: interrupted\n")
