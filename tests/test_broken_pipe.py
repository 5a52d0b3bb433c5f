"""A reader that leaves early: no answer that did not get through passes for a yes."""

from __future__ import annotations

import fcntl
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from once import copy_folder
from program import QUICK, SKILLGIT, attempt, surroundings
from soaking import soak
from trained_runs import RUN, small_run

from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

LOSES = ("gate", "--base", f"{RUN}/best", "--head", f"{RUN}/v0", "--recorded-only")
WINS = ("gate", "--base", f"{RUN}/v0", "--head", f"{RUN}/best", "--recorded-only")
DIFFERS = ("diff", "v0", "best", "--exit-code")
ANSWERS = {
    "gate that fails": (LOSES, 1),
    "gate that passes": (WINS, 0),
    "gate as Markdown": ((*LOSES, "--output", "-"), 1),
    "gate into a file": ((*LOSES, "--output", "/dev/stdout"), 1),
    "diff": (DIFFERS, 1),
    "diff --items": ((*DIFFERS, "--items"), 1),
    "diff --stat": ((*DIFFERS, "--stat"), 1),
    "diff --rules": ((*DIFFERS, "--rules"), 1),
    "fsck": (("fsck",), 0),
    "lint of a broken skill": (("lint", "broken"), 1),
    "lint --secrets": (("lint", "--secrets"), 0),
    "eval --fresh --sample": (("eval", "--fresh", "v0", "--sample", "2", "--no-note", "-q"), 0),
    "doctor": (("doctor", "demo"), 0),
    "best": (("show", "best"), 0),
    "bisect": (("items", "--item", "va-006", "--measure"), 0),
    "train": (("train", "demo", "--run", RUN, *QUICK, "-q", "--exit-code"), 0),
    "a cap in training": (("train", "demo", "--run", "other", *QUICK, "-q", "--max-calls", "50", "--json"), 7),
    "help": (("gate", "--help"), 0),
}


USUAL = {"gate that fails", "gate into a file", "fsck", "a cap in training"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy_folder(small_run(tmp_path_factory), tmp_path_factory.mktemp("piped") / "repository")
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_text("no frontmatter\n", encoding="utf-8")
    return folder


def into_closed_pipe(*arguments: str, cwd: Path, closed: str = "stdout") -> subprocess.CompletedProcess[bytes]:
    """Run ``skillgit`` with a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {closed: writing}
    try:
        return subprocess.run(
            [*SKILLGIT, *arguments],
            cwd=cwd,
            env=surroundings(),
            stdin=subprocess.DEVNULL,
            check=False,
            **streams,  # type: ignore[call-overload]
        )
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    ("arguments", "code"), [answer if name in USUAL else soak(*answer) for name, answer in ANSWERS.items()], ids=ANSWERS
)
def test_an_answer_that_nobody_reads_is_neither_yes_nor_no(repository, arguments, code):
    ended = into_closed_pipe(*arguments, cwd=repository)
    assert ended.returncode == ExitCode.BROKEN_PIPE
    assert b"Traceback" not in ended.stderr
    assert b"Broken pipe" not in ended.stderr
    assert b"BrokenPipeError" not in ended.stderr
    if "other" not in arguments:
        assert attempt(*arguments, cwd=repository).code == code


@pytest.mark.parametrize("arguments", [("log", "--json"), ("show", "best", "--json"), ("gate", "--help")])
def test_a_reader_that_leaves_in_the_middle_is_told_of_too(repository, arguments):
    process = subprocess.Popen(
        [*SKILLGIT, *arguments],
        cwd=repository,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    # Whoever writes more than the pipe holds waits for the reader, and finds that it left.
    held = fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    first = os.read(process.stdout.fileno(), 1)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    whole = attempt(*arguments, cwd=repository)
    assert whole.bytes[:1] == first
    assert len(whole.bytes) > held or arguments[0] == "gate"
    assert process.wait() in ({ExitCode.BROKEN_PIPE} if len(whole.bytes) > held else {0, ExitCode.BROKEN_PIPE})
    assert said == b""


@pytest.mark.parametrize(("arguments", "code"), [(LOSES, 1), soak(WINS, 0), (("show", "nothing"), 3)])
def test_a_closed_stderr_changes_no_answer(repository, arguments, code):
    ended = into_closed_pipe(*arguments, cwd=repository, closed="stderr")
    assert ended.returncode == code


def test_what_has_nothing_to_write_needs_no_reader(repository):
    assert into_closed_pipe("diff", "best", "best", "--exit-code", cwd=repository).returncode == 0


def test_git_ends_alike(repository):
    shell = f"git -C {repository} log -p --all; echo $? >&2"
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(["bash", "-c", shell], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert ended.stderr.splitlines()[-1] == str(int(ExitCode.BROKEN_PIPE))
