"""A run whose ledger is lost goes on to the same texts and scores, and says first that its costs will be others."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from program import QUICK, git, new_repository, python, refs, skillgit
from soaking import soak
from trained_runs import small_run

MORTAL = Path(__file__).with_name("mortal.py")
TRAIN = ("train", "demo", "--run", "small", *QUICK)
COSTS = re.compile(r"^Skillgit-(?:Cost|Spent|Evidence): .*\n", re.MULTILINE)
LACKS = "the ledger of this repository lacks"


def facts(repository: Path) -> str:
    """Return what the run tells, without what it cost."""
    return COSTS.sub("", git("log", "--format=%B%T", "--topo-order", "--all", "--", "skills", cwd=repository).out)


def killed(repository: Path, count: int) -> None:
    done = python(MORTAL, "call", str(count), repository.parent / "log", "-C", repository, *TRAIN)
    assert done.code == -signal.SIGKILL, done


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory)


@pytest.mark.slow
@pytest.mark.parametrize("count", [200, soak(20), *(soak(count) for count in range(30, 310, 9))])
def test_a_run_without_its_ledger_ends_the_same_or_says_why_its_commits_differ(count, unbroken, tmp_path):
    repository = new_repository(tmp_path / "repository")
    killed(repository, count)
    for path in (repository / ".git" / "skillgit").glob("ledger.db*"):
        path.unlink()
    done = skillgit(*TRAIN, cwd=repository)
    assert facts(repository) == facts(unbroken)
    if refs(repository) != refs(unbroken):
        assert LACKS in done.out + done.err, done
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.slow
@pytest.mark.parametrize("count", [200, soak(20)])
def test_a_run_with_its_ledger_says_nothing_of_it(count, unbroken, tmp_path):
    repository = new_repository(tmp_path / "repository")
    killed(repository, count)
    done = skillgit(*TRAIN, cwd=repository)
    assert LACKS not in done.out + done.err
    assert refs(repository) == refs(unbroken)
