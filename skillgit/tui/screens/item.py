"""One item over all versions: who solved it, and what happened under one of them and under its base."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, partialmethod
from typing import ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widgets import Static

from skillgit.app.history.requests import ItemsRequest
from skillgit.errors import SkillgitError
from skillgit.index.rows import LogRow
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import Choice, SearchScreen
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine
from skillgit.tui.widgets.painted_lines import (
    AT_ONCE,
    Painted,
    PaintedLines,
    Part,
    RenderedLines,
    columns,
    on_one_line,
    rendered,
)
from skillgit.verbs.items import ITEM_STORY, ITEM_TRAJECTORY, Attempt, ItemStory, ItemTrajectory
from skillgit.view import numbers
from skillgit.view.item import who_solves
from skillgit.view.score_tables import sign
from skillgit.view.surface import Screen, Style
from skillgit.view.text import broken, inert, one_line

_ROLES: Final = {"user": Style.REF, "assistant": Style.EDITED, "tool": Style.SLOW, "system": Style.FAINT}
_INDENT: Final = "  "
_LONG: Final = 100_000  # characters of a conversation that is laid out in a thread


class TrajectoryView(RenderedLines[ItemTrajectory], inherit_bindings=False):
    """What happened, from its beginning; one that is shown already stays where it is."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")  # arrows turn to other versions

    def show_trajectory(self, trajectory: ItemTrajectory) -> None:
        if trajectory != self.facts or self._message:
            self.show(trajectory, from_top=True)

    def weight(self, facts: ItemTrajectory) -> int:
        return sum(len(turn.text) for turn in facts.turns) * AT_ONCE // _LONG

    def made(self, facts: ItemTrajectory) -> Sequence[Painted]:
        lines: list[Painted] = []
        for number, turn in enumerate(facts.turns, start=1):
            lines.append((Part(f"{number} {on_one_line(turn.role, self.ink)}", _ROLES.get(turn.role, Style.REF)),))
            lines += [*self._text(turn.text), ()]
        for label, text in (("answer", facts.attempt.answer), ("feedback", facts.attempt.feedback)):
            lines += [(Part(label, Style.STRONG),), *self._text(text or "none")]
        return lines

    def _text(self, text: str) -> Sequence[Painted]:
        room = self.room - len(_INDENT)
        rows = (self.ink.encodable(inert(line.removesuffix("\r"))) for line in text.split("\n"))
        return [(Part(_INDENT + row[start:end]),) for row in rows for start, end in broken(row, room)]


_GAP = 2
_CHOSEN = {True: "▸", False: ">"}


class VersionStrip(OneLine):
    """Versions and candidates with the sign of their outcome, oldest first."""

    attempts: Sequence[Attempt] = ()
    cursor = 0

    def show(self, attempts: Sequence[Attempt], index: int) -> None:
        self.attempts, self.cursor = attempts, index
        self._arrange()

    @on(events.Resize)
    def _arrange(self) -> None:
        """Say so many attempts as there is room for, from the chosen one outwards, and that there are more."""
        if not self.attempts or not self.size.width:
            return
        ink = app_of(self).facts
        cells = [_cell(attempt, ink, is_chosen=index == self.cursor) for index, attempt in enumerate(self.attempts)]
        first, last = _window([columns(cell) + _GAP for cell in cells], self.cursor, self.size.width - 2 * _GAP)
        more = ink.glyphs.ellipsis
        parts = [Part(f"{more if first else ' '} ", Style.FAINT)]
        for cell in cells[first:last]:
            parts += [*cell, Part(" " * _GAP)]
        self.say(parts[:-1], [Part(more, Style.FAINT)] if last < len(cells) else [])


def _cell(attempt: Attempt, ink: Screen, *, is_chosen: bool) -> Painted:
    name = one_line(attempt.name)
    if is_chosen or attempt.version is None:
        name = ink.paint(Style.STRONG if is_chosen else Style.FAINT, name)
    pointer = ink.paint(Style.RUNNING, _CHOSEN[ink.unicode]) if is_chosen else " "
    return rendered([f"{pointer}{name} {sign(attempt.outcome, ink, attempt.absence)}"], ink)[0]


def _window(sizes: Sequence[int], index: int, room: int) -> tuple[int, int]:
    """Return which stretch around ``index`` fits into ``room``: as many on both sides, more where one has fewer."""
    first, last, width = index, index + 1, sizes[index]
    while True:
        grown = False
        if first and width + sizes[first - 1] <= room:
            first, width, grown = first - 1, width + sizes[first - 1], True
        if last < len(sizes) and width + sizes[last] <= room:
            last, width, grown = last + 1, width + sizes[last], True
        if not grown:
            return first, last


_QUESTION = 2  # lines of the question above the versions; all of it is the first turn of each trajectory


