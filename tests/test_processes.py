from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillgit import processes
from skillgit.processes import KILLED, DetachedCommand, detached

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


def start(folder, *words: str, **more) -> DetachedCommand:
    return DetachedCommand.start(folder, words, os.environ, began=NOW, **more)


def test_what_a_command_was_and_printed_and_exited_with_is_found_again(tmp_path):
    good = start(tmp_path, "--version", by="a token")
    bad = start(tmp_path, "--no-such-option", options=("--color=never",))
    good.wait()
    bad.wait()
    second, first = detached(tmp_path)
    assert (first, second) == (good, bad), "the newest first"
    assert (first.words, first.began, first.by, first.pid) == (("--version",), NOW, "a token", good.pid)
    assert (first.code, good.code) == (0, 0)
    assert first.output()[0].startswith(b"skillgit ")
    assert (second.words, second.code, bad.code) == (("--no-such-option",), 2, 2)
    assert b"--no-such-option" in second.output()[1]


STARTER = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from skillgit.processes import DetachedCommand
DetachedCommand.start(Path(sys.argv[1]), ["tui"], os.environ, began=datetime.now(UTC))
os.kill(os.getpid(), 9)
"""
WAITING = "import time\ntime.sleep(600)\n"


@pytest.fixture
def _waiting(tmp_path, monkeypatch):
    """Have ``skillgit`` be a program that does nothing for long."""
    package = tmp_path / "lib" / "skillgit"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(WAITING)
    (package / "processes.py").write_bytes(Path(processes.__file__).read_bytes())
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))


def until(condition) -> None:
    while not condition():
        time.sleep(0.01)


@pytest.mark.usefixtures("_waiting")
def test_a_command_survives_who_started_it_and_is_known_to_be_gone_when_it_is(tmp_path):
    folder = tmp_path / "commands"
    starter = subprocess.run([sys.executable, "-c", STARTER, str(folder)], check=False)
    assert starter.returncode == -signal.SIGKILL
    until(lambda: detached(folder)[0].pid)
    (command,) = detached(folder)
    assert command.code is None
    assert os.getsid(command.pid) == command.pid
    os.kill(command.pid, signal.SIGKILL)
    until(command.ended)
    assert command.code == KILLED


@pytest.mark.usefixtures("_waiting")
def test_the_files_of_old_commands_are_removed_unless_they_run(tmp_path, monkeypatch):
    monkeypatch.setattr("skillgit.processes.KEPT", 2)
    running = start(tmp_path, "first")
    try:
        for number in range(3):
            gone = start(tmp_path, f"{number}")
            os.kill(gone.pid, signal.SIGKILL)
            gone.wait()
        assert [command.words for command in detached(tmp_path)] == [("2",), ("1",), ("first",)]
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()


def test_files_that_say_nothing_are_passed_over(tmp_path):
    for number, content in enumerate((b"", b"\xff", b"[]", b"{}", b'{"words": 1}\n')):
        (tmp_path / f"{number}.command").write_bytes(content)
    assert detached(tmp_path) == ()
