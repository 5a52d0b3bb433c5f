"""One small run of the demo, trained once for all tests of a process that measure its versions again."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

from program import QUICK, new_repository, skillgit

from skillgit.app.context import Context

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RUN = "small"
_USERS = count()
_TRAINED: list[Path] = []


def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a run on 20 selection and 8 test items; whoever changes it takes a copy."""
    if not _TRAINED:
        repository = new_repository(tmp_path_factory.mktemp("small") / "repository")
        skillgit("train", "demo", "--run", RUN, "-q", *QUICK, cwd=repository)
        _TRAINED.append(repository)
    return _TRAINED[0]


def user(directory: Path, moment: datetime | None = None) -> Context:
    """Return a user who works in ``directory`` a week later, or at ``moment``."""
    number = next(_USERS) % 256
    return Context(
        directory=directory,
        environ={},
        clock=lambda: moment or datetime(2026, 11, 28, 12, tzinfo=UTC),
        entropy=lambda length: bytes([number]) * length,
    )


class Quiet:
    """A watcher that remembers what was measured."""

    def __init__(self) -> None:
        self.results: list[tuple[str, str]] = []
        self.every: set[int] = set()

    def progress(self, progress) -> None:
        assert progress.before + progress.done <= progress.every
        self.every.add(progress.every)

    def measured(self, name, split, found) -> None:
        self.results.append((name, split))
        assert found.n