class ItemScreen(SearchScreen):
    """One item and all attempts at it, with the trajectories of two: ``version``, by default the newest, and its base.

    ``against`` takes the place of the base for any choice; it may belong to another run.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("item", "find")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it

    action_screen_close = SearchScreen.action_screen_back

    def __init__(self, item: str, run: str, version: str = "", *, against: LogRow | None = None) -> None:
        super().__init__()
        self._against = against
        self.item, self.run_name, self.version = item, run, version
        self._story: ItemStory | None = None
        self._side = "chosen"

    def compose(self) -> ComposeResult:
        yield OneLine(id="head")
        yield Static("", id="question", markup=False)
        yield VersionStrip(id="strip")
        yield OneLine(id="outcome")
        with Container(id="both"):
            for side in ("base", "chosen"):  # the older one on the left
                with Vertical(id=side, classes="trajectory"):
                    yield OneLine(id=f"{side}-title", fill="─")
                    yield TrajectoryView(id=f"{side}-turns")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.set_class(not self._facts.unicode, "-ascii")
        self.say("head", self._facts.paint(Style.STRONG, f" Item {one_line(self.item)}"))
        for view in self.query(TrajectoryView):
            view.tell_reading()
        self._view("chosen").focus()
        self.reload()

    def reload(self) -> None:
        request = ItemsRequest(run=self.run_name, item=self.item)
        app_of(self).read(ITEM_STORY.ask, request, then=self._show, on_error=self._without, group="item")

    @property
    def _facts(self) -> Screen:
        return app_of(self).facts

    def _view(self, side: str) -> TrajectoryView:
        return self.query_one(f"#{side}-turns", TrajectoryView)

    def _without(self, error: SkillgitError) -> None:
        self._view("chosen").fail(error)
        self._view("base").tell("")

    def _show(self, story: ItemStory) -> None:
        self._story = story
        names = [attempt.name for attempt in story.attempts]
        versions = [attempt.name for attempt in story.attempts if attempt.version is not None]
        if self.version not in names:
            self.version = (versions or names)[-1]
        ink = self._facts
        title = ink.paint(Style.STRONG, f" Item {one_line(story.item)}")
        kind = ink.paint(
            Style.FAINT, "".join(f"  {part}" for part in (one_line(story.task_type), f"run {story.run}") if part)
        )
        summary = ink.dotted([*who_solves(story), *(f"noisy: {doubt}" for doubt in story.doubts[:1])])
        self.say("head", title + kind, ink.paint(Style.FAINT, f"{summary} "))
        self._show_question()
        self._choose(names.index(self.version))

    @on(events.Resize)
    def _show_question(self) -> None:
        if self._story is None:
            return
        text = on_one_line(self._story.question, self._facts) or "the question is not known here"
        room = _QUESTION * max(20, self.size.width - 4)
        if len(text) > room:
            # a prompt asks at its end as a rule, behind what it is about
            head = room // 4
            text = f"{text[:head].rstrip()} {self._facts.glyphs.ellipsis} {text[head + 3 - room :].lstrip()}"
        self.query_one("#question", Static).update(Text(text))

    def _choose(self, index: int) -> None:
        story, ink = self._story, self._facts
        if story is None:
            return
        attempt = story.attempts[index]
        self.version = attempt.name
        self.query_one(VersionStrip).show(story.attempts, index)
        reason = ink.paint(Style.FAINT, f"  {one_line(attempt.feedback)}".rstrip())
        self.say("outcome", f"{ink.paint(Style.STRONG, f' {attempt.name}  ')}{_scores(attempt)}{reason}")
        self._show_side("chosen", attempt.commit, attempt.name, attempt)
        earlier = [before for before in story.attempts[:index] if before.version is not None]
        if self._against is not None:  # what it scored is known from here if it is of the same run
            against = self._against
            own = next((row for row in story.attempts if row.commit == against.commit), None)
            self._show_side("base", against.commit, own.name if own else against.address.seen_from(story.run), own)
        elif earlier:
            self._show_side("base", earlier[-1].commit, f"{earlier[-1].name} (base)", earlier[-1])
        else:
            self.say("base-title", ink.paint(Style.FAINT, " no base "))
            self._view("base").tell(f"{attempt.name} rests on no other version")

    def _show_side(self, side: str, commit: str, label: str, attempt: Attempt | None) -> None:
        ink, view = self._facts, self._view(side)
        title = ink.paint(Style.STRONG, f" {one_line(label)} ")
        if attempt is not None:
            title += f"{sign(attempt.outcome, ink, attempt.absence)} {one_line(attempt.answer)} "
        self.say(f"{side}-title", title)
        request = ItemsRequest(item=self.item, trajectory=commit)
        then, fail = view.show_trajectory, partial(view.fail, style=Style.FAINT)
        app_of(self).read(ITEM_TRAJECTORY.ask, request, then=then, on_error=fail, group=f"item-{side}")

    def _move(self, by: int) -> None:
        strip = self.query_one(VersionStrip)
        index = strip.cursor + by
        if 0 <= index < len(strip.attempts):
            self._choose(index)

    action_item_earlier = partialmethod(_move, -1)
    action_item_later = partialmethod(_move, 1)

    def action_find_open(self) -> None:
        self._side = "base" if self.focused is self._view("base") else "chosen"
        super().action_find_open()

    @property
    def searched(self) -> PaintedLines:
        return self._view(self._side)

    def on_painted_lines_sought(self, message: PaintedLines.Sought) -> None:
        where = f"{message.hit} of {message.hits}" if message.hits else "nothing found for"
        self.notify(f"{where}  {on_one_line(message.text, self._facts)}", timeout=2, markup=False)

    def choices(self) -> Sequence[Choice]:
        if self._story is None:
            return ()
        attempt = self._story.attempts[self.query_one(VersionStrip).cursor]
        texts = (self._story.item, self._story.question, attempt.answer, attempt.commit)
        return list(zip("iqao", ("item", "question", "answer", "commit"), texts, strict=True))


def _scores(attempt: Attempt) -> str:
    cell = attempt.outcome
    if cell is None:
        return (
            "not measured on it" if attempt.absence is None else f"not known: {attempt.absence.sentence(attempt.name)}"
        )
    if cell.hard is None or cell.soft is None:
        return "failed to evaluate"
    text = f"hard {numbers.score(cell.hard)}  soft {numbers.score(cell.soft)}"
    if cell.noted:
        return f"{text}  measured after the run"
    return text if cell.measured else f"({text})  inherited"
