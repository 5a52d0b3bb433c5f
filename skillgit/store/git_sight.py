"""Where git itself sees another history than skillgit, or none: replaced objects, grafts, refs that it cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.store.binary import git
from skillgit.store.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.repo import Repo

_GRAFTS = "info/grafts"


def sight_problems(repo: Repo) -> Iterator[Problem]:
    """Yield what makes git and skillgit disagree about this repository.

    Raises:
        NotFoundError: There is no git on this machine.
    """
    replaced = git(repo, "for-each-ref", "--count=1", "--format=%(refname)", "refs/replace/")
    if replaced.code != 0:
        yield Problem(commit="", sentence=f"git cannot read this repository: {replaced.error.partition(chr(10))[0]}")
    elif name := replaced.out.decode().strip():
        oid = name.rpartition("/")[2]
        yield Problem(commit="", sentence=f"{name} shows git another object than the history has; git replace -d {oid}")
    grafts = repo.common_dir / _GRAFTS
    if grafts.is_file() and any(line.strip() and not line.startswith("#") for line in grafts.read_text().splitlines()):
        yield Problem(commit="", sentence=f"{_GRAFTS} gives commits other parents than they have; remove {grafts}")
