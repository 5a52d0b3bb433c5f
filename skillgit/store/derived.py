"""What follows from a run's events and could be computed again: its version tags and its best branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Accepted, Reverted, RunStarted, SlowMerged
from skillgit.domain.gate import Decision
from skillgit.store import refs
from skillgit.store.transaction import RefUpdate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillgit.domain.event import Event
    from skillgit.store.record import Recorded


def version_of(event: Event) -> int | None:
    """Return the version that ``event`` makes; ``None`` if it makes none."""
    return event.version if isinstance(event, RunStarted | Accepted | SlowMerged | Reverted) else None


def versions(records: Iterable[Recorded]) -> dict[int, str]:
    """Return version to commit."""
    found = ((version_of(record.event), record.commit) for record in records)
    return {version: commit for version, commit in found if version is not None}


def derived_refs(run: str, records: Iterable[Recorded]) -> dict[str, str]:
    """Return the derived refs of ``run`` with the commits that they have to point to."""
    found: dict[str, str] = {}
    for record in records:
        event = record.event
        version = version_of(event)
        if version is None:
            continue
        found[refs.version_tag(run, version)] = record.commit
        if isinstance(event, RunStarted) or (
            isinstance(event, Accepted | SlowMerged) and event.verdict.decision is Decision.ACCEPT_NEW_BEST
        ):
            found[refs.best_branch(run)] = record.commit
    return found


def derived_moves(run: str, records: Iterable[Recorded], stored: Mapping[str, str]) -> list[RefUpdate]:
    """Return the moves that ``records`` ask for where the derived refs of ``run`` stand at ``stored``."""
    wanted = derived_refs(run, records)
    return [
        RefUpdate(name=name, new=commit, derived=True) for name, commit in wanted.items() if stored.get(name) != commit
    ]


def derived_updates(run: str, records: Sequence[Recorded], stored: Mapping[str, str]) -> list[RefUpdate]:
    """Return the moves that bring all derived refs of ``run`` from ``stored`` to where its ``records`` want them.

    A tag of a version that is not in the history is removed: a process was killed before it could move the branch.
    """
    known = versions(records)
    strays = [
        RefUpdate(name=name, new=None, derived=True)
        for name in stored
        if (ref := refs.parse(name)) is not None
        and ref.kind is refs.Kind.TAG
        and ref.run == run
        and ref.number not in known
    ]
    return derived_moves(run, records, stored) + strays
