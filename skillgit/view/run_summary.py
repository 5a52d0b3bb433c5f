"""A run in short, for a terminal: scores with intervals, what it is made of, and the rules that it brought."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillgit.app.attribution.provenance import Blame, BlameRow
from skillgit.app.deliver.summary import RunSummary, SplitProgress, VersionStanding, or_none, summary
from skillgit.app.workspace.context import Context
from skillgit.domain.address import version_label
from skillgit.domain.cost import reuse
from skillgit.view import numbers
from skillgit.view.items import counted
from skillgit.view.runs import outcome, steps
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, facts, headed, one_line, under, width, wrap

if TYPE_CHECKING:
    from skillgit.app.history.show import RunSettings

_LABEL: Final = 11
_LEAST = 24
_NEWEST: Final = 1  # events that the summary is read with: it lists none
_WIDEST: Final = 100
_MARKER: Final = "skillgit:slow"  # what the limits of regions have, which are no rules


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFacts:
    summary: RunSummary
    text: Blame | None  # the best version's lines with their origins; absent where it has none
    settings: RunSettings | None  # absent where they are not here

    @classmethod
    def read(cls, context: Context, run: str) -> SummaryFacts:
        from skillgit.app.attribution.provenance import blame  # noqa: PLC0415 - slow to load
        from skillgit.app.history.show import run_settings  # noqa: PLC0415 - as above

        return cls(
            summary=summary(context, run, most=_NEWEST),
            text=or_none(lambda: blame(context, f"{run}/best")),
            settings=or_none(lambda: run_settings(context, f"{run}/v0")),
        )

    @property
    def rules(self) -> tuple[BlameRow, ...]:
        """The lines of the best version that training brought."""
        rows = () if self.text is None else self.text.lines
        return tuple(row for row in rows if row.source != "seed" and row.text.strip() and _MARKER not in row.text)


def lines(report: SummaryFacts, screen: Screen) -> Iterator[str]:
    run = report.summary.run
    yield screen.dotted((screen.paint(Style.STRONG, run.name), outcome(run).painted(screen), f"step {steps(run)}"))
    sentence = report.summary.finish.why if report.summary.finish is not None else ""
    yield from wrap(sentence, min(screen.width, _WIDEST))
    yield ""
    yield from _scores(report.summary, screen)
    yield ""
    yield from facts(_facts(report, screen), screen, label=_LABEL, columns=max(_LEAST, screen.width - _LABEL))
    yield ""
    yield from _rules(report, screen)


def _scores(report: RunSummary, screen: Screen) -> Iterator[str]:
    best = version_label(report.best.version)
    head = ("", "v0", "95 %", best, "95 %", "gain", "items")
    body = [
        (
            split.split,
            *_standing(split.seed),
            *_standing(split.best),
            numbers.delta(split.gain),
            str(split.best.n) if split.best is not None else "",
        )
        for split in report.progress
    ]
    yield from headed(head, body, screen, align="lrlrlrr")
    for sentence in _remarks(report):
        yield from (screen.paint(Style.FAINT, line) for line in wrap(sentence, screen.width))


def _standing(standing: VersionStanding | None) -> tuple[str, str]:
    if standing is None:
        return "none", ""
    low, high = standing.interval
    return numbers.score(standing.score), f"{numbers.score(low)} to {numbers.score(high)}"


def _remarks(report: RunSummary) -> Iterator[str]:
    items = report.items
    if items is not None:
        flips = counted([("fixed", len(items.fixed)), ("broken", len(items.broken))], items.differs)
        chance = f", {numbers.chance(items.p)} in a paired test" if items.p is not None else ""
        few = f"; {report.progress[0].too_few}" if report.progress[0].too_few else ""
        yield f"selection: {', '.join(flips)}{chance}{few}; these items chose the versions, so they flatter them"
    yield f"test: {_test(report.progress[-1], report)}"


def _test(split: SplitProgress, report: RunSummary) -> str:
    if split.best is None:
        return f"not measured yet: skillgit eval {report.run.name}/best --split test"
    few = f"{split.too_few}; " if split.too_few else ""
    return f"{few}no decision of the run has seen these items"


def _facts(report: SummaryFacts, screen: Screen) -> Iterator[tuple[str, str]]:
    run, start = report.summary.run, report.summary.start
    counts = (
        f"{run.versions - 1} new versions",
        f"{run.rejected} rejected",
        f"{report.summary.skip_count} skipped",
    )
    yield "best", f"{version_label(run.best_version)} of {numbers.plural(run.versions, 'version')}: {', '.join(counts)}"
    yield "skill", f"{run.skill}, {run.environment}" if run.environment else run.skill
    models = (("target", start.models.target), ("optimizer", start.models.optimizer), ("judge", start.models.judge))
    names = screen.dotted(f"{role} {one_line(model)}" for role, model in models if model)
    yield "models", f"{names}; {run.rehearsal}" if run.rehearsal else names
    verdict = report.summary.verdict
    if verdict is not None:
        yield (
            "gate",
            f"{verdict.policy}: it asks for {verdict.demand}, by the {verdict.metric} score",
        )
    tokens = f"{numbers.count(run.tokens_in + run.tokens_out)} tokens"
    price = numbers.price(run.usd, run.unpriced)
    reuse_words = reuse(run.reused, run.unidentified)
    yield "cost", screen.dotted((numbers.plural(run.calls, "call"), tokens, price, reuse_words))
    settings = report.settings.settings if report.settings is not None else ()
    yield from under("settings", (f"{row.key}={row.value}" for row in settings if row.chosen == "set"))


def _rules(report: SummaryFacts, screen: Screen) -> Iterator[str]:
    best = version_label(report.summary.best.version)
    if not report.rules:
        yield screen.paint(Style.FAINT, f"{best} has no rule that training brought")
        return
    yield screen.paint(Style.STRONG, f"Rules of {best} that training brought")
    fronts = [
        (row.address.label if row.address else "", _rests_on(row), numbers.delta(row.delta)) for row in report.rules
    ]
    sizes = [max(map(width, cells)) for cells in zip(*fronts, strict=True)]
    for row, cells in zip(report.rules, fronts, strict=True):
        front = "  ".join(f"{cell:<{size}}" for cell, size in zip(cells, sizes, strict=True))
        room = max(_LEAST, screen.width - width(front) - 2)
        yield f"{screen.paint(Style.ACCEPTED, front)}  {cut(one_line(row.text), room, screen)}"


def _rests_on(row: BlameRow) -> str:
    return row.source if row.support is None else f"{row.source} {row.support}"
