"""How many of our files a command runs: who changes one thing has so many places to understand."""

from __future__ import annotations

import subprocess
import sys

import pytest
from program import surroundings
from trained_runs import trained_run

COUNTING = """
import sys, threading
files = set()

def count(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and "skillgit" in code.co_filename:
        while (frame := frame.f_back) is not None:
            if "importlib" in frame.f_code.co_filename:
                return  # what loading a module runs is not what the command does
        files.add(code.co_filename)

from skillgit.cli.main import run
threading.setprofile(count)
sys.setprofile(count)
status = run()
sys.setprofile(None)
print(len([file for file in files if "site-packages" not in file]), file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = trained_run(tmp_path_factory, "demo")
    subprocess.run([sys.executable, "-m", "skillgit", "log"], cwd=folder, env=surroundings(), check=True)
    return folder


def files_run(folder, *words):
    """Run ``skillgit`` with ``words`` and return how it ended and how many of our files it ran."""
    ended = subprocess.run(
        [sys.executable, "-c", COUNTING, *words],
        cwd=folder,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=False,
    )
    return ended, int(ended.stderr.split()[-1])


@pytest.mark.parametrize(
    ("words", "most"), [(["log"], 36), (["diff", "--items", "v0", "v3"], 46), (["why", "1"], 45)], ids=str
)
def test_a_command_runs_no_more_files_than_it_needs(demo, words, most):
    ended, count = files_run(demo, *words)
    assert ended.returncode == 0, ended
    assert 10 < count <= most


def test_a_training_until_its_cap_runs_no_more_files_than_it_needs(tmp_path):
    skillgit = [sys.executable, "-m", "skillgit"]
    subprocess.run([*skillgit, "init", ".", "--env", "searchqa"], cwd=tmp_path, env=surroundings(), check=True)
    ended, count = files_run(tmp_path, "train", "demo", "--run", "x", "--max-calls", "90")
    assert ended.returncode == 7, ended
    assert 100 < count <= 163
