"""Runs of the demo, each trained once for all tests that measure or read it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

from bench.measure import values_of
from once import once
from program import QUICK, git, new_repository, skillgit

from skillgit.app.workspace.context import Context
from skillgit.domain.ids import short_digest

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RUN = "small"
ONE_CANDIDATE = tuple(word for change in values_of("skillopt") for word in ("-o", change))
"""Options of a training of which each step measures a candidate, where looks at few train items would leave none."""
_USERS = count()


def trained_run(tmp_path_factory: pytest.TempPathFactory, run: str, *options: str) -> Path:
    """Return a repository with a finished run of the demo; whoever does more than read it with git takes a copy."""

    def fill(folder: Path) -> None:
        repository = new_repository(folder / "repository")
        skillgit("train", "demo", "--run", run, "-q", *options, cwd=repository)
        skillgit("log", cwd=repository)
        git("repack", "-adq", cwd=repository)  # copies have few files, and an index

    return once(tmp_path_factory, f"{run}-{short_digest([run, *options])}", fill) / "repository"


def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a run on 20 selection and 8 test items; whoever changes it takes a copy."""
    return trained_run(tmp_path_factory, RUN, *QUICK)


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
        self.remarks: list[str] = []

    def progress(self, progress) -> None:
        assert progress.before + progress.count <= progress.every
        self.every.add(progress.every)

    def remark(self, text) -> None:
        self.remarks.append(text)

    def spent(self, cost) -> None:
        assert cost.calls

    def measured(self, name, split, found) -> None:
        self.results.append((name, split))
        assert found.n
