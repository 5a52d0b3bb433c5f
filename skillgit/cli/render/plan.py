"""What a run would do and cost, and what it did and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import table, wrap
from skillgit.cli.render.cost import unfinished
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.estimate import PlanRow
    from skillgit.app.outcome import ReportRow, Trained
    from skillgit.app.plan import Plan
    from skillgit.cli.screen import Screen
    from skillgit.domain.placebo import Placebo


def planned(plan: Plan, screen: Screen) -> Iterator[str]:
    """Yield what a run would do."""
    dot = screen.glyphs.dot
    items = f"{plan.train} train {dot} {plan.selection} selection {dot} {plan.test} test items"
    length = f"{words.plural(plan.epochs, 'epoch')} {dot} {words.plural(plan.steps, 'step')}"
    for label, text in (
        ("run", screen.paint(Style.STRONG, plan.run) if plan.run else "a new one"),
        ("config", plan.config),
        ("skill", plan.skill),
        ("items", f"{plan.environment} {dot} {items}"),
        ("length", length),
    ):
        yield f"{screen.paint(Style.FAINT, label.ljust(8))}{text}"
    yield ""
    yield from _stages(plan, screen)
    for note in plan.notes:
        yield ""
        yield from wrap(note, screen.width)
    yield ""
    yield "nothing was run or written"


def _stages(plan: Plan, screen: Screen) -> Iterator[str]:
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("role", "stage", "calls", "tokens in", "out", "cost"))
    body = [
        (
            row.role,
            row.stage,
            f"{row.calls:,}",
            words.count(row.tokens_in),
            words.count(row.tokens_out),
            words.money(row.usd),
        )
        for row in plan.stages
    ]
    total = ("at most", "", f"{plan.calls:,}", words.count(_sum_in(plan.stages)), words.count(_sum_out(plan.stages)))
    yield from table([head, *body, (*total, words.money(plan.usd))], align="llrrrr", gap=3)


def _sum_in(rows: Sequence[PlanRow]) -> int:
    return sum(row.tokens_in for row in rows)


def _sum_out(rows: Sequence[PlanRow]) -> int:
    return sum(row.tokens_out for row in rows)


def trained(result: Trained, screen: Screen) -> Iterator[str]:
    """Yield how a run ended."""
    style = Style.BEST if result.outcome == "improved" else Style.STRONG
    yield f"{screen.paint(Style.STRONG, result.run)}  {screen.paint(style, result.outcome)}"
    yield from wrap(result.sentence, screen.width)
    if result.report:
        yield ""
        yield from _report(result.report, result.metric, screen)
    if result.placebo is not None:
        yield ""
        yield f"{screen.paint(Style.FAINT, 'placebo')}  {placebo(result.placebo)}"
    yield ""
    yield f"{screen.paint(Style.FAINT, 'cost')}  {words.cost(result.cost, screen)}"
    for number, command in enumerate(result.next_commands):
        yield f"{screen.paint(Style.FAINT, 'next') if number == 0 else '    '}  {command}"


def stopped(result: Trained, screen: Screen) -> Iterator[str]:
    """Yield what a run has cost that was stopped, and what of that is not recorded yet."""
    if result.cost.calls:
        yield f"{result.run}: {words.cost(result.cost, screen)} so far"
    yield from unfinished(result.unfinished, screen, named=False)


def placebo(counts: Placebo) -> str:
    """Return the false-accept rate of a run's gate."""
    return f"{counts.accepted} of {words.plural(counts.n, 'no-op candidate')} accepted, rate {counts.rate:.2f}"


def _report(rows: Sequence[ReportRow], metric: str, screen: Screen) -> Iterator[str]:
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("", "", f"selection {metric}", f"test {metric}"))
    body = [(row.label, f"v{row.version}", _or_none(row.selection), _or_none(row.test)) for row in rows]
    yield from table([head, *body], align="llrr")


def _or_none(value: float | None) -> str:
    return words.score(value) if value is not None else "none"
