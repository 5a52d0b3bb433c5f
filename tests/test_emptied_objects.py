"""A killed training whose newest objects a disk lost is refused with the way out, repaired, and gone on with."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from program import QUICK, git, new_repository, python, refs, run, skillgit
from soaking import soak

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9
TRAIN = ("train", "demo", "--run", "small", "--quiet", *QUICK)


def train(repository: Path, moment: str = "call", count: int = NEVER) -> int:
    done = python(MORTAL, moment, str(count), repository.parent / "log", "-C", repository, *TRAIN)
    assert "Traceback" not in done.err, done
    return done.code


def calls(repository: Path) -> int:
    return len((repository.parent / "log").read_text().splitlines())


def by_birth(repository: Path) -> list[Path]:
    """Return the files of loose objects, the oldest first; their other times change when they are written again."""
    paths = [path.relative_to(repository) for path in repository.glob(".git/objects/??/*")]
    told = run("stat", "-c", "%.W %n", *paths, cwd=repository).out.splitlines()
    if not told or told[0].startswith(("0", "-", "%")):
        pytest.skip("this file system does not tell when a file was made")
    return [repository / line.split(" ", 1)[1] for line in sorted(told)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = new_repository(tmp_path_factory.mktemp("unbroken") / "repository")
    assert train(repository) == 0
    return repository


@pytest.mark.slow
@pytest.mark.parametrize("count", [7, *(soak(number) for number in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12))])
@pytest.mark.parametrize("death", [4, soak(2), soak(6)])
def test_a_run_whose_newest_objects_are_lost_goes_on_to_the_same_commits(death, count, unbroken, tmp_path):
    repository = new_repository(tmp_path / "repository")
    assert train(repository, "refs", death) == -signal.SIGKILL
    for path in by_birth(repository)[-count:]:
        path.chmod(0o644)
        path.write_bytes(b"")
    done = python(MORTAL, "call", str(NEVER), tmp_path / "other", "-C", repository, *TRAIN)
    if done.code != 0:
        assert done.code in {3, 6}, done
        assert "skillgit fsck --repair" in done.err, done
        assert "unshallow" not in done.err, done
        mended = skillgit("fsck", "--repair", cwd=repository).out
        assert "stepped back to the last whole event" in mended
        assert "bought again" in mended
        assert train(repository) == 0
        # an object of an event in the making is missed only when that event is written
        refused = len((tmp_path / "other").read_text().splitlines()) if (tmp_path / "other").exists() else 0
        assert calls(repository) + refused == calls(unbroken), "the ledger has kept every call"
    assert refs(repository) == refs(unbroken)
    git("fsck", "--strict", "--connectivity-only", cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)
