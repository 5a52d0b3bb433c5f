from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from program import new_repository, surroundings
from serving import serving, until

from skillgit.app.workspace import command_journal
from skillgit.app.workspace.command_journal import command, commands, start_command
from skillgit.app.workspace.context import Context
from skillgit.errors import ConflictError

FOLDER = ".git/skillgit/commands"
WAITING = (
    "import sys, time\nprint('begun', flush=True)\nprint('beside', file=sys.stderr, flush=True)\ntime.sleep(600)\n"
)


@pytest.fixture
def context(tmp_path):
    return Context(
        directory=new_repository(tmp_path / "repository"),
        environ=surroundings(),
        clock=lambda: datetime(2026, 11, 25, tzinfo=UTC),
        entropy=os.urandom,
    )


@pytest.fixture
def program(context, monkeypatch):
    """Have ``skillgit`` be another program."""
    script = context.directory.parent / "program.py"
    monkeypatch.setattr(command_journal, "command_line", lambda *_: (sys.executable, str(script)))
    return script.write_text


def test_a_command_is_known_by_who_ran_it_what_it_printed_and_how_it_ended(context):
    bad = start_command(context, ["show", "nope"], by="Ada", back="/x").wait()
    good = start_command(context, ["config", "path"], options=("--color=never",)).wait()
    assert (bad.by, bad.words, bad.back, bad.code) == ("Ada", ("show", "nope"), "/x", 3)
    assert (bad.outputs()[0], good.by, good.code) == (b"", "terminal", 2)
    assert "there is no revision 'nope'" in bad.text()
    assert commands(context) == (good, bad), "the newest first"
    modes = {file.stat().st_mode & 0o777 for file in (context.directory / FOLDER).iterdir()}
    assert modes == {0o600}


STARTER = """
import os, sys
from pathlib import Path
from skillgit.app.workspace import command_journal
from skillgit.app.workspace.context import Context
command_journal.command_line = lambda *_: (sys.executable, sys.argv[2])
command_journal.start_command(Context.from_process(Path(sys.argv[1])), [], by="Ada")
os.kill(os.getpid(), 9)
"""


def test_a_command_survives_who_started_it_and_is_found_again(context, program):
    program(WAITING)
    script = context.directory.parent / "program.py"
    starter = subprocess.run(
        [sys.executable, "-c", STARTER, context.directory, script], env=context.environ, check=False
    )
    assert starter.returncode == -signal.SIGKILL
    (record,) = commands(context)
    until(lambda: record.text() == "beside\nbegun\n")
    assert (record.outputs(), record.now().code) == ((b"begun\n", b"beside\n"), None)
    with serving(context.directory) as server:
        visitor = server.visitor()
        page = visitor.get(f"/activity/{record.id}").text
        assert f'data-live="/activity/{record.id}/stream"' in page
        assert "begun" in page
        with visitor.stream("GET", f"/activity/{record.id}/stream") as stream:
            assert next(line for line in stream.iter_lines() if "begun" in line).startswith('data: {"part": "command"')
    record.interrupt()
    over = record.wait()
    assert over.code == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in over.text()


def test_a_command_whose_keeper_was_killed_is_over(context, program):
    program(WAITING)
    record = start_command(context, [])
    until(lambda: record.now().pid)
    os.kill(os.getsid(record.now().pid), signal.SIGKILL)
    over = record.wait()
    os.kill(over.pid, signal.SIGKILL)
    assert (over.exit_code, over.code) == (None, 128 + signal.SIGKILL)


def test_of_much_output_the_end_is_kept_and_no_credential(context, program):
    program("for number in range(300_000): print(number, 'words')\nprint('\\033[31mghp_' + 'a1' * 18 + '\\033[m')\n")
    record = start_command(context, [], by="Ada").wait()
    kept = record.outputs()[0]
    assert len(kept) <= command_journal.MOST
    assert b"left out" in kept.splitlines()[0]
    assert record.text().splitlines()[-2:] == ["299999 words", "[redacted]"]


def test_old_commands_are_forgotten_unless_they_run(context, program, monkeypatch):
    monkeypatch.setattr(command_journal, "KEPT", 2)
    program(WAITING)
    running = start_command(context, ["first"])
    until(running.text)
    program("")
    for number in range(3):
        start_command(context, [str(number)]).wait()
    assert [record.words for record in commands(context)] == [("2",), ("1",), ("first",)]
    running.interrupt()
    running.wait()


def test_of_damaged_files_what_is_whole_is_read(context):
    record = start_command(context, ["runs"], by="Ada").wait()
    folder = context.directory / FOLDER
    with (folder / f"{record.id}.command").open("a") as file:
        file.write('{"exit": 0}\n{"exit')
    for number, content in enumerate((b"", b"\xff", b"[]", b"null", b"{}", b'{"time": "y", "by": "z", "words": []}')):
        (folder / f"{number}.command").write_bytes(content)
    assert commands(context) == (record,) == (command(context, record.id),)


def test_where_nobody_can_write_nothing_is_started(context):
    folder = context.directory / FOLDER
    folder.parent.mkdir(exist_ok=True)
    folder.touch()
    assert commands(context) == ()
    with pytest.raises(ConflictError, match="no command can be started from here"):
        start_command(context, ["runs"])


def test_a_credential_in_a_command_is_not_written_down(context):
    record = start_command(context, ["note", "demo/v1", "ghp_" + "a1" * 18], by="Ada").wait()
    assert record.words == ("note", "demo/v1", "[redacted]")
    assert all(b"ghp_" not in file.read_bytes() for file in (context.directory / FOLDER).glob("*.command"))
