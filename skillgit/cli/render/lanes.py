"""Which lane each event of a graph stands in, and which lanes lead to it; what they look like is no matter here.

A run takes a lane from its newest shown event to its oldest one. A lane that leads from a fork or from a merge to an
event of another run ends there. A lane that has ended is free for what comes below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.index.rows import LogRow

BESIDE = frozenset({"rejected", "skipped", "slow-proposed", "measured"})
"""Kinds of events that stand beside the line of their run."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands.

    Attributes:
        lane: Its lane, from 0.
        above: For each lane whether a line comes down to the event's row; lanes further on have none.
        below: The same for lines that go on under it.
        joined: The lanes that are tied to the event on its row.
    """

    lane: int
    above: tuple[bool, ...]
    below: tuple[bool, ...]
    joined: tuple[int, ...]


@dataclass(slots=True)
class _Lane:
    """A lane that is taken.

    Attributes:
        toward: The next event in it.
        drawn: Whether there is a line: not above the newest version of a run, where candidates stand beside nothing.
        own: Whether it is that of the event's run; otherwise it leads there from another one.
    """

    toward: int
    drawn: bool
    own: bool


def places(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]]) -> Iterator[Place]:
    """Yield where each of ``rows`` stands, newest first.

    Args:
        rows: Events, none of them above what rests on it.
        parents: Commit to the events that it rests on besides the one before it in its run.
    """
    lanes = _Lanes([row.kind in BESIDE for row in rows])
    following = _following(rows)
    at = {row.commit: index for index, row in enumerate(rows)}
    above: tuple[bool, ...] = ()
    for index, row in enumerate(rows):
        lane, drawn, came = lanes.arrive(index)
        if index in following:
            lanes.taken[lane] = _Lane(following[index], drawn or row.kind not in BESIDE, own=True)
        lower = [at[parent] for parent in parents.get(row.commit, ()) if at.get(parent, 0) > index]
        left = lanes.leave(lane, lower)
        below = lanes.drawn()
        yield Place(lane, above, below, (*came, *left))
        above = below


def _following(rows: Sequence[LogRow]) -> dict[int, int]:
    """Return for each event the next one of its run, if there is one."""
    found: dict[int, int] = {}
    latest: dict[str, int] = {}
    for index, row in enumerate(rows):
        if row.run in latest:
            found[latest[row.run]] = index
        latest[row.run] = index
    return found


class _Lanes:
    """The lanes between two rows; ``beside`` says of each event whether it stands beside the line of its run."""

    def __init__(self, beside: Sequence[bool]) -> None:
        self._beside = beside
        self._known: tuple[bool, ...] = ()
        self.taken: list[_Lane | None] = []

    def drawn(self) -> tuple[bool, ...]:
        """Return for each lane whether there is a line in it."""
        while self.taken and self.taken[-1] is None:
            self.taken.pop()
        found = tuple([lane is not None and lane.drawn for lane in self.taken])
        if found != self._known:
            self._known = found
        return self._known

    def arrive(self, index: int) -> tuple[int, bool, list[int]]:
        """End the lanes that lead to an event; return its lane, whether a line came down there, and the others.

        What stands on the line of its run takes the first line that leads there, as in git; what stands beside it
        stays beside it.
        """
        led = {place: lane for place, lane in enumerate(self.taken) if lane is not None and lane.toward == index}
        usable = [place for place, lane in led.items() if lane.own or not self._beside[index]]
        lines = [place for place in usable if led[place].drawn]
        chosen = lines[0] if lines else usable[0] if usable else self._free(0)
        for place in led:
            self.taken[place] = None
        return chosen, bool(lines), [place for place, lane in led.items() if lane.drawn and place != chosen]

    def leave(self, lane: int, lower: Sequence[int]) -> list[int]:
        """Lead from the event in ``lane`` to each of ``lower``; return the lanes other than its own that do."""
        tied: list[int] = []
        for target in lower:
            known = self._leading(target)
            if known is None:
                known = lane if self.taken[lane] is None else self._free(lane)
                self.taken[known] = _Lane(target, drawn=True, own=False)
            else:
                self._begin(known)
            if known != lane:
                tied.append(known)
        return tied

    def _leading(self, target: int) -> int | None:
        """Return a lane that leads to ``target``: the line of a run leads past what stands beside it."""
        for place, lane in enumerate(self.taken):
            if lane is not None and lane.toward == target and not (lane.own and self._beside[target]):
                return place
        return None

    def _begin(self, place: int) -> None:
        lane = self.taken[place]
        if lane is not None:
            lane.drawn = True

    def _free(self, first: int) -> int:
        """Return the first free lane from ``first`` on."""
        found = next((place for place in range(first, len(self.taken)) if self.taken[place] is None), len(self.taken))
        if found == len(self.taken):
            self.taken.append(None)
        return found
