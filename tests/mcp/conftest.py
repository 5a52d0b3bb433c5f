"""What tests of the server share: histories that it tells of, and an agent in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rule_run import write_rule_run
from trained_runs import small_run, user

from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.app.workspace.context import Context


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a finished run, which stays as it is."""
    return small_run(tmp_path_factory)


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """A user of a repository whose rules have lives; see ``rule_run``."""
    repo = Repo.init(tmp_path_factory.mktemp("rules") / "repository")
    write_rule_run(repo)
    return user(repo.workdir)
