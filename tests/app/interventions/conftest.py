"""Two short runs from one seed, trained once with the offline models and copied for each test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from once import copy_folder, once
from program import QUICK, git, new_repository, skillgit

from skillgit.app.workspace.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.domain.cost import Cost

_USERS = count()


@dataclass
class Eyes:
    """A watcher that remembers, and may do something once an item is done."""

    looks: list[object] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)

    def progress(self, progress) -> None:
        assert 0 <= progress.count <= progress.total
        assert progress.before + progress.count <= progress.every
        self.looks.append(progress)

    def measured(self, name, split, found) -> None:
        assert found.n > 0
        self.results.append((name, split))

    def remark(self, text) -> None:
        self.remarks.append(text)

    def spent(self, cost) -> None:
        self.costs.append(cost)


@pytest.fixture
def eyes() -> Eyes:
    return Eyes()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the runs ``one`` and ``two``, each of six steps on 20 selection items."""

    def fill(folder: Path) -> None:
        repository = new_repository(folder / "repository")
        for run, seed in (("one", 42), ("two", 7)):
            skillgit("train", "demo", "--run", run, "-q", *QUICK, "-o", f"train.seed={seed}", cwd=repository)

    return once(tmp_path_factory, "gating", fill) / "repository"


@pytest.fixture
def repository(trained: Path, tmp_path: Path) -> Path:
    return copy_folder(trained, tmp_path / "repository")


@pytest.fixture
def user() -> Callable[[Path], Context]:
    """The context of somebody who types a command; everybody has other random numbers."""

    def of(directory: Path) -> Context:
        number = next(_USERS) % 256
        return Context(
            directory=directory,
            environ={},
            clock=lambda: datetime(2026, 11, 28, 12, tzinfo=UTC),
            entropy=lambda length: bytes([number]) * length,
        )

    return of


@pytest.fixture
def document() -> Callable[[Path, str], str]:
    """Read a version's text with git."""

    def read(repository: Path, revision: str) -> str:
        return git("show", f"{revision}:skills/searchqa/SKILL.md", cwd=repository).out

    return read


@pytest.fixture
def trailers() -> Callable[[Path, str], dict[str, str]]:
    """Read the trailers of a commit with git; of repeated ones the last."""

    def read(repository: Path, revision: str) -> dict[str, str]:
        told = git("log", "-1", "--format=%(trailers:unfold)", revision, cwd=repository).out
        return dict(line.split(": ", 1) for line in told.splitlines() if ": " in line)

    return read


@pytest.fixture
def evidence() -> Callable[[Path, str, str], object]:
    """Read a JSON file of the evidence behind a commit with git."""

    def read(repository: Path, revision: str, name: str) -> object:
        wanted = "%(trailers:key=Skillgit-Evidence,valueonly)"
        tree = git("log", "-1", f"--format={wanted}", revision, cwd=repository).out.strip()
        return json.loads(git("show", f"{tree}:{name}", cwd=repository).out)

    return read


@pytest.fixture
def sound() -> Callable[[Path], None]:
    """Check that git and skillgit find nothing wrong with a repository."""

    def check(repository: Path) -> None:
        skillgit("fsck", "--deep", cwd=repository)
        git("fsck", "--strict", "--no-dangling", cwd=repository)

    return check


@pytest.fixture
def by_hand() -> Callable[[Path, str, str], None]:
    """Commit a text on a run's branch as a person does."""

    def commit(repository: Path, run: str, text: str) -> None:
        tree = repository.parent / "by-hand"
        git("worktree", "add", "-q", tree, f"run/{run}", cwd=repository)
        (tree / "skills" / "searchqa" / "SKILL.md").write_text(text)
        who = ("-c", "user.name=P", "-c", "user.email=p@example.org")
        git(*who, "commit", "-q", "-a", "-m", "Change it by hand", cwd=tree)
        git("worktree", "remove", tree, cwd=repository)

    return commit
