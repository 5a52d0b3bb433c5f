"""One item over all versions: who solved it, and what happened under one of them beside what did under its base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, partialmethod
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.widgets import Static

from skillgit.app.history.item import Attempt, ItemStory, ItemTrajectory, item_story, item_trajectory
from skillgit.errors import SkillgitError
from skillgit.index.rows import LogRow
from skillgit.tui.actions import SearchScreen
from skillgit.tui.keymap import bindings
from skillgit.tui.screens.dialogs import CopyScreen
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Part, RenderedLines, app_of
from skillgit.tui.widgets.paragraphs import rendered
from skillgit.tui.widgets.shown_text import broken, on_one_line, shown
from skillgit.view.item import who_solves
from skillgit.view.score_tables import sign
from skillgit.view.surface import Screen, Style

if TYPE_CHECKING:
    from textual.binding import BindingType


_ROLES: Final = {"user": Style.REF, "assistant": Style.EDITED, "tool": Style.SLOW, "system": Style.FAINT}
_INDENT: Final = "  "
_LONG: Final = 100_000  # characters of a conversation that is laid out beside the screen


class TrajectoryView(RenderedLines):
    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    _trajectory: ItemTrajectory | None = None

    def show(self, trajectory: ItemTrajectory) -> None:
        """Show what happened, from its beginning; one that is shown already stays where it is."""
        if trajectory == self._trajectory and not self._message_parts:
            return
        self._trajectory = trajectory
        self.renew(scroll=True)

    @property
    def heavy(self) -> bool:
        return self._trajectory is not None and sum(len(turn.text) for turn in self._trajectory.turns) > _LONG

    def made(self) -> Sequence[Painted]:
        return () if self._trajectory is None else list(self._lines(self._trajectory))

    def _lines(self, trajectory: ItemTrajectory) -> Iterator[Painted]:
        for number, turn in enumerate(trajectory.turns, start=1):
            role = shown(turn.role, self.ink).text
            yield (Part(f"{number} {role}", _ROLES.get(turn.role, Style.REF)),)
            yield from self._text(turn.text)
            yield ()
        for label, text in (("answer", trajectory.attempt.answer), ("feedback", trajectory.attempt.feedback)):
            yield (Part(label, Style.STRONG),)
            yield from self._text(text or "none")

    def _text(self, text: str) -> Iterator[Painted]:
        ink, columns = self.ink, self.room - len(_INDENT)
        for line in text.split("\n"):
            row = shown(line.removesuffix("\r"), ink).text
            yield from ((Part(_INDENT + row[start:end]),) for start, end in broken(row, columns))


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
        sizes = [sum(cell_len(part.text) for part in cell) + _GAP for cell in cells]
        first, last = _window(sizes, self.cursor, self.size.width - 2 * _GAP)
        more = ink.glyphs.ellipsis
        parts = [Part(more if first else " ", Style.FAINT), Part(" ")]
        for cell in cells[first:last]:
            parts += [*cell, Part(" " * _GAP)]
        self.say(parts[:-1], [Part(more, Style.FAINT)] if last < len(cells) else [])


def _cell(attempt: Attempt, ink: Screen, *, is_chosen: bool) -> Painted:
    name = shown(attempt.name, ink).text
    [mark] = rendered([sign(attempt.outcome, replace(ink, colour=True), attempt.absence)])
    style = Style.STRONG if is_chosen else "" if attempt.version is not None else Style.FAINT
    return (Part(_CHOSEN[ink.unicode] if is_chosen else " ", Style.RUNNING), Part(f"{name} ", style), *mark)


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

    ``against`` takes the place of the base, whatever is chosen; it may belong to another run.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("item", "find")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    DEFAULT_CSS = """
    ItemScreen {
        #question { height: auto; max-height: 2; padding: 0 1; background: $background; }
        #outcome { background: $panel; }
        #both { layout: horizontal; height: 1fr; background: $background; }
        &.-narrow #both { layout: vertical; }
        .trajectory { width: 1fr; height: 1fr; }
        &.-narrow .trajectory:focus-within { height: 2fr; }
        &.-wide #base { border-left: solid $panel; }
        &.-wide.-ascii #base { border-left: ascii $panel; }
    }
    """

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
            for side in ("chosen", "base"):
                with Vertical(id=side, classes="trajectory"):
                    yield OneLine(id=f"{side}-title", fill="─")
                    yield TrajectoryView(id=f"{side}-turns")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.set_class(not self._facts.unicode, "-ascii")
        self._say("head", [Part(f" Item {on_one_line(self.item, self._facts)}", Style.STRONG)])
        for view in self.query(TrajectoryView):
            view.tell("reading …" if self._facts.unicode else "reading ...")
        self._view("chosen").focus()
        self.reload()

    def reload(self) -> None:
        read, then, fail = app_of(self).read, self._show, self._without
        read(item_story, self.run_name, self.item, limit=None, then=then, on_error=fail, group="item")

    @property
    def _facts(self) -> Screen:
        return app_of(self).facts

    def _say(self, name: str, parts: list[Part], right: list[Part] | None = None) -> None:
        self.query_one(f"#{name}", OneLine).say(parts, right or [])

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
        facts = self._facts
        kind = f"  {on_one_line(story.task_type, facts)}" if story.task_type else ""
        summary = self._facts.dotted([*who_solves(story), *(f"noisy: {doubt}" for doubt in story.doubts[:1])])
        title = Part(f" Item {on_one_line(story.item, facts)}", Style.STRONG)
        self._say("head", [title, Part(f"{kind}  run {story.run}", Style.FAINT)], [Part(f"{summary} ", Style.FAINT)])
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
        story = self._story
        if story is None:
            return
        attempt = story.attempts[index]
        self.version = attempt.name
        self.query_one(VersionStrip).show(story.attempts, index)
        self._say("outcome", _outcome(attempt, self._facts))
        self._say("chosen-title", _title(attempt, self._facts))
        self._read(attempt.commit, "chosen")
        if self._against is not None:
            self._show_against(self._against, story)
            return
        earlier = [before for before in story.attempts[:index] if before.version is not None]
        if not earlier:
            self._say("base-title", [Part(" no base ", Style.FAINT)])
            self._view("base").tell(f"{attempt.name} rests on no other version")
            return
        self._say("base-title", _title(earlier[-1], self._facts, " (base)"))
        self._read(earlier[-1].commit, "base")

    def _show_against(self, row: LogRow, story: ItemStory) -> None:
        """Show the other side of a comparison; what it scored is known from here if it is of the same run."""
        own = next((attempt for attempt in story.attempts if attempt.commit == row.commit), None)
        label = on_one_line(row.address.seen_from(story.run), self._facts)
        self._say("base-title", _title(own, self._facts) if own is not None else [Part(f" {label} ", Style.STRONG)])
        self._read(row.commit, "base")

    def _read(self, commit: str, side: str) -> None:
        view = self._view(side)
        read, group = app_of(self).read, f"item-{side}"
        read(
            item_trajectory,
            self.item,
            commit,
            then=view.show,
            on_error=partial(view.fail, style=Style.FAINT),
            group=group,
        )

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

    def action_copy_menu(self) -> None:
        story = self._story
        if story is None:
            return
        attempt = story.attempts[self.query_one(VersionStrip).cursor]
        choices = [
            ("i", "item", story.item),
            ("q", "question", story.question),
            ("a", "answer", attempt.answer),
            ("o", "commit", attempt.commit),
        ]
        self.app.push_screen(CopyScreen([choice for choice in choices if choice[2]]), self.copy)


def _title(attempt: Attempt, facts: Screen, suffix: str = "") -> list[Part]:
    answer = on_one_line(attempt.answer, facts)
    parts = [
        Part(f" {attempt.name}{suffix} ", Style.STRONG),
        *rendered([sign(attempt.outcome, replace(facts, colour=True), attempt.absence)])[0],
    ]
    return [*parts, Part(f" {answer} ")]


def _outcome(attempt: Attempt, facts: Screen) -> list[Part]:
    parts = [Part(f" {attempt.name}  ", Style.STRONG), Part(_scores(attempt))]
    reason = on_one_line(attempt.feedback, facts)
    return [*parts, Part(f"  {reason}", Style.FAINT)] if reason else parts


def _scores(attempt: Attempt) -> str:
    cell = attempt.outcome
    if cell is None:
        return (
            "not measured on it" if attempt.absence is None else f"not known: {attempt.absence.sentence(attempt.name)}"
        )
    if cell.hard is None or cell.soft is None:
        return "failed to evaluate"
    text = f"hard {cell.hard:g}  soft {cell.soft:.2f}"
    if cell.noted:
        return f"{text}  measured after the run"
    return text if cell.measured else f"({text})  inherited"
