"""What follows from a run's events and could be computed again: its version tags and its best branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Accepted, Measured, Reverted, RunStarted, SlowMerged, version_of
from skillgit.domain.gate_decision import Decision
from skillgit.store import refs
from skillgit.store.transaction import RefUpdate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillgit.domain.event import Event
    from skillgit.store.commit_message import Recorded


def versions(records: Iterable[Recorded]) -> dict[int, str]:
    """Return version to commit: of a version that occurs twice, as after ``git cherry-pick``, the first one."""
    commits: dict[int, str] = {}
    for record in records:
        version = version_of(record.event)
        if version is not None:
            commits.setdefault(version, record.commit)
    return commits


def derived_refs(run: str, records: Iterable[Recorded], commits: Mapping[int, str]) -> dict[str, str]:
    """Return the derived refs that ``records`` imply, and their targets; ``commits`` has those of all versions."""
    targets: dict[str, str] = {}
    for record in records:
        version = version_of(record.event)
        if version is not None:
            targets[refs.version_tag(run, version)] = record.commit
        if _is_new_best(record.event):
            best = record.commit if version is not None else commits.get(record.at, record.commit)
            targets[refs.best_branch(run)] = best
    return targets


def _is_new_best(event: Event) -> bool:
    """Say whether the version that a run is at with ``event`` is its best from then on."""
    if isinstance(event, RunStarted):
        return True
    verdict = event.verdict if isinstance(event, Accepted | SlowMerged | Reverted | Measured) else None
    return verdict is not None and verdict.decision is Decision.ACCEPT_NEW_BEST


def derived_moves(
    run: str, records: Iterable[Recorded], commits: Mapping[int, str], tips: Mapping[str, str]
) -> list[RefUpdate]:
    targets = derived_refs(run, records, commits)
    return [
        RefUpdate(name=name, new=commit, is_derived=True)
        for name, commit in targets.items()
        if tips.get(name) != commit
    ]


def derived_updates(run: str, records: Sequence[Recorded], tips: Mapping[str, str]) -> list[RefUpdate]:
    """Return the moves that bring all derived refs of ``run`` from ``tips`` to where its ``records`` imply.

    A tag of a version that is not in the history is removed: a process was killed before it could move the branch.
    """
    commits = versions(records)
    strays = [
        RefUpdate(name=name, new=None, is_derived=True)
        for name in tips
        if (ref := refs.parse(name)) is not None
        and ref.kind is refs.RefKind.TAG
        and ref.run == run
        and ref.number not in commits
    ]
    return derived_moves(run, records, commits, tips) + strays
