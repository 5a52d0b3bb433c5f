"""The log: one line for each event, with or without a graph of how they hang together in front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from skillgit.app.workspace.skill_choice import labels
from skillgit.domain.event_kinds import EventKind
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.diff import coloured, plain
from skillgit.view.event_marks import LOOKS, Entry
from skillgit.view.surface import Glyphs, Screen, Style
from skillgit.view.text import fit, pad, width

if TYPE_CHECKING:
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True)
class GraphPosition:
    lane: int
    above: tuple[bool, ...]  # for each lane whether a line comes down to the event's row; lanes further on have none
    below: tuple[bool, ...]  # the same for lines that go on under it
    ties: tuple[int, ...]  # the lanes that are tied to the event on its row


@dataclass(slots=True)
class _Lane:
    """A lane that leads to a row."""

    toward: int
    has_line: bool  # not above the newest version of a run, where candidates are beside nothing
    own: bool  # whether it is that of the event's run; otherwise it leads there from another one


def places(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]]) -> Iterator[GraphPosition]:
    """Yield where ``rows``, newest first, stand, each below what rests on it; ``parents``: commit to other parents."""
    lanes = _Lanes([LOOKS[row.kind].beside for row in rows])
    following = _following(rows)
    at = {row.commit: index for index, row in enumerate(rows)}
    above: tuple[bool, ...] = ()
    for index, row in enumerate(rows):
        lane, is_drawn, came = lanes.arrive(index)
        if index in following:
            lanes.taken[lane] = _Lane(following[index], is_drawn or not LOOKS[row.kind].beside, own=True)
        lower = [at[parent] for parent in parents.get(row.commit, ()) if at.get(parent, 0) > index]
        exits = lanes.leave(lane, lower)
        below = lanes.drawn()
        yield GraphPosition(lane, above, below, (*came, *exits))
        above = below


def _following(rows: Sequence[LogRow]) -> dict[int, int]:
    successors, latest = dict[int, int](), dict[str, int]()
    for index, row in enumerate(rows):
        if row.run in latest:
            successors[latest[row.run]] = index
        latest[row.run] = index
    return successors


class _Lanes:
    """The lanes between two rows; ``beside`` says of each event whether it is beside the line of its run."""

    def __init__(self, beside: Sequence[bool]) -> None:
        self._beside = beside
        self._known: tuple[bool, ...] = ()
        self.taken: list[_Lane | None] = []

    def drawn(self) -> tuple[bool, ...]:
        while self.taken and self.taken[-1] is None:
            self.taken.pop()
        lines = tuple([lane is not None and lane.has_line for lane in self.taken])
        self._known = self._known if lines == self._known else lines
        return self._known

    def arrive(self, index: int) -> tuple[int, bool, list[int]]:
        """End the lanes to an event; return its own, the first of its run as in git, if it is drawn, and the others."""
        arrivals = {number: lane for number, lane in enumerate(self.taken) if lane is not None and lane.toward == index}
        usable = [number for number, lane in arrivals.items() if lane.own or not self._beside[index]]
        lines = [number for number in usable if arrivals[number].has_line]
        column = lines[0] if lines else usable[0] if usable else self._free(0)
        for number in arrivals:
            self.taken[number] = None
        return column, bool(lines), [number for number, lane in arrivals.items() if lane.has_line and number != column]

    def leave(self, lane: int, lower: Sequence[int]) -> list[int]:
        """Lead from the event in ``lane`` to each of ``lower``; return the lanes other than its own that do."""
        ties: list[int] = []
        for target in lower:
            number = self._leading(target)
            if number is None:
                number = lane if self.taken[lane] is None else self._free(lane)
                self.taken[number] = _Lane(target, has_line=True, own=False)
            elif (leading := self.taken[number]) is not None:
                leading.has_line = True
            if number != lane:
                ties.append(number)
        return ties

    def _leading(self, target: int) -> int | None:
        """Return a lane that leads to ``target``: the line of a run leads past what is beside it."""
        for number, lane in enumerate(self.taken):
            if lane is not None and lane.toward == target and not (lane.own and self._beside[target]):
                return number
        return None

    def _free(self, first: int) -> int:
        number = next((index for index in range(first, len(self.taken)) if self.taken[index] is None), len(self.taken))
        if number == len(self.taken):
            self.taken.append(None)
        return number


_WIDE, _CLOSE = 4, 2  # columns of a lane: those of its line, and of what is beside it
_CUT = 2  # columns of what stands for the lanes that are not shown: an ellipsis, and an event in one of them
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8


@dataclass(frozen=True, slots=True)
class Drawn:
    row: str  # the graph in front of an event
    below: str  # the graph on the lines between it and the next


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph in front of a log; its rows are all of one width."""

    rows: tuple[Drawn, ...]
    width: int


