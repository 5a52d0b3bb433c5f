"""A run in short, for a terminal: scores with intervals, what it is made of, and the rules that it brought."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillgit.domain.address import version_label
from skillgit.domain.cost import reuse
from skillgit.view import numbers
from skillgit.view.items import counted
from skillgit.view.runs import outcome, steps
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, facts, headed, one_line, under, width, wrap

if TYPE_CHECKING:
    from skillgit.app.attribution.provenance import Blame, BlameRow
    from skillgit.app.deliver.summary import RunSummary, VersionStanding
    from skillgit.app.history.show import RunSettings

_LABEL: Final = 11
_LEAST = 24
_WIDEST: Final = 100
_MARKER: Final = "skillgit:slow"  # what the limits of regions have, which are not rules


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFacts:
    summary: RunSummary
    text: Blame | None  # the best version's lines with their origins; absent where it has none
    settings: RunSettings | None  # absent where they are not here

    @property
    def rules(self) -> tuple[BlameRow, ...]:
        """The lines of the best version that training brought."""
        rows = () if self.text is None else self.text.lines
        return tuple(row for row in rows if row.source != "seed" and row.text.strip() and _MARKER not in row.text)


def lines(report: SummaryFacts, screen: Screen) -> Iterator[str]:
    summary, run = report.summary, report.summary.run
    yield screen.dotted((screen.paint(Style.STRONG, run.name), outcome(run).painted(screen), f"step {steps(run)}"))
    yield from wrap(summary.finish.why if summary.finish is not None else "", min(screen.width, _WIDEST))
    yield ""

    def standing(version: VersionStanding | None) -> tuple[str, str]:
        if version is None:
            return "none", ""
        low, high = version.interval
        return numbers.score(version.score), f"{numbers.score(low)} to {numbers.score(high)}"

    best = version_label(summary.best.version)
    body = [
        (
            split.split,
            *standing(split.seed),
            *standing(split.best),
            numbers.delta(split.gain),
            str(split.best.n) if split.best is not None else "",
        )
        for split in summary.progress
    ]
    yield from headed(("", "v0", "95 %", best, "95 %", "gain", "items"), body, screen, align="lrlrlrr")
    for sentence in _remarks(summary):
        yield from (screen.paint(Style.FAINT, line) for line in wrap(sentence, screen.width))
    yield ""
    yield from facts(_facts(report, screen), screen, label=_LABEL, columns=max(_LEAST, screen.width - _LABEL))
    yield ""
    if not report.rules:
        yield screen.paint(Style.FAINT, f"{best} has no rule that training brought")
        return
    yield screen.paint(Style.STRONG, f"Rules of {best} that training brought")
    fronts = [
        (
            row.address.label if row.address else "",
            row.source if row.support is None else f"{row.source} {row.support}",
            numbers.delta(row.delta),
        )
        for row in report.rules
    ]
    sizes = [max(map(width, cells)) for cells in zip(*fronts, strict=True)]
    for row, cells in zip(report.rules, fronts, strict=True):
        front = "  ".join(f"{cell:<{size}}" for cell, size in zip(cells, sizes, strict=True))
        room = max(_LEAST, screen.width - width(front) - 2)
        yield f"{screen.paint(Style.ACCEPTED, front)}  {cut(one_line(row.text), room, screen)}"


def _remarks(summary: RunSummary) -> Iterator[str]:
    selection, test, items = summary.progress[0], summary.progress[-1], summary.items
    if items is not None:
        flips = counted([("fixed", len(items.fixed)), ("broken", len(items.broken))], items.differs)
        chance = f", {numbers.chance(items.p)} in a paired test" if items.p is not None else ""
        few = f"; {selection.too_few}" if selection.too_few else ""
        optimistic = "versions were selected on these items; the score is optimistic"
        yield f"selection: {', '.join(flips)}{chance}{few}; {optimistic}"
    if test.best is None:
        yield f"test: not measured yet: skillgit eval {summary.run.name}/best --split test"
    else:
        few = f"{test.too_few}; " if test.too_few else ""
        yield f"test: {few}no decision of the run has seen these items"


def _facts(report: SummaryFacts, screen: Screen) -> Iterator[tuple[str, str]]:
    run, start = report.summary.run, report.summary.start
    counts = f"{run.versions - 1} new versions, {run.rejected} rejected, {report.summary.skip_count} skipped"
    yield "best", f"{version_label(run.best_version)} of {numbers.plural(run.versions, 'version')}: {counts}"
    yield "skill", f"{run.skill}, {run.environment}" if run.environment else run.skill
    models = (("target", start.models.target), ("optimizer", start.models.optimizer), ("judge", start.models.judge))
    names = screen.dotted(f"{role} {one_line(model)}" for role, model in models if model)
    yield "models", f"{names}; {run.rehearsal}" if run.rehearsal else names
    verdict = report.summary.verdict
    if verdict is not None:
        yield "gate", f"{verdict.policy}: it asks for {verdict.demand}, by the {verdict.metric} score"
    tokens = f"{numbers.count(run.tokens_in + run.tokens_out)} tokens"
    parts = (numbers.plural(run.calls, "call"), tokens, numbers.price(run.usd, run.unpriced))
    yield "cost", screen.dotted((*parts, reuse(run.reused, run.unidentified)))
    settings = report.settings.settings if report.settings is not None else ()
    yield from under("settings", (f"{row.key}={row.value}" for row in settings if row.chosen == "set"))
