"""How the events of a log hang together: a lane for each run, rejected and slow commits beside it.

A run's line goes from its newest version to its seed. A rejected candidate or a skipped step stands beside it; a slow
proposal that was merged is tied to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import entry as cells
from skillgit.cli.render.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.cli.screen import Screen
    from skillgit.index.rows import LogRow

_BESIDE = frozenset({"rejected", "skipped", "slow-proposed"})
_FREE = ""


def draw(rows: Sequence[LogRow], screen: Screen) -> Iterator[str]:
    """Yield the graph's cells for each row, newest first."""
    ends = {row.run: index for index, row in enumerate(rows)}
    lanes: list[str] = []
    begun: set[str] = set()
    for index, row in enumerate(rows):
        lane = _lane(lanes, row.run)
        drawn = [_passing(run, screen, begun=run in begun) for run in lanes]
        drawn[lane] = _cell(rows, index, screen, begun=row.run in begun)
        yield "".join(drawn).rstrip()
        if row.kind not in _BESIDE:
            begun.add(row.run)
        if index == ends[row.run]:
            lanes[lane] = _FREE
        while lanes and lanes[-1] == _FREE:
            lanes.pop()


def _lane(lanes: list[str], run: str) -> int:
    if run in lanes:
        return lanes.index(run)
    if _FREE in lanes:
        lane = lanes.index(_FREE)
        lanes[lane] = run
        return lane
    lanes.append(run)
    return len(lanes) - 1


def _cell(rows: Sequence[LogRow], index: int, screen: Screen, *, begun: bool) -> str:
    row, glyphs = rows[index], screen.glyphs
    sign = cells.sign(Entry.of_row(row), screen)
    if row.kind not in _BESIDE:
        return f"{sign}   "
    if row.kind == "slow-proposed" and _merged(rows, index):
        return f"{glyphs.branch}{sign}  "
    return f"{glyphs.line if begun else ' '} {sign} "


def _merged(rows: Sequence[LogRow], index: int) -> bool:
    row = rows[index]
    newer = (other for other in reversed(rows[:index]) if other.run == row.run)
    return next((other.kind == "slow-merged" and other.step == row.step for other in newer), False)


def _passing(run: str, screen: Screen, *, begun: bool) -> str:
    return f"{screen.glyphs.line if run and begun else ' '}   "
