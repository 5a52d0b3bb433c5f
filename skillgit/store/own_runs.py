"""Which runs were begun in this clone: their recorded configurations are the user's own words and may be acted on.

A configuration can name programs and files. That of a run which was fetched is a stranger's, whoever wrote to the run
here since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.store.repo import Repo


def note_own(repo: Repo, run: str) -> None:
    """Note that ``run`` begins here."""
    _mark(repo, run).touch()


def is_own(repo: Repo, run: str) -> bool:
    """Say whether ``run`` was begun here; a run that was fetched was not."""
    return _mark(repo, run).exists()


def _mark(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"run-{run}.own"
