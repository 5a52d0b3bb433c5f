"""One event in full: what was decided, on which numbers, why, what it changed, and what people said of it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Metric
from skillgit.domain.event import (
    NOBODY,
    Accepted,
    BudgetSource,
    Edited,
    Event,
    Inherited,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
)
from skillgit.domain.gate import NoRegression
from skillgit.domain.rewrite import UpdateMode
from skillgit.view import event as cells
from skillgit.view import words
from skillgit.view.diff import coloured, plain
from skillgit.view.event import Entry
from skillgit.view.items import name
from skillgit.view.screen import Style
from skillgit.view.text import inert, one_line, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from skillgit.app.change.note import Noted
    from skillgit.app.history.show import Shown
    from skillgit.app.known.evaluations import KnownEvaluation
    from skillgit.domain.appendix import AppendixCounts
    from skillgit.domain.cost import Cost
    from skillgit.domain.edit_words import LeftOut
    from skillgit.domain.evaluation import EvaluationSummary, Gauge
    from skillgit.domain.event import PatchCounts
    from skillgit.domain.gate import Verdict
    from skillgit.view.screen import Screen


def known_facts(shown: Shown, screen: Screen, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each known evaluation, how often the test split was looked at, then the notes."""
    for place, found in enumerate(shown.evaluations):
        yield "known" if place == 0 else "", _line(found, shown.gauge, screen, now)
    if shown.test_evaluations:
        yield "", f"{words.plural(shown.test_evaluations, 'evaluation')} on the test split"
    for one in shown.feedback:
        said_by = f" {screen.glyphs.dot} ".join((one.id, one_line(one.author), words.ago(one.time, now)))
        yield "noted", f"{inert(one.text)}\n{said_by}"


def scores(measured: EvaluationSummary | KnownEvaluation, gauge: Gauge, screen: Screen) -> str:
    """Return the score under the gate's metric, then hard and soft where it is neither of them alone."""
    both = f"hard {words.score(measured.hard)} {screen.glyphs.dot} soft {words.score(measured.soft)}"
    if gauge.metric is Metric.HARD:
        return both
    if gauge.metric is Metric.SOFT:
        return f"soft {words.score(measured.soft)} {screen.glyphs.dot} hard {words.score(measured.hard)}"
    return f"mixed {words.score(gauge.of(measured.hard, measured.soft))} {screen.glyphs.dot} {both}"


def _line(found: KnownEvaluation, gauge: Gauge, screen: Screen, now: datetime) -> str:
    source = "end of the run" if found.source == "run-finished" else found.target
    parts = (
        f"{found.split} {scores(found, gauge, screen)}",
        f"{found.scored} of {words.plural(found.n, 'item')} scored",
        source,
        words.ago(found.time, now) if found.time is not None else "",
    )
    return f" {screen.glyphs.dot} ".join(part for part in parts if part)


