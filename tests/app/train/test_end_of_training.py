"""The last lines of a training: what was gained on the test split, and the command that says more."""

from __future__ import annotations

import shlex

import pytest
from once import copy_folder
from program import QUICK, new_repository, skillgit
from trained_runs import RUN, small_run

from skillgit.view.plan import gain

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path_factory, tmp_path):
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


def test_the_end_has_gain_interval_and_p_and_the_next_command_works_as_it_is_typed(repository):
    skillgit("fork", f"{RUN}/v0", "other", cwd=repository)  # the default run now, and the words name the one that ended
    ended = skillgit("train", "demo", "--run", RUN, *QUICK, "-q", cwd=repository)
    lines = ended.out.splitlines()
    assert "rehearsal, not language models" in lines[0]
    index = next(number for number, line in enumerate(lines) if line.startswith("test  v"))
    assert " 95 % " in lines[index]
    assert lines[index].endswith("one-sided")
    command = lines[index + 1].removeprefix("next  ")
    assert command.startswith(f"skillgit eval {RUN}/v")
    assert command.endswith(f" --against {RUN}/v0 --split test")
    shown = skillgit(*shlex.split(command)[1:], "-q", cwd=repository)
    difference = lines[index].partition(": ")[2].split()[0]
    assert difference in shown.out, "both say the same"
    for line in lines[index + 2 :]:
        skillgit(*shlex.split(line.strip())[1:], cwd=repository)


def test_a_new_run_that_becomes_the_default_one_says_so_and_how_to_keep_the_former(repository):
    begin = ("train", "demo", *QUICK, "--run")
    taken = skillgit(*begin, "second", cwd=repository).err
    assert f"second becomes the default run, as the newest one; to keep {RUN}: skillgit use {RUN}" in taken
    skillgit("use", RUN, cwd=repository)
    assert "becomes the default run" not in skillgit(*begin, "third", cwd=repository).err, "the choice stays"
    assert RUN in skillgit("status", cwd=repository).out
    assert "becomes the default run" not in skillgit(*begin, "second", cwd=repository).err, "it is no new one"


def test_a_run_that_measures_no_test_split_offers_to_do_so(tmp_path):
    repository = new_repository(tmp_path / "repository")
    words = ("train", "demo", "--run", "x", *QUICK, "-o", "evaluation.eval_test=false")
    ended = skillgit(*words, "-q", cwd=repository)
    assert "--split test" in ended.out
    assert "\ntest  " not in ended.out


def test_a_comparison_without_common_items_says_so():
    class Nothing:
        delta = interval = None
        name, against, split = "v2", "v0", "test"

    assert gain(Nothing()) == "v2 and v0 have no test item with a score in common"  # type: ignore[arg-type]
