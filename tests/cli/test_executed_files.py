"""How many of our files a command runs: who changes one thing has so many places to understand."""

from __future__ import annotations

import pytest
from program import new_repository, python, skillgit
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
def counting(tmp_path_factory):
    """Return what runs ``skillgit`` with some words and returns its exit code and how many of our files it ran."""
    program = tmp_path_factory.mktemp("counting") / "counting.py"
    program.write_text(COUNTING)

    def files_run(folder, *words):
        ended = python(program, *words, cwd=folder)
        return ended.code, int(ended.err.split()[-1])

    return files_run


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = trained_run(tmp_path_factory, "demo")
    skillgit("log", cwd=folder)
    return folder


@pytest.mark.parametrize(
    ("words", "most"), [(["log"], 37), (["diff", "--items", "v0", "v3"], 47), (["why", "1"], 45)], ids=str
)
def test_a_command_runs_no_more_files_than_it_needs(counting, demo, words, most):
    code, count = counting(demo, *words)
    assert code == 0
    assert 10 < count <= most


def test_a_training_until_its_cap_runs_no_more_files_than_it_needs(counting, tmp_path):
    repository = new_repository(tmp_path / "repository")
    code, count = counting(repository, "train", "demo", "--run", "x", "--max-calls", "90")
    assert code == 7
    assert 100 < count <= 163
