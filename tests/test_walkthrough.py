"""The walkthrough is what a user sees: its commands are executed on the demo run and their output is compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import DOCS
from once import copy_folder
from program import surroundings
from trained_runs import trained_run

from skillgit.errors import ExitCode

DOCUMENT = DOCS / "walkthrough.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", flags=re.DOTALL)
OID = re.compile(r"\b[0-9a-f]{7,40}\b")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_folder(trained_run(tmp_path_factory, "demo"), tmp_path_factory.mktemp("walkthrough") / "demo")


def executed(commands: list[str], cwd: Path) -> str:
    """Return the block that shows ``commands`` with what they print."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shown = ""
    for command in commands:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=cwd,
            env=surroundings(PATH=programs),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {ExitCode.OK, ExitCode.BROKEN_PIPE}, done  # `| head` leaves early
        assert done.stderr == "", done
        shown += f"$ {command}\n{done.stdout}"
    return shown


def without_ids(text: str) -> str:
    """Return ``text`` with commit ids blanked: any change of a message changes them, and nobody reads them."""
    return OID.sub(lambda match: "0" * len(match[0]), text)


@pytest.mark.slow
def test_every_command_prints_what_the_document_shows(demo):
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = BLOCK.sub(lambda block: executed(re.findall(r"^\$ (.+)$", block[0], flags=re.MULTILINE), demo), text)
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(wanted, encoding="utf-8")
        text = wanted
    assert without_ids(text) == without_ids(wanted), "run UPDATE_DOCS=1 make docs"


def test_it_shows_the_commands_that_answer_questions():
    commands = re.findall(r"^\$ skillgit (\w+)", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {"log", "items", "blame", "why", "diff"} <= set(commands)
