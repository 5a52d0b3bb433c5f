"""What the screens show of a run besides its history: each is what a command prints, and its lines lead on.

All that the commands need is loaded where something is read, in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from skillgit.app.workspace.workspace import Workspace
from skillgit.tui.widgets.painted_lines import Painted, Part, rendered
from skillgit.verbs.command_line import read_words
from skillgit.verbs.diff import sayings
from skillgit.verbs.report import IN_SHORT, SummaryRequest
from skillgit.verbs.verb import Answer, ReadingSession
from skillgit.view import rules
from skillgit.view.surface import Screen

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


def read(workspace: Workspace, words: Words, ink: Screen) -> Printout:
    """Return what the command of ``words`` prints on ``ink``; of a report, the run in short, as its page begins."""
    leads: Mapping[int, Lead] = {}
    verb, request = (IN_SHORT, SummaryRequest(run=words[1])) if words[0] == "report" else read_words(words)
    answer = verb.run(ReadingSession(workspace.asked(request), ink), request)
    result: Any = answer.result
    lines: Iterable[str | bytes] = tuple(answer.for_people(ink, workspace.context.clock()))
    match words:
        case ("report", _):
            texts = ((index, row.line, row.text) for index, row in enumerate(result.rules, -len(result.rules)))
            leads = _reasons(texts, str(result.summary.best.address))
        case ("blame", revision):
            texts = ((index, row.line, row.text) for index, row in enumerate(result.lines, start=1))
            leads, lines = _reasons(texts, revision), rules.lines(result, ink, whole=True)
        case ("why", *_) if result.origin is not None:
            name = str(result.origin.address)
            leads = dict.fromkeys(range(_ORIGIN_LINES), Lead(name, ("show", name), note=f"enter shows {name}"))
        case ("items", run, *flags) if not {"--checks", "--models"} & set(flags):
            leads = _items(workspace, run, answer, ink)
    lines = lines or [sentence for sentence, _ in answer.notes]
    return Printout([(Part(" "), *line) for line in rendered(lines, ink)], leads)


def _reasons(texts: Iterable[tuple[int, int, str]], revision: str) -> Mapping[int, Lead]:
    return {
        index: Lead(f"Why line {line} of {revision}", ("why", str(line), "--rev", revision))
        for index, line, text in texts
        if text.strip()
    }


def _items(workspace: Workspace, run: str, answer: Answer[object], ink: Screen) -> Mapping[int, Lead]:
    result: Any = answer.result
    rows: Any = tuple(answer.rows)
    newest = [column.name for column in result.columns if column.version is not None][-1:]
    texts = sayings(workspace, [f"{run}/{name}" for name in newest], [row["item"] for row in rows], ink)
    return {
        index: Lead(run, item=row["item"], note=texts.get(row["item"], "")) for index, row in enumerate(rows, start=1)
    }
