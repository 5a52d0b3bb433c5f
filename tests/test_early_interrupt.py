"""Ctrl-C prints no traceback and ends with 130, whatever is being loaded or done when it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

AT_IMPORT = """
import os, sys
from skillgit.__main__ import main
moment, seen = int(sys.argv.pop(1)), 0
def hook(event, _):
    global seen
    if event == "import":
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), 2)
sys.addaudithook(hook)
main()
"""
COMMANDS = {
    "runs": ["runs"],
    "config": ["config", "demo"],
    "train": ["train", "demo", "--quiet", "-n"],
    "help": ["--help"],
    "mistake": ["trian"],
}
MOMENTS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]
MANY = range(1, 900, 9)


def interrupted(folder, moment, words):
    command = [sys.executable, "-c", AT_IMPORT, str(moment), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def check(ended, folder, words):
    assert "Traceback" not in ended.stderr
    assert "KeyboardInterrupt" not in ended.stderr
    if ended.returncode != 130:  # so many imports are not needed
        whole = subprocess.run([sys.executable, "-m", "skillgit", *words], cwd=folder, capture_output=True, check=False)
        assert ended.returncode == whole.returncode
    else:
        assert "skillgit: interrupted" in ended.stderr


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_while_the_program_is_loaded_is_quiet(moment, tmp_path):
    check(interrupted(tmp_path, moment, COMMANDS["config"]), tmp_path, COMMANDS["config"])


@pytest.mark.soak
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_at_any_import_of_any_command_is_quiet(name, tmp_path):
    for moment in MANY:
        check(interrupted(tmp_path, moment, COMMANDS[name]), tmp_path, COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_in_the_middle_of_each_command_is_quiet(name, tmp_path):
    check(interrupted(tmp_path, 300, COMMANDS[name]), tmp_path, COMMANDS[name])


def test_whoever_has_the_program_ignore_it_is_heeded(tmp_path):
    """A shell starts commands in the background so, and nohup."""
    command = [sys.executable, "-c", AT_IMPORT, "3", "config", "demo"]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        check=False,
    )
    assert ended.returncode == 0
    assert "train.num_epochs" in ended.stdout
