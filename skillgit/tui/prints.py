"""What the screens show of a run besides its history: each is what a command prints, and its lines lead on.

Use cases and renderers are loaded by whoever reads, in a thread: the history is painted without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from skillgit.domain.cost import Grouping
from skillgit.tui.widgets.printed import Print, PrintRow
from skillgit.view.surface import Screen
from skillgit.view.text import one_line

if TYPE_CHECKING:
    from textual.screen import Screen as Opened

    from skillgit.app.attribution.provenance import Blame
    from skillgit.app.attribution.why import Story
    from skillgit.app.history.item import ItemWords
    from skillgit.app.history.items import ItemTable
    from skillgit.app.history.show import RunSettings
    from skillgit.app.workspace.context import Context
    from skillgit.view.run_summary import SummaryFacts


def _screen(title: str, *prints: Print) -> Callable[[], Opened[None]]:
    def opened() -> Opened[None]:
        from skillgit.tui.screens.printed import PrintedScreen  # noqa: PLC0415 - it is opened now and then

        return PrintedScreen(title, prints)

    return opened


def version_text(revision: str, now: datetime) -> Print:
    """Return the whole document of a version; a line opens why it is there."""

    def read(context: Context) -> Blame:
        from skillgit.app.attribution.provenance import blame  # noqa: PLC0415 - see the module

        return blame(context, revision)

    def lines(result: Blame, screen: Screen) -> Iterator[str]:
        from skillgit.view.rules import lines  # noqa: PLC0415 - see the module

        return lines(result, screen, whole=True)

    def rows(result: Blame) -> Mapping[int, PrintRow]:
        return _reasons(enumerate(((row.line, row.text) for row in result.lines), start=1), revision, now)

    return Print(name="Text", words=("blame", revision), read=read, lines=lines, rows=rows)


def _reasons(
    numbered_lines: Iterable[tuple[int, tuple[int, str]]], revision: str, now: datetime
) -> Mapping[int, PrintRow]:
    return {
        index: PrintRow(_screen(f"Why line {number} of {revision}", reason(revision, number, now)))
        for index, (number, text) in numbered_lines
        if text.strip()
    }


def reason(revision: str, line: int, now: datetime) -> Print:
    """Return why a line of a version is there; it opens the event that brought it."""

    def read(context: Context) -> Story:
        from skillgit.app.attribution.why import why  # noqa: PLC0415 - see the module

        return why(context, str(line), revision)

    def lines(story: Story, screen: Screen) -> Iterator[str]:
        from skillgit.view.why import lines  # noqa: PLC0415 - see the module

        return lines(story, screen, now)

    def rows(story: Story) -> Mapping[int, PrintRow]:
        if story.origin is None:
            return {}
        name = str(story.origin.address)
        return dict.fromkeys(range(_LINES), PrintRow(_screen(name, event(name, now)), f"enter shows {name}"))

    return Print(name="Why", words=("why", str(line), "--rev", revision), read=read, lines=lines, rows=rows)


_LINES: Final = 200  # more than a reason has


def event(revision: str, now: datetime) -> Print:
    def read(context: Context) -> Any:  # noqa: ANN401 - the view takes it
        from skillgit.app.history.show import show  # noqa: PLC0415 - see the module

        return show(context, revision)

    def lines(report: Any, screen: Screen) -> Iterator[str]:  # noqa: ANN401 - as above
        from skillgit.view.show import lines  # noqa: PLC0415 - see the module

        # git's colours of a difference are none of the screens'
        return lines(report, screen, now, replace(screen, colour=False))

    return Print(name="Event", words=("show", revision), read=read, lines=lines)


def run_items(run: str) -> tuple[Print, ...]:
    """Return the items of a run by its versions, all and some of them; an item opens its history."""
    names = ("Items", "Noisy", "Never solved", "With rejected")
    tables = (_item_table(run, name, choice) for name, choice in zip(names, ("", *_FLAGS), strict=True))
    return (*tables, _checks(run), _models(run))


_FLAGS: Final = ("flaky", "never-solved", "rejected")
_Items = tuple["ItemTable", "dict[str, ItemWords]"]


def _item_table(run: str, name: str, choice: str) -> Print:
    def read(context: Context) -> _Items:
        from skillgit.app.history.item import item_words  # noqa: PLC0415 - see the module
        from skillgit.app.history.items import items  # noqa: PLC0415 - see the module
        from skillgit.app.history.requests import ItemsRequest  # noqa: PLC0415 - as above

        flaky, never_solved, of_candidates = (choice == flag for flag in _FLAGS)
        table = items(context, run, ItemsRequest(flaky=flaky, never_solved=never_solved, rejected=of_candidates))
        newest = next(column.name for column in reversed(table.columns) if column.version is not None)
        return table, item_words(context, [f"{run}/{newest}"], [row.item for row in table.rows])

    def lines(both: _Items, screen: Screen) -> Iterator[str]:
        from skillgit.view.score_tables import lines  # noqa: PLC0415 - see the module

        return lines(both[0], screen) if both[0].rows else iter([f"none of the {both[0].items} items is like that"])

    def rows(both: _Items) -> Mapping[int, PrintRow]:
        table, words = both
        return {
            index: PrintRow(partial(_item, row.item, run), said(words.get(row.item)))
            for index, row in enumerate(table.rows, start=1)
        }

    flags = (f"--{choice}",) if choice else ()
    return Print(name=name, words=("items", run, *flags), read=read, lines=lines, rows=rows)


def said(words: ItemWords | None) -> str:
    """Return on one line what an item asks, and what the newest of the versions answered."""
    from skillgit.view.item import asked  # noqa: PLC0415 - see the module

    if words is None or not words.question:
        return ""
    answer = next((one_line(reply.answer) for reply in reversed(words.replies) if reply.answer), "")
    return asked(words.question) + (f"  = {answer}" if answer else "")


def _item(item: str, run: str) -> Opened[None]:
    from skillgit.tui.screens.item import ItemScreen  # noqa: PLC0415 - it is opened now and then

    return ItemScreen(item, run)


def _checks(run: str) -> Print:
    def read(context: Context) -> Any:  # noqa: ANN401 - the view takes it
        from skillgit.app.history.items import checks  # noqa: PLC0415 - see the module

        return checks(context, run)

    def lines(table: Any, screen: Screen) -> Iterator[str]:  # noqa: ANN401 - as above
        from skillgit.view.score_tables import check_lines  # noqa: PLC0415 - see the module

        return check_lines(table, screen)

    return Print(name="Checks", words=("items", run, "--checks"), read=read, lines=lines)


def _models(run: str) -> Print:
    def read(context: Context) -> Any:  # noqa: ANN401 - the view takes it
        from skillgit.app.history.matrix import matrix  # noqa: PLC0415 - see the module

        return matrix(context, run, "selection")

    def lines(table: Any, screen: Screen) -> Iterator[str]:  # noqa: ANN401 - as above
        from skillgit.view.score_tables import matrix_lines  # noqa: PLC0415 - see the module

        return matrix_lines(table, screen)

    return Print(name="Models", words=("items", run, "--models"), read=read, lines=lines)


def run_cost(run: str) -> tuple[Print, ...]:
    """Return what a run has cost, by role and stage and by everything else that it can be added up by."""
    return (_cost(run, None), *(_cost(run, by) for by in Grouping))


def _cost(run: str, by: Grouping | None) -> Print:
    def read(context: Context) -> Any:  # noqa: ANN401 - the view takes it
        from skillgit.app.history.cost import cost  # noqa: PLC0415 - see the module

        return cost(context, run, by=by)

    def lines(result: Any, screen: Screen) -> Iterator[str]:  # noqa: ANN401 - as above
        from skillgit.view.plan import cost_lines  # noqa: PLC0415 - see the module

        return cost_lines(result, screen)

    flags = ("--by", by.value) if by is not None else ()
    return Print(name=by.value.capitalize() if by else "In all", words=("cost", run, *flags), read=read, lines=lines)


def run_settings(run: str) -> Print:
    """Return the settings that a run recorded."""

    def read(context: Context) -> RunSettings:
        from skillgit.app.history.show import run_settings  # noqa: PLC0415 - see the module

        return run_settings(context, f"{run}/v0")

    def lines(settings: RunSettings, screen: Screen) -> Iterator[str]:
        from skillgit.view.show import setting_lines  # noqa: PLC0415 - see the module

        return setting_lines(settings, screen)

    return Print(name="Settings", words=("show", f"{run}/v0", "--settings"), read=read, lines=lines)


def run_summary(run: str, now: datetime) -> Print:
    """Return a run in short; a rule of its best version opens why it is there."""

    def read(context: Context) -> SummaryFacts:
        from skillgit.view.run_summary import SummaryFacts  # noqa: PLC0415 - see the module

        return SummaryFacts.read(context, run)

    def lines(facts: SummaryFacts, screen: Screen) -> Iterator[str]:
        from skillgit.view.run_summary import lines  # noqa: PLC0415 - see the module

        return lines(facts, screen)

    def rows(facts: SummaryFacts) -> Mapping[int, PrintRow]:
        numbered_lines = ((index, (row.line, row.text)) for index, row in enumerate(facts.rules, -len(facts.rules)))
        return _reasons(numbered_lines, str(facts.summary.best.address), now)

    return Print(name="In short", words=("report", run), read=read, lines=lines, rows=rows)
