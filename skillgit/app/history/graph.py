"""How events of several runs hang together: which rest on events of other runs, and an order that shows it.

The order is that of ``git log --topo-order``: nothing is above what rests on it, and the events of a run stay
together as far as that goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.index.rows import LogRow
    from skillgit.store.repo import Repo

# The words of events and origins stand here as the index has them: every start of the log would pay for their types.
_STARTED, _EDITED, _MERGE = EventKind.RUN_STARTED, EventKind.EDITED, "merge"

Parents = dict[str, tuple[str, ...]]
"""Commit to what it rests on besides the event before it in its run, as far as that is an event."""


def parents_beside(repo: Repo, rows: Sequence[LogRow]) -> Parents:
    """Return what ``rows`` rest on besides the events before them, as far as it is among ``rows``.

    A fork rests on the version that it began at, and a merge on the version that it took in.
    """
    commits = {row.commit for row in rows}
    parents_of: Parents = {}
    for row in rows:
        # nothing else has a parent outside its run, and a look at every commit takes longer than the log
        if row.kind in {_STARTED, _EDITED} or row.origin == _MERGE:
            parents = [str(parent) for parent in repo.commit(row.commit).parent_ids]
            beside = parents if row.kind == _STARTED else parents[1:]
            parents_of[row.commit] = tuple(parent for parent in beside if parent in commits)
    return {commit: parents for commit, parents in parents_of.items() if parents}


def in_order(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]]) -> tuple[LogRow, ...]:
    """Return ``rows``, which are newest first, so that a run's events are together and below all that rests on them."""
    below = _below(rows, parents)
    waits = [0] * len(rows)
    for index in (index for indexes in below for index in indexes):
        waits[index] += 1
    free = [index for index in reversed(range(len(rows))) if not waits[index]]
    order: list[int] = []
    while free:
        index = free.pop()
        order.append(index)
        for lower in below[index]:
            waits[lower] -= 1
            if not waits[lower]:
                free.append(lower)
    # after a clock went wrong, times and commits may contradict each other; what goes round in circles is shown, too
    numbers = set(order)
    return tuple(rows[index] for index in (*order, *(index for index in range(len(rows)) if index not in numbers)))


def _below(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]]) -> list[list[int]]:
    """Return for each row the places of the rows that have to be below it."""
    indexes = {row.commit: index for index, row in enumerate(rows)}
    following: dict[str, int] = {}
    below: list[list[int]] = []
    for index in reversed(range(len(rows))):
        row = rows[index]
        after = [following[row.run]] if row.run in following else []
        below.append(
            [*after, *(indexes[parent] for parent in parents.get(row.commit, ()) if indexes[parent] not in after)]
        )
        following[row.run] = index
    return below[::-1]