_WIDTH = 120
"""So much of a note is enough to know it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """A note as a row of columns."""

    id: str
    name: str
    commit: str
    author: str
    time: datetime
    text: str


def noted(result: Noted) -> Iterator[str]:
    """Yield what was written."""
    yield f"note {result.id} is on {_name(result)}; undo: skillgit note --remove {result.id}"


def removed(result: Noted) -> Iterator[str]:
    """Yield what was withdrawn."""
    yield f"note {result.id} on {_name(result)} counts no more: {shorten(one_line(result.text), _WIDTH)}"


def masked(result: Noted, said: str) -> bool:
    """Say whether the note is not what the user wrote."""
    return result.text != said.strip()


def listed(notes: Sequence[Noted], screen: Screen, now: datetime) -> Iterator[str]:
    """Yield the notes, oldest first."""
    if not notes:
        yield "nobody has noted anything there"
    for note in notes:
        dot = f" {screen.glyphs.dot} "
        head = dot.join((_name(note), one_line(note.author), words.ago(note.time, now)))
        yield f"{screen.paint(Style.OID, note.id)}  {head}"
        yield from (f"    {line}" for line in inert(note.text).splitlines())


def rows(notes: Sequence[Noted]) -> list[NoteRow]:
    """Return notes as rows of columns."""
    return [
        NoteRow(
            id=note.id,
            name=_name(note),
            commit=note.row.commit,
            author=note.author,
            time=note.time,
            text=note.text,
        )
        for note in notes
    ]


def _name(note: Noted) -> str:
    return f"{note.row.run}/{name(note.row)}"


_LABEL = 8
_WIDEST = 100


def lines(shown: Shown, screen: Screen, now: datetime, diff_screen: Screen) -> Iterator[str]:
    """Yield everything about an event; ``diff_screen`` tells whether the diff is to be coloured."""
    yield from _head(shown, screen, now)
    yield from _why(shown.event, screen)
    yield ""
    for label, text in (*_facts(shown, screen), *known_facts(shown, screen, now)):
        yield from _fact(label, text, screen)
    if shown.diff:
        yield ""
        yield from coloured(shown.diff, diff_screen) if diff_screen.colour else plain(shown.diff)


def _head(shown: Shown, screen: Screen, now: datetime) -> Iterator[str]:
    row, entry = shown.row, Entry.of_row(shown.row)
    dot = f" {screen.glyphs.dot} "
    named = f"{screen.paint(Style.STRONG, entry.label)}  "
    score = f"   {cells.score(entry).strip()} {words.delta(row.delta) if row.measured else ''}".rstrip()
    decided = screen.paint(cells.style(entry), f"{cells.glyph(entry, screen.glyphs)} {cells.decision(entry)}")
    yield f"{named}{decided}{score}"
    place = [
        row.run,
        f"epoch {row.epoch}" if row.epoch else "",
        f"step {row.step}" if row.step else "",
        f"base v{row.base}" if row.base is not None else "",
        words.ago(row.time, now),
    ]
    yield dot.join(part for part in place if part)
    refs = f"  {screen.paint(Style.REF, ' '.join(row.refs))}" if row.refs else ""
    yield f"{screen.paint(Style.OID, row.commit)}{refs}"
    yield ""
    yield screen.paint(Style.STRONG, cells.title(entry))


def _why(event: Event, screen: Screen) -> Iterator[str]:
    columns = min(screen.width, _WIDEST) if screen.width else 0
    for paragraph in event.why.split("\n\n") if event.why else ():
        yield ""
        yield from wrap(paragraph, columns)


def _fact(label: str, text: str, screen: Screen) -> Iterator[str]:
    columns = min(screen.width, _WIDEST) - _LABEL if screen.width else 0
    for number, line in enumerate(part for own in text.split("\n") for part in wrap(own, columns)):
        yield f"{screen.paint(Style.FAINT, label.ljust(_LABEL)) if number == 0 else ' ' * _LABEL}{line}"


def _facts(shown: Shown, screen: Screen) -> Iterator[tuple[str, str]]:
    event, gauge = shown.event, shown.gauge
    match event:
        case RunStarted():
            yield from _start(event, gauge, screen)
        case Accepted() | Rejected():
            yield from _candidate(event, gauge, shown.left_out, screen)
        case Skipped():
            yield "edits", _counts(event, screen)
            yield from left_out(shown.left_out, event.patch)
        case SlowProposed():
            yield from _slow(event, gauge, screen)
        case SlowMerged() | Measured() | Reverted():
            yield from _version(event, gauge, screen)
        case Edited():
            yield "author", event.author
        case RunFinished():
            yield "outcome", event.outcome.value
            for evaluation in event.evaluations:
                yield evaluation.split.value, f"v{evaluation.version}  {summary(evaluation, gauge, screen)}"
    yield from _paid(event, screen)


def _version(event: SlowMerged | Measured | Reverted, gauge: Gauge, screen: Screen) -> Iterator[tuple[str, str]]:
    if isinstance(event, Reverted):
        yield "text", f"that of v{event.target}"
    yield "score", _measured(event.evaluation, gauge, screen)
    if event.verdict is not None:
        yield "gate", gate(event.verdict, screen)
    if not isinstance(event, SlowMerged):
        yield from _flips(event.fixed, event.broken, screen)


def _paid(event: Event, screen: Screen) -> Iterator[tuple[str, str]]:
    if isinstance(event, SlowMerged | Edited) or event.models == NOBODY:
        return
    judge = f", judge {event.models.judge}" if event.models.judge else ""
    yield "models", f"target {event.models.target}, optimizer {event.models.optimizer}{judge}"
    yield from _spent(event.cost, screen)


def _spent(cost: Cost, screen: Screen) -> Iterator[tuple[str, str]]:
    yield "cost", words.cost(cost, screen)
    for part in cost.parts:
        yield "", f"{part.role} {part.stage}: {words.cost(part.cost, screen)}"


def _start(event: RunStarted, gauge: Gauge, screen: Screen) -> Iterator[tuple[str, str]]:
    yield "skill", event.skill
    yield "score", _measured(event.evaluation, gauge, screen)
    if event.fork_of:
        yield "fork of", event.fork_of
    yield "digests", f"config {event.config}, splits {event.splits}, environment {event.environment}"


def left_out(edits: Sequence[LeftOut], patch: PatchCounts) -> Iterator[tuple[str, str]]:
    """Yield the edits that were chosen and not applied, with the reasons; or that nobody knows them here."""
    for place, edit in enumerate(edits):
        yield "skipped" if place == 0 else "", one_line(f"{edit.edit} ({edit.status}: {edit.reason})")
    if patch.skipped and not edits:
        yield "skipped", f"{words.plural(patch.skipped, 'edit')}, for reasons that are not known here"


def _candidate(
    event: Accepted | Rejected, gauge: Gauge, edits: Sequence[LeftOut], screen: Screen
) -> Iterator[tuple[str, str]]:
    yield "score", summary(event.evaluation, gauge, screen)
    yield "gate", gate(event.verdict, screen, bound=event.evaluation.stopped)
    yield "edits", _counts(event, screen)
    for edit in event.edits:
        support = f"support {edit.support} {edit.source.value}"
        yield "", f"{edit.op.value} {edit.file}, {support}"
    yield from left_out(edits, event.patch)
    if event.appendix is not None:
        yield "notes", _appendix(event.appendix)
    yield from _flips(event.fixed, event.broken, screen, event.evaluation)


def _appendix(appendix: AppendixCounts) -> str:
    together = f", put together from {appendix.consolidated}" if appendix.consolidated else ""
    return f"{words.plural(appendix.added, 'new reminder')}, {appendix.total} in all{together}"


def _slow(event: SlowProposed, gauge: Gauge, screen: Screen) -> Iterator[tuple[str, str]]:
    if event.evaluation is not None:
        yield "score", summary(event.evaluation, gauge, screen)
    if event.verdict is not None:
        stopped = event.evaluation is not None and event.evaluation.stopped
        yield "gate", gate(event.verdict, screen, bound=stopped)
    yield from _flips(event.fixed, event.broken, screen, event.evaluation)
    if event.guidance:
        yield "says", event.guidance
    if event.memory:
        yield "memory", event.memory


def _flips(
    fixed: tuple[str, ...], broken: tuple[str, ...], screen: Screen, evaluation: EvaluationSummary | None = None
) -> Iterator[tuple[str, str]]:
    if fixed:
        yield "fixed", f"{len(fixed)}: {words.ids(fixed, screen)}"
    if broken:
        yield "broken", f"{len(broken)}: {words.ids(broken, screen)}"
    if evaluation is not None and evaluation.stopped:
        yield "items", words.not_measured(evaluation.n, evaluation.unneeded, len(fixed), len(broken))


def _counts(event: Accepted | Rejected | Skipped, screen: Screen) -> str:
    patch = event.patch
    counts = (
        f"{patch.applied} applied",
        f"{patch.skipped} skipped",
        f"{patch.ranked} ranked",
        f"{patch.merged} merged",
        _budget(patch),
        *([] if patch.mode is UpdateMode.PATCH else [patch.mode.value]),
    )
    return f" {screen.glyphs.dot} ".join(counts)


def _budget(patch: PatchCounts) -> str:
    if patch.budget is None:
        return "no budget"
    by = "" if patch.by is BudgetSource.SCHEDULE else f" by {patch.by.value}"
    return f"budget {patch.budget}{by}"


def summary(evaluation: EvaluationSummary, gauge: Gauge, screen: Screen) -> str:
    """Return what was measured: the score under the gate's metric, hard, soft and on how many items."""
    measured = f"{evaluation.scored} of {words.plural(evaluation.n, 'item')} scored"
    told = f"{scores(evaluation, gauge, screen)} {screen.glyphs.dot} {measured}"
    if not evaluation.stopped:
        return told
    saved = evaluation.unneeded - evaluation.spare
    return f"{told}, then the decision was settled: {words.plural(saved, 'item')} not rolled out"


