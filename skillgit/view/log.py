"""The log: one line for each event, with or without a graph of how they hang together in front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Final, NamedTuple

from skillgit.app.workspace.skill_choice import labels
from skillgit.domain.event_kinds import EventKind
from skillgit.index.rows import LogRow
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.diff import coloured, plain
from skillgit.view.event_marks import LOOKS, Entry
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Table
from skillgit.view.text import fit, pad, width


class GraphPosition(NamedTuple):
    lane: int
    above: tuple[bool, ...]  # for each lane whether a line comes down to the event's row; lanes further on have none
    below: tuple[bool, ...]  # the same for lines that go on under it
    ties: tuple[int, ...]  # the lanes that are tied to the event on its row


@dataclass(slots=True)
class _Lane:
    """A lane that leads to a row."""

    toward: int
    has_line: bool  # not above the newest version of a run, where candidates have no line next to them
    own: bool  # whether it is that of the event's run; otherwise it leads there from another one


def places(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]]) -> Iterator[GraphPosition]:
    """Yield where ``rows``, newest first, belong, each below what rests on it; ``parents``: commit to other parents.

    A run has a lane, the first one that was free, as in git. An event ends the lanes that lead to it and opens those
    to what it rests on; what is off the line of its run, as a candidate is, ends no lane of another run.
    """
    is_beside = [LOOKS[row.kind].beside for row in rows]
    at = {row.commit: index for index, row in enumerate(rows)}
    following, latest = dict[int, int](), dict[str, int]()
    for index, row in enumerate(rows):
        if row.run in latest:
            following[latest[row.run]] = index
        latest[row.run] = index
    lanes: list[_Lane | None] = []

    def free(first: int) -> int:
        number = next((index for index in range(first, len(lanes)) if lanes[index] is None), len(lanes))
        if number == len(lanes):
            lanes.append(None)
        return number

    above: tuple[bool, ...] = ()
    for index, row in enumerate(rows):
        arrivals = {number: lane for number, lane in enumerate(lanes) if lane is not None and lane.toward == index}
        usable = [number for number, lane in arrivals.items() if lane.own or not is_beside[index]]
        lines = [number for number in usable if arrivals[number].has_line]
        own = lines[0] if lines else usable[0] if usable else free(0)
        for number in arrivals:
            lanes[number] = None
        if index in following:
            lanes[own] = _Lane(following[index], bool(lines) or not is_beside[index], own=True)
        ties = [number for number, lane in arrivals.items() if lane.has_line and number != own]
        for target in (at[parent] for parent in parents.get(row.commit, ()) if at.get(parent, 0) > index):
            # the line of a run leads past what is next to it
            leading = (
                number
                for number, lane in enumerate(lanes)
                if lane is not None and lane.toward == target and not (lane.own and is_beside[target])
            )
            lane_to_target = next(leading, None)
            if lane_to_target is None:
                lane_to_target = own if lanes[own] is None else free(own)
                lanes[lane_to_target] = _Lane(target, has_line=True, own=False)
            elif (open_lane := lanes[lane_to_target]) is not None:
                open_lane.has_line = True
            if lane_to_target != own:
                ties.append(lane_to_target)
        while lanes and lanes[-1] is None:
            lanes.pop()
        below = tuple([lane is not None and lane.has_line for lane in lanes])
        below = above if below == above else below  # most events change nothing, which the pen is quick to see
        yield GraphPosition(own, above, below, tuple(ties))
        above = below


_WIDE, _CLOSE = 4, 2  # columns of a lane: those of its line, and of what is next to it
_CUT = 2  # columns of the sign for lanes that are not shown: an ellipsis, and an event in one of them
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8


class Drawn(NamedTuple):
    row: str  # the graph in front of an event
    below: str  # the graph on the lines between it and the next


class Graph(NamedTuple):
    """The graph in front of a log; its rows are all of one width."""

    rows: tuple[Drawn, ...]
    width: int


def draw(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]], screen: Screen, room: int = 0) -> Graph:
    """Draw the graph of ``rows`` and ``parents``, as for :func:`places`, in ``room`` columns; 0 is any number.

    Lanes move closer together where they would take more. If that is not enough, an ellipsis replaces those that
    are left over, and what happens in one of them is shown behind it.
    """
    positions = list(places(rows, parents))
    lanes = max((max(position.lane + 1, len(position.above), len(position.below)) for position in positions), default=0)
    pitch = _CLOSE if room and lanes * _WIDE - 1 > room else _WIDE
    limit = max(1, (room - _CUT) // pitch) if room and lanes * pitch > room else lanes
    pen = _Pen(screen, pitch, limit, cut=limit < lanes)
    merges: dict[str, LogRow] = {}
    lines: list[tuple[list[str], str]] = []
    for position, row in zip(positions, rows, strict=True):
        # a proposal is tied to the slow merge that is next above it in its run
        lines.append((pen.row(position, row, is_tied=is_tied(row, merges.get(row.run))), pen.below(position)))
        if row.kind in {EventKind.SLOW_MERGED, EventKind.SLOW_PROPOSED}:
            merges[row.run] = row
    width = max((len(line) for line, _ in lines), default=0)
    return Graph(tuple(Drawn("".join(line) + " " * (width - len(line)), below) for line, below in lines), width)


def is_tied(row: LogRow, above: LogRow | None) -> bool:
    """Say whether ``row`` is the proposal of the slow merge ``above``, to which it is tied and not to the line."""
    merge = (EventKind.SLOW_MERGED, row.step)
    return row.kind == EventKind.SLOW_PROPOSED and above is not None and (above.kind, above.step) == merge


class _Pen:
    """What draws the lines of a graph, in ``pitch`` columns for a lane and ``limit`` lanes."""

    def __init__(self, screen: Screen, pitch: int, limit: int, *, cut: bool) -> None:
        self._screen, self._pitch, self._shown, self._cut = screen, pitch, limit, cut
        glyphs = screen.glyphs
        # the sign of a lane by the sides on which something leads there
        self._joints = {
            _UP | _LEFT: glyphs.up_left,
            _UP | _RIGHT: glyphs.up_right,
            _DOWN | _LEFT: glyphs.down_left,
            _DOWN | _RIGHT: glyphs.down_right,
            _UP | _DOWN | _LEFT: glyphs.branch_left,
            _UP | _DOWN | _RIGHT: glyphs.branch,
            _UP | _LEFT | _RIGHT: glyphs.branch_up,
            _DOWN | _LEFT | _RIGHT: glyphs.branch_down,
            _UP | _DOWN | _LEFT | _RIGHT: glyphs.cross,
        }
        self._margins: dict[tuple[tuple[bool, ...], int], str] = {}
        self._last: tuple[tuple[bool, ...], tuple[bool, ...]] = ((), ())
        self._passing: list[str] = []

    def row(self, position: GraphPosition, row: LogRow, *, is_tied: bool) -> list[str]:
        """Return the columns on the event's line, without the empty ones at the end."""
        glyphs, pitch = self._screen.glyphs, self._pitch
        sign = cells.sign(Entry.of_row(row), self._screen)
        own = position.lane * pitch
        at = own + (0 if not LOOKS[row.kind].beside else 1 if is_tied else pitch // 2)
        # most events of a run change nothing in the lanes, and there may be hundreds of lanes
        if not (position.above is self._last[0] and position.below is self._last[1]):
            lanes = zip_longest(position.above, position.below, fillvalue=False)
            space = [" "] * (pitch - 1)
            self._last = position.above, position.below
            self._passing = [column for up, down in lanes for column in (glyphs.line if up or down else " ", *space)]
        columns = self._passing.copy()
        columns += " " * (own + pitch - len(columns))
        if not (at > own and position.lane < len(position.above) and position.above[position.lane]):
            columns[own] = " "  # the line of the run passes only an event next to it
        if is_tied:
            columns[own] = glyphs.branch
        for edge in position.ties:
            self._lead(columns, position, at, edge)
        columns[at] = sign
        end = self._shown * pitch
        if self._cut and any(column != " " for column in columns[end:]):
            return [*columns[:end], glyphs.ellipsis, sign if at >= end else " "]
        while columns and columns[-1] == " ":
            columns.pop()
        return columns

    def _lead(self, columns: list[str], position: GraphPosition, at: int, edge: int) -> None:
        """Draw the edge between the event's sign and the lane ``edge``; other lines run over it."""
        goal = edge * self._pitch
        step = 1 if goal > at else -1
        for column in range(at + step, goal, step):
            if columns[column] == " ":
                columns[column] = self._screen.glyphs.rule
        behind = any((lane * self._pitch - goal) * step > 0 for lane in position.ties)
        sides = (_LEFT if step > 0 or behind else 0) | (_RIGHT if step < 0 or behind else 0)
        up, down = (edge < len(lines) and lines[edge] for lines in (position.above, position.below))
        columns[goal] = self._joints[sides | (_UP if up else 0) | (_DOWN if down else 0)]

    def below(self, position: GraphPosition) -> str:
        lanes = max(position.lane + 1, len(position.below))
        margin = self._margins.get((position.below, lanes))
        if margin is None:
            lines = [*position.below, *[False] * (lanes - len(position.below))]
            sign = self._screen.glyphs.line
            margin = "".join(f"{sign if line else ' ':<{self._pitch}}" for line in lines[: self._shown])
            margin += f"{self._screen.glyphs.ellipsis} " if self._cut and any(lines[self._shown :]) else ""
            self._margins[position.below, lanes] = margin
        return margin


EVENTS: Final[Table[LogRow]] = Table(
    "log/1",
    "events",
    "run commit kind version base step epoch score delta measured decision origin time is_best is_head refs "
    "bound title skill",
    head="run",
)
_TITLE_WIDTH = 40
_TITLE_LEAST = 16
_SPACES = 3  # columns between graph, scores, title and age
_FRONT = 20  # columns of label, score and difference, with the space behind them
_EVENT_REST = 33  # columns of an event's line besides its title: sign, label, scores, commit and the space between them


class LogLine(NamedTuple):
    """One event of the log, and what is in front of the lines between it and the next one."""

    text: str
    margin: str = ""


def lines(rows: Sequence[LogRow], screen: Screen, now: datetime) -> Iterator[str]:
    return (line.text for line in log_lines(rows, screen, now))


def log_lines(
    rows: Sequence[LogRow],
    screen: Screen,
    now: datetime,
    *,
    graph: Mapping[str, Sequence[str]] | None = None,
    runs: bool = False,
    flips: Mapping[str, str] | None = None,
) -> Iterator[LogLine]:
    """Yield the log; by commit, ``graph`` has other parents, to be drawn, and ``flips`` what was done to an item."""
    if not rows:
        return
    entries = [Entry.of_row(row) for row in rows]
    fronts = [front(entry) for entry in entries]
    backs = [back(row, screen, now) for row in rows]
    names = _names(rows, flips or {}, runs=runs)
    texts = [name + cells.title(entry) for name, entry in zip(names, entries, strict=True)]
    fixed_width = max(map(width, fronts)) + max(map(width, backs)) + _SPACES
    # titles stay readable next to the graph
    graph_room = min(screen.width // 2, max(8, screen.width - fixed_width - _TITLE_LEAST))
    signs = Graph(tuple(Drawn(f"{cells.sign(entry, screen)} ", "") for entry in entries), 2)
    drawing = signs if graph is None else draw(rows, graph, screen, graph_room)
    room = max(_TITLE_WIDTH, *map(width, texts))
    if screen.width:
        room = max(_TITLE_LEAST, min(room, screen.width - drawing.width - fixed_width))
    for cell, before, text, after, name in zip(drawing.rows, fronts, texts, backs, names, strict=True):
        title = fit(text, room, screen.glyphs.ellipsis)
        label = screen.paint(Style.FAINT, title[: len(name)]) + title[len(name) :]
        yield LogLine(f"{cell.row} {before}{pad(label, room)}  {after}".rstrip(), cell.below)


def with_changes(lines: Iterable[LogLine], changes: Iterable[bytes], screen: Screen) -> Iterator[str | bytes]:
    """Yield each event over what it changed; without a terminal and without a graph, as git's own bytes."""
    gap: str | None = None
    for line, change in zip(lines, changes, strict=True):
        if gap is not None:
            yield gap
        yield line.text
        margin = line.margin.rstrip()
        gap = margin if change else None
        if not change:
            continue
        yield margin
        if screen.colour or screen.terminal or line.margin:
            text = change.decode(errors="replace")
            for part in coloured(text, screen) if screen.colour else plain(text):
                yield f"{line.margin}{part}"
        else:
            yield change


def _names(rows: Sequence[LogRow], flips: Mapping[str, str], *, runs: bool) -> list[str]:
    """Return what is in front of the titles: the run, the skill where there are several, what was done to items."""
    skills = labels({row.skill for row in rows})
    columns = [
        [row.run for row in rows] if runs else [],
        [skills[row.skill] for row in rows] if len(skills) > 1 else [],
        [flips.get(row.commit, "") for row in rows] if flips else [],
    ]
    names = [""] * len(rows)
    for column in filter(None, columns):
        widest = max(map(width, column))
        names = [f"{before}{pad(cell, widest)}  " for before, cell in zip(names, column, strict=True)]
    return names


def front(entry: Entry) -> str:
    """Return label, score and difference, in columns that hold all but a difference of 1 with space behind it."""
    return f"{f'{entry.label:<4}{cells.score(entry):<7}{cells.delta(entry)}':<{_FRONT}}"


def back(row: LogRow, screen: Screen, now: datetime) -> str:
    names = ref_names(row)
    refs = f"  {screen.paint(Style.REF, ' '.join(names))}" if names else ""
    age = screen.paint(Style.FAINT, f"{numbers.age(row.time, now):>3}")
    return f"{age}  {screen.paint(Style.OID, numbers.short(row.commit))}{refs}"


def ref_names(row: LogRow) -> list[str]:
    """Return the branches that point at an event, those of its own run without the run's name."""
    names: list[str] = []
    for ref in row.refs:
        kind, _, rest = ref.partition("/")
        own = rest == row.run and kind in {"run", "best", "slow"}
        if not rest.startswith(f"{row.run}/"):
            names.append(kind if own else ref)
    return names


def line(row: LogRow, screen: Screen, now: datetime) -> str:
    return next(lines([row], screen, now))


def event_line(entry: Entry, commit: str, screen: Screen, *, columns: int = 0) -> str:
    """Return an event that was written just now, without its age; 0 columns leave the title as long as it is."""
    sign = cells.sign(entry, screen)
    title = cells.title(entry)
    room = max(_TITLE_LEAST, min(_TITLE_WIDTH, columns - _EVENT_REST)) if columns else max(_TITLE_WIDTH, width(title))
    text = pad(fit(title, room, screen.glyphs.ellipsis), room)
    return f"{sign}  {front(entry)}{text}  {screen.paint(Style.OID, numbers.short(commit))}"
