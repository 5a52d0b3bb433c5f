"""What a push is to send: which refs of a run, to what they shall point, and which of them the other side has moved on.

Nothing is sent from here. Refs are read once, under the lock that every writer takes, so that what goes out is one
moment of a run even while it is being trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.errors import SkillgitError
from skillgit.store import attic, refs
from skillgit.store.lock import repo_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.store.repo import Repo

_ORDER = (refs.Kind.RUN, refs.Kind.SLOW, refs.Kind.BEST, refs.Kind.TAG, refs.Kind.REJECTED)


class Rejected(StrEnum):
    """How refused candidates travel."""

    BRANCHES = "branches"
    """Each as its branch, those in the attic in the attic."""
    ATTIC = "attic"
    """All in one chain under a hidden ref."""
    NONE = "none"
    """They stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is to be sent of one run.

    Attributes:
        run: The run.
        refs: Branches and tags, which arrive together or not at all.
        hidden: Hidden refs, which a host may refuse.
    """

    run: str
    refs: Mapping[str, str]
    hidden: Mapping[str, str]


def snapshot(repo: Repo) -> dict[str, str]:
    """Return this repository's own refs, ``main`` included, as they stood at one moment."""
    with repo_lock(repo):
        tips, main = repo.tips(), repo.tip(refs.MAIN)
    own = {name: oid for name, oid in tips.items() if (ref := refs.parse(name)) is not None and not ref.remote}
    return own | ({refs.MAIN: main} if main else {})


def by_run(tips: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return run to those of the refs ``tips`` that are its own; tracking copies are nobody's."""
    found: dict[str, dict[str, str]] = {}
    for name, oid in tips.items():
        ref = refs.parse(name)
        if ref is not None and ref.run and not ref.remote:
            found.setdefault(ref.run, {})[name] = oid
    return found


def usual(run: str, there: Mapping[str, str]) -> Rejected:
    """Return how candidates of ``run`` travel to a repository with the refs ``there`` if nobody says: as before."""
    branches = any(name.startswith(f"refs/heads/rejected/{run}/") for name in there)
    return Rejected.BRANCHES if branches else Rejected.ATTIC


def parcel(
    repo: Repo, run: str, tips: Mapping[str, str], there: Mapping[str, str], rejected: Rejected, *, evidence: bool
) -> Parcel:
    """Return what is to be sent of ``run``.

    Args:
        repo: The repository.
        run: The run.
        tips: Its refs here.
        there: Its refs in the other repository.
        rejected: How refused candidates travel.
        evidence: Whether its evidence goes too.
    """
    kinds = _ORDER if rejected is Rejected.BRANCHES else _ORDER[:-1]
    found = [(ref, name) for name in tips if (ref := refs.parse(name)) is not None]
    ordered = sorted(
        (one for one in found if one[0].kind in kinds), key=lambda one: (_ORDER.index(one[0].kind), one[1])
    )
    hidden = {}
    if evidence:
        hidden = {name: tips[name] for name in (refs.evidence_ref(run), refs.dropped_ref(run)) if name in tips}
    place = refs.attic_ref(run)
    chain = None
    if rejected is Rejected.ATTIC:
        chain = _chain(repo, run, tips, there)
    elif rejected is Rejected.BRANCHES:
        chain = tips.get(place)
    if chain is not None:
        hidden[place] = chain
    return Parcel(run=run, refs={name: tips[name] for _, name in ordered}, hidden=hidden)


def surpassed(repo: Repo, name: str, new: str, old: str | None) -> bool | None:
    """Say whether the other repository is ahead with the ref ``name``; None if it has something that ``new`` lacks.

    Args:
        repo: This repository.
        name: The ref.
        new: To what it points here.
        old: To what it points there.
    """
    if old is None or old == new:
        return False
    ref = refs.parse(name)
    if refs.is_release(name) or (ref is not None and ref.kind in {refs.Kind.TAG, refs.Kind.REJECTED}):
        return None
    if repo.reaches(new, old):
        return False
    return True if repo.reaches(old, new) else None


def _chain(repo: Repo, run: str, tips: Mapping[str, str], there: Mapping[str, str]) -> str | None:
    """Return the end of a chain of all refused candidates of ``run``; it goes on from the one that is there."""
    place = refs.attic_ref(run)
    mine = {one.branch: one for one in attic.foldable(run, tips)}
    if place in tips:
        mine = {one.branch: one for one in attic.read_attic(repo, tips[place])} | mine
    commits = {branch: one.commit for branch, one in mine.items()}
    base: str | None = None
    kept: dict[str, str] = {}
    for end in filter(None, (there.get(place), tips.get(place))):
        known = candidates(repo, end)
        if known is not None and known.items() <= commits.items():
            base, kept = end, known
            break
    return attic.extended(repo, base, [mine[branch] for branch in sorted(mine) if branch not in kept])


def candidates(repo: Repo, end: str) -> dict[str, str] | None:
    """Return branch to commit for the attic that ends with ``end``; None if it is not here, or is none."""
    try:
        return {one.branch: one.commit for one in attic.read_attic(repo, end)}
    except SkillgitError:
        return None