def _measured(evaluation: EvaluationSummary | Inherited, gauge: Gauge, screen: Screen) -> str:
    if isinstance(evaluation, Inherited):
        return f"inherited from v{evaluation.version}"
    return summary(evaluation, gauge, screen)


def gate(verdict: Verdict, screen: Screen, *, bound: bool = False) -> str:
    """Return what a gate compared and decided, with all numbers; ``bound`` if the score is an upper bound."""
    sign = ">" if verdict.score > verdict.current else "=" if _ties(verdict) else screen.glyphs.at_most
    score = f"{screen.glyphs.at_most if bound else ''}{words.score(verdict.score)}"
    compared = f"{verdict.metric.value} {score} {sign} current {words.score(verdict.current)}"
    flipped = f"{verdict.fixed} fixed, {verdict.broken} broken, {words.chance(verdict.p)}"
    best = f"best {words.score(verdict.best)}"
    return f"{compared}, {best} {screen.glyphs.arrow} {verdict.decision.value} ({_policy(verdict)}; {flipped})"


def _ties(verdict: Verdict) -> bool:
    """Say whether the candidate passed because its score is not lower."""
    return verdict.gated and verdict.decision.accepted and verdict.score == verdict.current


def _policy(verdict: Verdict) -> str:
    """Return how the gate compared, with the numbers of its policy."""
    parts = [verdict.policy]
    if verdict.alpha is not None:
        parts.append(f"alpha {verdict.alpha:g}")
    if verdict.margin is not None:
        parts.append(f"margin {verdict.margin:g}")
    if verdict.no_regression is not NoRegression.NONE:
        parts.append(f"no regression {verdict.no_regression.value}: {verdict.blocked} blocked")
    if verdict.repeats:
        parts.append(f"{words.plural(verdict.repeats, 'repeat')}")
    return ", ".join(parts) if verdict.gated else "no gate"
