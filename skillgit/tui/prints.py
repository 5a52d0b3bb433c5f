"""What the screens show of a run besides its history: each is what a command prints, and its lines lead on.

All that the commands need is loaded with this module, which is loaded where something is read, in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from skillgit.app.attribution.provenance import blame
from skillgit.app.attribution.why import why
from skillgit.app.history.item import ItemWords, item_words
from skillgit.app.history.items import checks
from skillgit.app.history.items import items as item_table
from skillgit.app.history.matrix import matrix
from skillgit.app.history.requests import ItemsRequest
from skillgit.app.history.show import run_settings, show
from skillgit.app.workspace.context import Context
from skillgit.tui.widgets.painted_lines import Painted, Part, rendered
from skillgit.verbs.command_line import read_words
from skillgit.verbs.verb import ReadingSession
from skillgit.view import rules
from skillgit.view import run_summary as summary
from skillgit.view import show as event
from skillgit.view import why as reason
from skillgit.view.item import asked
from skillgit.view.score_tables import check_lines, matrix_lines
from skillgit.view.score_tables import lines as item_lines
from skillgit.view.surface import Screen
from skillgit.view.text import one_line

Words = tuple[str, ...]
"""A command line behind ``skillgit``."""
_ORIGIN_LINES = 200  # more than a reason has


class Lead(NamedTuple):
    """What a line opens, another print or an item of a run, and what is said below while the cursor is on it."""

    title: str = ""
    words: Words = ()
    item: str = ""
    note: str = ""


class Printout(NamedTuple):
    """What a command prints, and what its lines lead to, by their number from 0, or from the last one back, as -1."""

    lines: Sequence[Painted]
    leads: Mapping[int, Lead]


def read(context: Context, words: Words, ink: Screen) -> Printout:
    """Return what the command of ``words`` prints on ``ink``."""
    lines, leads = _answer(context, words)
    return Printout([(Part(" "), *line) for line in rendered(lines(ink), ink)], leads)


_Answer = tuple[Callable[[Screen], Iterable[str | bytes]], Mapping[int, Lead]]


def _answer(context: Context, words: Words) -> _Answer:
    match words:
        case ("blame", revision):
            lines_of_file = blame(context, revision)
            texts = ((index, row.line, row.text) for index, row in enumerate(lines_of_file.lines, start=1))
            return lambda screen: rules.lines(lines_of_file, screen, whole=True), _reasons(texts, revision)
        case ("why", line, "--rev", revision):
            story = why(context, line, revision)
            name = str(story.origin.address) if story.origin is not None else ""
            lead = Lead(name, ("show", name), note=f"enter shows {name}")
            leads = dict.fromkeys(range(_ORIGIN_LINES), lead) if name else {}
            return lambda screen: reason.lines(story, screen, context.clock()), leads
        case ("show", revision, "--settings"):
            settings = run_settings(context, revision)
            return lambda screen: event.setting_lines(settings, screen), {}
        case ("show", revision):
            report = show(context, revision)
            # git's colours of a difference are none of the screens'
            return lambda screen: event.lines(report, screen, context.clock(), replace(screen, colour=False)), {}
        case ("items", run, "--checks"):
            table = checks(context, run)
            return lambda screen: check_lines(table, screen), {}
        case ("items", run, *flags):
            return _items(context, run, flags)
        case ("matrix", run):
            scores = matrix(context, run, "selection")
            return lambda screen: matrix_lines(scores, screen), {}
        case ("report", run):
            facts = summary.SummaryFacts.read(context, run)
            texts = ((index, row.line, row.text) for index, row in enumerate(facts.rules, -len(facts.rules)))
            return lambda screen: summary.lines(facts, screen), _reasons(texts, str(facts.summary.best.address))
        case _:
            verb, request = read_words(words)
            return (
                lambda screen: verb.run(ReadingSession(context, screen), request).for_people(screen, context.clock()),
                {},
            )


def _reasons(texts: Iterable[tuple[int, int, str]], revision: str) -> Mapping[int, Lead]:
    return {
        index: Lead(f"Why line {line} of {revision}", ("why", str(line), "--rev", revision))
        for index, line, text in texts
        if text.strip()
    }


def _items(context: Context, run: str, flags: Sequence[str]) -> _Answer:
    flaky, never_solved, of_candidates = (flag in flags for flag in ("--flaky", "--never-solved", "--rejected"))
    table = item_table(context, run, ItemsRequest(flaky=flaky, never_solved=never_solved, rejected=of_candidates))
    newest = next(column.name for column in reversed(table.columns) if column.version is not None)
    texts = sayings(context, [f"{run}/{newest}"], [row.item for row in table.rows])
    leads = {
        index: Lead(title=run, item=row.item, note=texts.get(row.item, ""))
        for index, row in enumerate(table.rows, start=1)
    }
    none_matches = [f"no matching items ({table.items} in total)"]
    return lambda screen: item_lines(table, screen) if table.rows else none_matches, leads


def sayings(context: Context, commits: Sequence[str], items: Sequence[str]) -> dict[str, str]:
    """Return on one line what each item asks, and what the newest of the versions answered."""
    return {item: said(words) for item, words in item_words(context, commits, items).items()}


def said(words: ItemWords) -> str:
    if not words.question:
        return ""
    answer = next((one_line(reply.answer) for reply in reversed(words.replies) if reply.answer), "")
    return asked(words.question) + (f"  = {answer}" if answer else "")
