"""A run that is killed at any moment and resumed equals one that never was."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from once import once
from program import QUICK, git, new_repository, python, refs, skillgit
from soaking import soak

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9
SMALL = ("train", "demo", "--run", "small", "--quiet", *QUICK)
MOMENTS = [
    ("call", 140),
    *(soak("call", count) for count in (1, 12, 21, 33, 47, 60, 75, 90, 111, 160)),
    ("recorded", 25),
    *(soak("recorded", count) for count in (1, 64, 130)),
    ("objects", 1),
    *(soak("objects", count) for count in (3, 8)),
    ("refs", 2),
    *(soak("refs", count) for count in (1, 5)),
]


def train(repository: Path, moment: str, count: int, log: Path) -> int:
    done = python(MORTAL, moment, str(count), log, "-C", repository, *SMALL)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


def calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    def fill(folder: Path) -> None:
        assert train(new_repository(folder / "repository"), "call", NEVER, folder / "log") == 0

    folder = once(tmp_path_factory, "unbroken", fill)
    return refs(folder / "repository"), calls(folder / "log")


def test_the_unbroken_run_has_everything_that_a_kill_could_spoil(unbroken):
    names = unbroken[0]
    assert {"refs/heads/run/small", "refs/heads/slow/small", "refs/skillgit/evidence/small"} <= names.keys()
    assert any(name.startswith("refs/heads/rejected/small/") for name in names)
    assert any(name.startswith("refs/tags/small/v") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_a_killed_run_ends_in_the_same_commits_and_repeats_no_call(moment, count, unbroken, tmp_path):
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    assert train(repository, moment, count, log) == -signal.SIGKILL
    assert train(repository, "call", NEVER, log) == 0
    assert refs(repository) == unbroken[0]
    assert calls(log) == unbroken[1]
    git("fsck", "--strict", cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.slow
@pytest.mark.parametrize("every", [45, soak(23)])
def test_a_run_killed_again_and_again_still_gets_to_the_same_end(every, unbroken, tmp_path):
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    deaths = 0
    while train(repository, "call", every, log) != 0:
        deaths += 1
    assert deaths >= 5
    assert refs(repository) == unbroken[0]
    assert calls(log) == unbroken[1]
