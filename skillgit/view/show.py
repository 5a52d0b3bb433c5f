"""One event in full: what was decided, on which numbers, why, what it changed, and what people said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from json import loads
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import LeftOut
from skillgit.domain.evaluation import EvaluationSummary, Gauge, Metric, cut_phrase, solved_count
from skillgit.domain.event import NOBODY, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import NoRegression, Verdict
from skillgit.domain.proposal import BudgetSource, PatchCounts
from skillgit.index.rows import LogRow
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.diff import coloured, plain
from skillgit.view.event_marks import Entry
from skillgit.view.items import check_scores
from skillgit.view.search import search_facts
from skillgit.view.surface import Screen, Style
from skillgit.view.text import inert, one_line, under, wrap

if TYPE_CHECKING:
    from skillgit.app.history.diff.items import ItemChange
    from skillgit.app.history.show import RunSettings, Shown
    from skillgit.app.recorded.evaluation_notes import KnownEvaluation


def known_facts(report: Shown, screen: Screen, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each known evaluation, how often the test split was looked at, then the notes."""

    def line(evaluation: KnownEvaluation) -> str:
        parts = (
            f"{evaluation.split} {scores(evaluation, report.gauge, screen)}",
            f"{evaluation.scored} of {numbers.plural(evaluation.n, 'item')} scored",
            "end of the run" if evaluation.source == "run-finished" else evaluation.target,
            evaluation.remark,
            numbers.ago(evaluation.time, now) if evaluation.time is not None else "",
        )
        return screen.dotted(parts)

    yield from under("known", map(line, report.evaluations))
    if report.test_evaluations:
        yield "", f"{numbers.plural(report.test_evaluations, 'evaluation')} on the test split"
    for note in report.feedback:
        said_by = screen.dotted((note.id, one_line(note.author), numbers.ago(note.time, now)))
        yield "noted", f"{inert(note.text)}\n{said_by}"


def scores(
    evaluation: EvaluationSummary | KnownEvaluation, gauge: Gauge, screen: Screen, items: Sequence[ItemChange] = ()
) -> str:
    """Return the score under the gate's metric, then hard and soft where it is neither of them alone.

    ``items`` are those that were measured, where they are here.
    """
    outcomes = [item.after for item in items if item.after is not None]
    count = solved_count(outcomes) if gauge.metric is Metric.HARD and len(outcomes) == evaluation.scored else None
    hard = f"hard {numbers.counted(evaluation.hard, evaluation.scored, count)}"
    both = f"{hard} {screen.glyphs.dot} soft {numbers.score(evaluation.soft)}"
    if gauge.metric is Metric.HARD:
        return both
    if gauge.metric is Metric.SOFT:
        return f"soft {numbers.score(evaluation.soft)} {screen.glyphs.dot} {hard}"
    return f"mixed {numbers.score(gauge.of(evaluation.hard, evaluation.soft))} {screen.glyphs.dot} {both}"


def setting_lines(report: RunSettings, screen: Screen) -> Iterator[str]:
    """Yield ``key=value`` for each setting, those faint that are defaults."""
    for setting in report.settings:
        value = loads(setting.value)
        line = f"{setting.key}={one_line(value) if isinstance(value, str) else setting.value}"
        yield screen.paint(Style.FAINT, line) if setting.chosen == "default" else line


_CHECKS = 12
_LABEL = 8
_WIDEST = 100


_FIRST = frozenset({"score", "gate", "fixed", "broken", "items"})
"""What comes before the difference of an event, by label."""


def lines(report: Shown, screen: Screen, now: datetime, diff_screen: Screen) -> Iterator[str]:
    """Yield everything about an event: what the gate saw, what changed and why, then what else is recorded.

    The seed changed nothing, so that its text comes last. ``diff_screen`` says whether the diff is to be coloured.
    """
    facts = _grouped(all_facts(report, screen, now))
    diff = coloured(report.diff, diff_screen) if diff_screen.colour else plain(report.diff)
    change = ["", *diff] if report.diff else []
    columns = min(screen.width, _WIDEST)
    yield from _head(report, screen, now)
    yield from _labelled([fact for fact in facts if fact[0] in _FIRST], screen, columns)
    yield from change if report.row.base is not None else ()
    for paragraph in report.event.why.split("\n\n") if report.event.why else ():
        yield ""
        yield from wrap(paragraph, columns)
    yield from _labelled([fact for fact in facts if fact[0] not in _FIRST], screen, columns)
    yield from change if report.row.base is None else ()


def _labelled(facts: Sequence[tuple[str, Sequence[str]]], screen: Screen, columns: int) -> Iterator[str]:
    if facts:
        yield ""
    for label, texts in facts:
        parts = (part for text in texts for own in text.split("\n") for part in wrap(own, max(0, columns - _LABEL)))
        for number, line in enumerate(parts):
            yield f"{screen.paint(Style.FAINT, label.ljust(_LABEL)) if number == 0 else ' ' * _LABEL}{line}"


