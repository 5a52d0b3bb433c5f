"""Which runs were begun in this clone: their recorded configurations are the user's own words and may be acted on.

A configuration can name programs and files. That of a run which was fetched is a stranger's, whoever wrote to the run
here since. And of a run that was begun here, others may have written a part: its evidence stays with them unless it is
fetched, and is not lost when it is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillgit.store.repo import Repo


def note_own(repo: Repo, run: str) -> None:
    """Note that ``run`` begins here."""
    _mark(repo, run).touch()


def is_own(repo: Repo, run: str) -> bool:
    """Say whether ``run`` was begun here; a run that was fetched was not."""
    return _mark(repo, run).exists()


def note_elsewhere(repo: Repo, run: str, commits: Iterable[str]) -> None:
    """Note that the evidence of the events ``commits`` of ``run`` stayed where they were written."""
    place = _list(repo, run)
    known = evidence_elsewhere(repo, run)
    fresh = [commit for commit in commits if commit not in known]
    if fresh:
        young = place.with_suffix(".young")
        young.write_text("".join(f"{commit}\n" for commit in (*sorted(known), *fresh)), encoding="ascii")
        young.replace(place)


def evidence_elsewhere(repo: Repo, run: str) -> frozenset[str]:
    """Return the events of ``run`` whose evidence stayed where they were written."""
    try:
        return frozenset(_list(repo, run).read_text(encoding="ascii", errors="replace").split())
    except FileNotFoundError:
        return frozenset()


def _list(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"run-{run}.elsewhere"


def _mark(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"run-{run}.own"
