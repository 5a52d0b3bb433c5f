"""Whatever git tidies up while a run is trained, the run is the one that it would have been."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from program import QUICK, git, new_repository, refs, skillgit, surroundings
from soaking import sampled, soak
from trained_runs import small_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRAIN = ("train", "demo", "--run", "small", "--quiet", *QUICK)
TIDYINGS = (
    ("gc", "--quiet", "--prune=now"),
    ("prune", "--expire=now"),
    ("repack", "-adq"),
    ("pack-refs", "--all", "--prune"),
)


@contextmanager
def tidying(repository: Path, *command: str) -> Iterator[list[int]]:
    """Run ``command`` of git's again and again; yield what it exits with."""
    ended, codes = threading.Event(), []

    def work() -> None:
        while not ended.is_set():
            done = subprocess.run(
                ["git", *command], cwd=repository, env=surroundings(), capture_output=True, check=False
            )
            codes.append(done.returncode)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield codes
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return refs(small_run(tmp_path_factory))


@pytest.mark.slow
@pytest.mark.parametrize("command", sampled(TIDYINGS, 4), ids=" ".join)
@pytest.mark.parametrize("_", [0, *(soak(number) for number in range(1, 10))])
def test_git_may_tidy_up_at_any_moment_of_a_training(command, _, undisturbed, tmp_path):
    repository = new_repository(tmp_path / "repository")
    with tidying(repository, *command) as codes:
        skillgit(*TRAIN, cwd=repository)
    assert 0 in codes, "nothing was tidied up"
    assert refs(repository) == undisturbed
    git("fsck", "--strict", "--connectivity-only", cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)