def _grouped(facts: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return labels with all texts that belong to them."""
    groups: list[tuple[str, list[str]]] = []
    for label, text in facts:
        if label or not groups:
            groups.append((label, []))
        groups[-1][1].append(text)
    return groups


def all_facts(report: Shown, screen: Screen, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield label and text of everything that is known of an event; an empty label continues the one before."""
    yield from search_facts(report)
    yield from _facts(report, screen)
    yield from _checks(report, screen)
    yield from known_facts(report, screen, now)
    yield from under("beside", map(one_line, report.shortcuts))


def recorded_facts(report: Shown, screen: Screen) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what the commit of an event says, a label with the lines that belong to it."""
    return ((label, tuple(texts)) for label, texts in _grouped(_facts(report, screen)))


def _head(report: Shown, screen: Screen, now: datetime) -> Iterator[str]:
    row, entry = report.row, Entry.of_row(report.row)
    yield f"{screen.paint(Style.STRONG, entry.label)}  {cells.outcome(entry, screen)}"
    yield screen.dotted([row.run, *placed(row, now)])
    refs = f"  {screen.paint(Style.REF, ' '.join(row.refs))}" if row.refs else ""
    yield f"{screen.paint(Style.OID, row.commit)}{refs}"
    yield ""
    yield screen.paint(Style.STRONG, cells.title(entry))


def placed(row: LogRow, now: datetime) -> list[str]:
    """Return where an event is in its run, what it is made of, and its age."""
    made_of = cells.made_of(row) or (f"base {version_label(row.base)}" if row.base is not None else "")
    epoch, step = f"epoch {row.epoch}" if row.epoch else "", f"step {row.step}" if row.step else ""
    return [epoch, step, made_of, numbers.ago(row.time, now)]


def _facts(report: Shown, screen: Screen) -> Iterator[tuple[str, str]]:
    event, gauge = report.event, report.gauge

    def flips(
        fixes: tuple[str, ...], breaks: tuple[str, ...], evaluation: EvaluationSummary | None = None
    ) -> Iterator[tuple[str, str]]:
        for label, items in (("fixed", fixes), ("broken", breaks)):
            if items:
                yield label, f"{len(items)}: {numbers.ids(items, screen)}"
        if evaluation is not None and evaluation.stopped:
            yield "items", numbers.not_measured(evaluation.n, evaluation.unneeded, len(fixes), len(breaks))

    def score() -> str:
        if event.inherited is not None:
            return f"inherited from {version_label(event.inherited)}"
        return summary(event.evaluation, gauge, screen, report.items)

    match event.kind:
        case EventKind.RUN_STARTED:
            yield "skill", event.skill
            yield "score", score()
            if event.fork_of:
                yield "fork of", event.fork_of
            yield from under("servers", map(numbers.served, event.served))
            yield "digests", f"config {event.config}, splits {event.splits}, environment {event.environment}"
        case EventKind.ACCEPTED | EventKind.REJECTED:
            # the gate compared with the version that the candidate was made of, by name if it is an older one
            is_older = event.base < event.version - 1 if event.kind is EventKind.ACCEPTED else event.at is not None
            against = version_label(event.base) if is_older else "current"
            yield "score", summary(event.evaluation, gauge, screen, report.items)
            yield "gate", gate(event.verdict, screen, bound=event.is_bound, against=against)
            yield "edits", _counts(event, screen)
            for edit in event.edits:
                yield "", f"{edit.op.value} {edit.file}, support {edit.support} {edit.source.value}"
            yield from left_out(report.left_out, event.patch)
            if event.appendix is not None:
                old = event.appendix.consolidated
                together = f", put together from {old}" if old else ""
                reminders = numbers.plural(event.appendix.added, "new reminder")
                yield "notes", f"{reminders}, {event.appendix.total} in all{together}"
            yield from flips(event.fixed, event.broken, event.evaluation)
        case EventKind.SKIPPED:
            yield "edits", _counts(event, screen)
            yield from left_out(report.left_out, event.patch)
        case EventKind.SLOW_PROPOSED:
            if event.evaluation is not None:
                yield "score", summary(event.evaluation, gauge, screen, report.items)
            if event.verdict is not None:
                yield "gate", gate(event.verdict, screen, bound=event.is_bound)
            yield from flips(event.fixed, event.broken, event.evaluation)
            yield from ((label, text) for label, text in (("says", event.guidance), ("memory", event.memory)) if text)
        case EventKind.EDITED:
            yield "author", event.author
        case EventKind.RUN_FINISHED:
            yield "outcome", event.outcome.value
            for evaluation in event.evaluations:
                version = version_label(evaluation.version)
                yield evaluation.split.value, f"{version}  {summary(evaluation, gauge, screen)}"
        case EventKind.SLOW_MERGED | EventKind.MEASURED | EventKind.REVERTED:
            if event.kind is EventKind.REVERTED:
                yield "text", f"that of {version_label(event.target)}"
            yield "score", score()
            if event.verdict is not None:
                yield "gate", gate(event.verdict, screen)
            yield from flips(event.fixed, event.broken)
        case _:
            yield "event", event.kind.value
    if event.models == NOBODY:
        return
    judge = f", judge {event.models.judge}" if event.models.judge else ""
    yield "models", f"target {event.models.target}, optimizer {event.models.optimizer}{judge}"
    yield "cost", numbers.cost(event.cost, screen)
    for part in event.cost.parts:
        yield "", f"{part.role} {part.stage}: {numbers.cost(part.cost, screen)}"


def _checks(report: Shown, screen: Screen) -> Iterator[tuple[str, str]]:
    rows = sorted(report.checks, key=lambda row: -abs(row.after - (row.after if row.before is None else row.before)))
    checks = (
        f"{check_scores(row, screen)}  {one_line(row.check)}, {numbers.plural(row.n, 'item')}" for row in rows[:_CHECKS]
    )
    yield from under("checks", checks)
    if len(rows) > _CHECKS:
        yield "", f"and {len(rows) - _CHECKS} more, which skillgit diff --items lists"


def left_out(edits: Sequence[LeftOut], patch: PatchCounts) -> Iterator[tuple[str, str]]:
    """Yield the edits that were chosen and not applied, with the reasons; or that they are unknown here."""
    yield from under("skipped", (one_line(f"{edit.edit} ({edit.status}: {edit.reason})") for edit in edits))
    if patch.skipped and not edits:
        yield "skipped", f"{numbers.plural(patch.skipped, 'edit')}, for reasons that are not known here"


def _counts(event: Event, screen: Screen) -> str:
    patch = event.patch
    by = "" if patch.by is BudgetSource.SCHEDULE else f" by {patch.by.value}"
    counts = (
        f"{patch.applied} applied",
        f"{patch.skipped} skipped",
        f"{patch.ranked} ranked",
        f"{patch.merged} merged",
        "no budget" if patch.budget is None else f"budget {patch.budget}{by}",
        "" if patch.mode.proposals is ProposalKind.EDITS else patch.mode.value,
    )
    return screen.dotted(counts)


def summary(evaluation: EvaluationSummary, gauge: Gauge, screen: Screen, items: Sequence[ItemChange] = ()) -> str:
    """Return what was measured: the score under the gate's metric, hard, soft and on how many items."""
    scope = f"{evaluation.scored} of {numbers.plural(evaluation.n, 'item')} scored"
    text = f"{scores(evaluation, gauge, screen, items)} {screen.glyphs.dot} {scope}"
    if evaluation.loads is not None:  # first: without it a score says nothing of the text
        text = f"{evaluation.loads.phrase} {screen.glyphs.dot} {text}"
    if evaluation.tokens is not None:
        text += f" {screen.glyphs.dot} {evaluation.tokens:,.1f} tokens an item"
    if evaluation.cut:
        text += f" {screen.glyphs.dot} {cut_phrase(evaluation.cut, evaluation.scored)}"
    if not evaluation.stopped:
        return text
    count = evaluation.unneeded - evaluation.spare
    return f"{text}, then the decision was settled: {numbers.plural(count, 'item')} not rolled out"


def gate(verdict: Verdict, screen: Screen, *, bound: bool = False, against: str = "current") -> str:
    """Return what a gate compared and decided, with all numbers.

    ``bound`` says that the score is an upper bound, and ``against`` what it was compared with.
    """
    ties = verdict.gated and verdict.decision.accepted and verdict.score == verdict.current
    sign = ">" if verdict.score > verdict.current else "=" if ties else screen.glyphs.at_most
    score = f"{screen.glyphs.at_most if bound else ''}{numbers.score(verdict.score)}"
    comparison = f"{verdict.metric.value} {score} {sign} {against} {numbers.score(verdict.current)}"
    flips = f"{verdict.fixed} fixed, {verdict.broken} broken, {numbers.chance(verdict.p)}"
    best = ", ".join(filter(None, (f"best {numbers.score(verdict.best)}", verdict.token_words)))
    return f"{comparison}, {best} {screen.glyphs.arrow} {verdict.decision.value} ({_policy(verdict)}; {flips})"


def _policy(verdict: Verdict) -> str:
    parts = [verdict.policy]
    if verdict.alpha is not None:
        parts.append(f"alpha {verdict.alpha:g}")
    if verdict.margin is not None:
        parts.append(f"margin {verdict.margin:g}")
    if verdict.token_margin is not None:
        parts.append(f"{verdict.objective.value}, token margin {verdict.token_margin:g}")
    if verdict.max_tokens is not None:
        parts.append(f"at most {verdict.max_tokens:,} tokens")
    if verdict.no_regression is not NoRegression.NONE:
        parts.append(f"no regression {verdict.no_regression.value}: {verdict.blocked} blocked")
    if verdict.repeats:
        parts.append(f"{numbers.plural(verdict.repeats, 'repeat')}")
    if verdict.outrun:
        parts.append(f"outrun by step {verdict.outrun}")
    return ", ".join(parts) if verdict.gated else "no gate"
