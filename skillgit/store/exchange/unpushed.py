"""What the usual remote does not have yet, as far as it was asked last; nobody is asked now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.store import refs

if TYPE_CHECKING:
    from skillgit.store.repo import Repo

_USUAL = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpushed:
    """A run with work that a remote does not have.

    Attributes:
        run: The run.
        remote: The remote.
        commits: How many commits of its line are not there; absent if nothing of the run is.
    """

    run: str
    remote: str
    commits: int | None


def unpushed(repo: Repo) -> tuple[Unpushed, ...]:
    """Return the runs of this repository that ``origin``, or the only remote, does not have as they are; by name."""
    names = [remote.name for remote in repo.raw.remotes]
    remote = _USUAL if _USUAL in names else names[0] if len(names) == 1 else None
    if remote is None:
        return ()
    tips, found = repo.tips(), []
    for name, tip in sorted(tips.items()):
        ref = refs.parse(name)
        if ref is None or ref.kind is not refs.Kind.RUN or ref.remote:
            continue
        there = tips.get(refs.tracking(remote, name))
        if there is None:
            found.append(Unpushed(run=ref.run, remote=str(remote), commits=None))
        elif there != tip and (ahead := repo.raw.ahead_behind(tip, there)[0]):
            found.append(Unpushed(run=ref.run, remote=str(remote), commits=ahead))
    return tuple(found)
