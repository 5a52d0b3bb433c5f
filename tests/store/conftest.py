from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from sample_run import write_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


@pytest.fixture
def history(repo: Repo) -> list[Recorded]:
    """The sample run, written into ``repo``."""
    return write_run(repo)


@pytest.fixture
def git(repo: Repo) -> Callable[..., str]:
    """Real git in the work tree of ``repo``."""

    def run(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=repo.workdir, input=stdin.encode(), capture_output=True, check=True
        )
        return done.stdout.decode()

    return run