def draw(rows: Sequence[LogRow], parents: Mapping[str, Sequence[str]], screen: Screen, room: int = 0) -> Graph:
    """Draw the graph of ``rows`` and ``parents``, as for :func:`places`, in ``room`` columns; 0 is any number.

    Lanes move closer together where they would take more. If that is not enough, an ellipsis stands for those that
    are left over, and what happens in one of them is shown behind it.
    """
    positions = list(places(rows, parents))
    lanes = max((max(position.lane + 1, len(position.above), len(position.below)) for position in positions), default=0)
    pitch = _CLOSE if room and lanes * _WIDE - 1 > room else _WIDE
    limit = max(1, (room - _CUT) // pitch) if room and lanes * pitch > room else lanes
    pen = _Pen(screen, pitch, limit, cut=limit < lanes)
    lines = [
        (pen.row(position, row, is_tied=is_tied), pen.below(position))
        for position, row, is_tied in zip(positions, rows, _tied(rows), strict=True)
    ]
    width = max((len(line) for line, _ in lines), default=0)
    return Graph(tuple(Drawn("".join(line) + " " * (width - len(line)), below) for line, below in lines), width)


def _tied(rows: Sequence[LogRow]) -> Iterator[bool]:
    """Yield for each row whether it is the proposal of the slow merge that stands next above it in its run."""
    merges: dict[str, LogRow] = {}
    for row in rows:
        above = merges.get(row.run)
        yield (
            row.kind == EventKind.SLOW_PROPOSED
            and above is not None
            and (above.kind, above.step) == (EventKind.SLOW_MERGED, row.step)
        )
        if row.kind in {EventKind.SLOW_MERGED, EventKind.SLOW_PROPOSED}:
            merges[row.run] = row


class _Pen:
    """What draws the lines of a graph, in ``pitch`` columns for a lane and ``limit`` lanes."""

    def __init__(self, screen: Screen, pitch: int, limit: int, *, cut: bool) -> None:
        self._screen = screen
        self._pitch, self._shown, self._cut = pitch, limit, cut
        self._joints = _joints(screen.glyphs)
        self._below: dict[tuple[tuple[bool, ...], int], str] = {}
        self._last: tuple[tuple[bool, ...], tuple[bool, ...]] = ((), ())
        self._base: list[str] = []

    def row(self, position: GraphPosition, row: LogRow, *, is_tied: bool) -> list[str]:
        """Return the columns on the event's line, without the empty ones at the end."""
        sign = cells.sign(Entry.of_row(row), self._screen)
        own = position.lane * self._pitch
        at = own + (0 if not LOOKS[row.kind].beside else 1 if is_tied else self._pitch // 2)
        columns = self._lines(position, beside=at > own)
        if is_tied:
            columns[own] = self._screen.glyphs.branch
        for edge in position.ties:
            self._lead(columns, position, at, edge)
        columns[at] = sign
        return self._fitted(columns, sign if at >= self._shown * self._pitch else " ")

    def below(self, position: GraphPosition) -> str:
        lanes = max(position.lane + 1, len(position.below))
        margin = self._below.get((position.below, lanes))
        if margin is None:
            glyphs = self._screen.glyphs
            lines = [*position.below, *[False] * (lanes - len(position.below))]
            margin = "".join(f"{glyphs.line if line else ' ':<{self._pitch}}" for line in lines[: self._shown])
            margin += f"{glyphs.ellipsis} " if self._cut and any(lines[self._shown :]) else ""
            self._below[position.below, lanes] = margin
        return margin

    def _lines(self, position: GraphPosition, *, beside: bool) -> list[str]:
        """Return the columns with all lines that pass; that of the event's run, too, if it stands ``beside`` it."""
        own = position.lane
        columns = self._passing(position.above, position.below)
        columns += " " * ((own + 1) * self._pitch - len(columns))
        if not (beside and own < len(position.above) and position.above[own]):
            columns[own * self._pitch] = " "
        return columns

    def _passing(self, above: tuple[bool, ...], below: tuple[bool, ...]) -> list[str]:
        # most events of a run change nothing in the lanes, and there may be hundreds of lanes
        if not (above is self._last[0] and below is self._last[1]):
            signs = (" ", self._screen.glyphs.line)
            space = [" "] * (self._pitch - 1)
            lanes = zip_longest(above, below, fillvalue=False)
            self._last = above, below
            self._base = [column for up, down in lanes for column in (signs[up or down], *space)]
        return self._base.copy()

    def _lead(self, columns: list[str], position: GraphPosition, at: int, edge: int) -> None:
        """Draw the edge between the event's sign and the lane ``edge``; other lines run over it."""
        goal = edge * self._pitch
        step = 1 if goal > at else -1
        for column in range(at + step, goal, step):
            if columns[column] == " ":
                columns[column] = self._screen.glyphs.rule
        behind = any((lane * self._pitch - goal) * step > 0 for lane in position.ties)
        sides = (_LEFT if step > 0 or behind else 0) | (_RIGHT if step < 0 or behind else 0)
        columns[goal] = self._joints[sides | _ends(position, edge)]

    def _fitted(self, columns: list[str], beyond: str) -> list[str]:
        end = self._shown * self._pitch
        if self._cut and any(column != " " for column in columns[end:]):
            return [*columns[:end], self._screen.glyphs.ellipsis, beyond]
        while columns and columns[-1] == " ":
            columns.pop()
        return columns


def _ends(position: GraphPosition, lane: int) -> int:
    up = lane < len(position.above) and position.above[lane]
    down = lane < len(position.below) and position.below[lane]
    return (_UP if up else 0) | (_DOWN if down else 0)


def _joints(glyphs: Glyphs) -> dict[int, str]:
    """Return the sign of a lane by the sides on which something leads there."""
    return {
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


_TITLE_WIDTH = 40
_TITLE_LEAST = 16
_SPACES = 6  # columns between graph, scores, title and age
_EVENT_REST = 33  # columns of an event's line besides its title: sign, label, scores, commit and the space between them


@dataclass(frozen=True, slots=True)
class LogLine:
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
    # titles can be read beside the graph
    graph_room = min(screen.width // 2, max(8, screen.width - fixed_width - _TITLE_LEAST))
    signs = Graph(tuple(Drawn(f"{cells.sign(entry, screen)} ", "") for entry in entries), 2)
    drawing = signs if graph is None else draw(rows, graph, screen, graph_room)
    room = _room(screen, drawing.width + fixed_width, max(map(width, texts)))
    for cell, before, text, after, name in zip(drawing.rows, fronts, texts, backs, names, strict=True):
        title = fit(text, room, screen.glyphs.ellipsis)
        label = screen.paint(Style.FAINT, title[: len(name)]) + title[len(name) :]
        yield LogLine(f"{cell.row} {before}   {pad(label, room)}  {after}".rstrip(), cell.below)


def with_changes(lines: Iterable[LogLine], changes: Iterable[bytes], screen: Screen) -> Iterator[str | bytes]:
    """Yield each event over what it changed; where nobody looks and no graph is drawn, as git's own bytes."""
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
    words = labels({row.skill for row in rows})
    skills = [words[row.skill] for row in rows] if len(words) > 1 else []
    columns = [
        [row.run for row in rows] if runs else [],
        skills,
        [flips.get(row.commit, "") for row in rows] if flips else [],
    ]
    names = [""] * len(rows)
    for column in filter(None, columns):
        widest = max(map(width, column))
        names = [f"{before}{pad(cell, widest)}  " for before, cell in zip(names, column, strict=True)]
    return names


def _room(screen: Screen, fixed_width: int, longest: int) -> int:
    target = max(_TITLE_WIDTH, longest)
    if not screen.width:
        return target
    return max(_TITLE_LEAST, min(target, screen.width - fixed_width))


def front(entry: Entry) -> str:
    return f"{entry.label:<4}{cells.score(entry):<7}{cells.delta(entry):<6}"


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
    return f"{sign}  {front(entry)}   {text}  {screen.paint(Style.OID, numbers.short(commit))}"
