"""What was tried before on the text that a run begins with: here, and by others whose candidates were fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Rejected
from skillgit.domain.tried import Tried
from skillgit.errors import SkillgitError
from skillgit.store import attic, refs
from skillgit.store.reader import read_commit

if TYPE_CHECKING:
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

MOST = 100
"""Candidates that a run takes in: more than its prompts ever tell."""


def tried_before(repo: Repo, commit: str, skill: str) -> tuple[Tried, ...]:
    """Return the rejected candidates that were made of ``commit`` or a version before it; oldest first, the newest 100.

    Args:
        repo: The repository; tracking copies of other repositories count.
        commit: The version that a run begins at.
        skill: The skill folder.
    """
    found = (_readable(repo, oid) for oid in _candidates(repo))
    near: dict[str, bool] = {}
    kept: list[tuple[Recorded, Rejected]] = []
    for record in found:
        if record is None or not isinstance(record.event, Rejected) or record.event.skill != skill:
            continue
        base = record.parents[0]
        if near.setdefault(base, repo.reaches(commit, base)):
            kept.append((record, record.event))
    kept.sort(key=lambda one: (one[0].time, one[0].commit))
    return tuple(_tried(record, event) for record, event in kept[-MOST:])


def _candidates(repo: Repo) -> set[str]:
    """Return the rejected candidates that branches and attics lead to, those of other repositories included."""
    found: set[str] = set()
    for name, tip in repo.tips().items():
        ref = refs.parse(name)
        if ref is not None and ref.kind is refs.Kind.REJECTED:
            found.add(tip)
        elif ref is not None and ref.kind is refs.Kind.ATTIC:
            try:
                found.update(one.commit for one in attic.read_attic(repo, tip))
            except SkillgitError:
                continue  # fsck tells of a damaged attic; it is no reason not to train
    return found


def _readable(repo: Repo, commit: str) -> Recorded | None:
    try:
        return read_commit(repo, commit)
    except SkillgitError:
        return None  # as above: somebody else's broken candidate


def _tried(record: Recorded, event: Rejected) -> Tried:
    return Tried(
        run=event.run,
        step=event.step,
        base=event.base,
        commit=record.commit,
        title=event.title,
        changes=event.changes,
        score=event.verdict.score,
        bound=event.evaluation.stopped,
        current=event.verdict.current,
    )
