"""How the events of a log hang together: a lane for each run, rejected and slow commits beside it.

A run's line goes from its newest version to its seed. A rejected candidate or a skipped step stands beside it; a slow
proposal that was merged is tied to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.cli.render import entry as cells
from skillgit.cli.render.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.cli.screen import Screen
    from skillgit.index.rows import LogRow

_BESIDE = frozenset({"rejected", "skipped", "slow-proposed", "measured"})
_FREE = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The graph in front of an event.

    Attributes:
        row: Its cells on the event's line.
        below: Its cells on the lines between this event and the next.
    """

    row: str
    below: str


def draw(rows: Sequence[LogRow], screen: Screen) -> Iterator[Drawn]:
    """Yield the graph's cells for each row, newest first."""
    ends = {row.run: index for index, row in enumerate(rows)}
    lanes: list[str] = []
    begun: set[str] = set()
    merged: dict[str, LogRow] = {}
    for index, row in enumerate(rows):
        lane = _lane(lanes, row.run)
        drawn = [_passing(run, screen, begun=run in begun) for run in lanes]
        drawn[lane] = _cell(row, merged.get(row.run), screen, begun=row.run in begun)
        if row.kind not in _BESIDE:
            begun.add(row.run)
        if row.kind in {"slow-merged", "slow-proposed"}:
            merged[row.run] = row
        if index == ends[row.run]:
            lanes[lane] = _FREE
        below = "".join(_passing(run, screen, begun=run in begun) for run in lanes)
        while lanes and lanes[-1] == _FREE:
            lanes.pop()
        yield Drawn("".join(drawn).rstrip(), below)


def _lane(lanes: list[str], run: str) -> int:
    if run in lanes:
        return lanes.index(run)
    if _FREE in lanes:
        lane = lanes.index(_FREE)
        lanes[lane] = run
        return lane
    lanes.append(run)
    return len(lanes) - 1


def _cell(row: LogRow, slow: LogRow | None, screen: Screen, *, begun: bool) -> str:
    """Return the cell of ``row``; ``slow`` is the slow event of its run that stands next above it."""
    glyphs = screen.glyphs
    sign = cells.sign(Entry.of_row(row), screen)
    if row.kind not in _BESIDE:
        return f"{sign}   "
    if row.kind == "slow-proposed" and slow is not None and (slow.kind, slow.step) == ("slow-merged", row.step):
        return f"{glyphs.branch}{sign}  "
    return f"{glyphs.line if begun else ' '} {sign} "


def _passing(run: str, screen: Screen, *, begun: bool) -> str:
    return f"{screen.glyphs.line if run and begun else ' '}   "
