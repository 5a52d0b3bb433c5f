"""How training ends, as a script sees it."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from once import copy_folder
from program import QUICK, SKILLGIT, new_repository, refs, skillgit, surroundings
from trained_runs import small_run

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = ("train", "demo", "--run", "small", *QUICK)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def test_a_cap_ends_the_process_with_a_document_and_the_run_goes_on(repository):
    ended = skillgit(*TRAIN, "--max-calls", "70", "--json", cwd=repository, code=7)
    document = json.loads(ended.out)
    assert (document["schema"], document["run"]) == ("skillgit.train/1", "small")
    assert (document["outcome"], document["exit_code"]) == ("budget", 7)
    assert document["sentence"].startswith("The run is not finished: ")
    assert [row["label"] for row in document["report"]] == ["seed", "best", "last"]
    assert 40 < document["cost"]["calls"] <= 70
    assert document["next_commands"][0].endswith("--run small --max-calls N")
    assert ended.err.splitlines()[-1].startswith("hint: skillgit train demo")
    events = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    assert "run-finished" not in {event["kind"] for event in events}

    again = json.loads(skillgit(*TRAIN, "--json", cwd=repository).out)
    assert (again["outcome"], again["exit_code"], again["resumed"]) == ("improved", 0, True)


def test_a_cap_in_the_baseline_leaves_no_run_and_a_document_all_the_same(repository):
    before = refs(repository)
    ended = skillgit(*TRAIN, "--max-tokens", "500", "--json", cwd=repository, code=7)
    document = json.loads(ended.out)
    assert (document["outcome"], document["report"]) == ("budget", [])
    assert refs(repository) == before


def test_ctrl_c_ends_the_process_with_a_document(repository):
    process = subprocess.Popen(
        [*SKILLGIT, *TRAIN, "--json"],
        cwd=repository,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    document = json.loads(out)
    if process.returncode != 0:  # it may have been at its end already
        assert process.returncode == 130
        assert (document["outcome"], document["exit_code"]) == ("stopped", 130)


def test_an_error_that_is_no_end_of_a_process_prints_no_document(tmp_path_factory, tmp_path):
    repository = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    ended = skillgit(*TRAIN, "-o", "train.seed=3", "--json", cwd=repository, code=2)
    assert ended.out == ""
