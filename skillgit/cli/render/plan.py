"""What a run would do and cost, and what it did and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from skillgit.app.plan import Bound
from skillgit.cli.render import words
from skillgit.cli.render.columns import table, wrap
from skillgit.cli.render.cost import unfinished
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.outcome import ReportRow, Trained
    from skillgit.app.plan import Plan, PlanRow
    from skillgit.cli.screen import Screen
    from skillgit.domain.placebo import Placebo

_GAP = 3


def planned(plan: Plan, screen: Screen) -> Iterator[str]:
    """Yield what a command would do and spend."""
    label = max((len(name) for name in plan.facts), default=0) + _GAP
    for name, text in plan.facts.items():
        for number, line in enumerate(text.splitlines()):
            yield f"{screen.paint(Style.FAINT, (name if number == 0 else '').ljust(label))}{line}"
    if plan.facts:
        yield ""
    if plan.stages:
        yield from _stages(plan, screen)
    else:
        yield "no model would be asked"
    for note in (*_known(plan), *_unknown(plan), *plan.notes):
        yield ""
        yield from wrap(note, screen.width)
    yield ""
    yield "nothing was run or written"


def _stages(plan: Plan, screen: Screen) -> Iterator[str]:
    names = ("role", "stage", "calls", "tokens in", "out", "cost", "time")
    head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
    total = plan.total
    price = words.dollars(total.usd, is_all=not total.unpriced)
    known = "" if total.seconds is None else words.duration(total.seconds)
    time = known if not total.untimed else f"at least {known}" if known else "unknown"
    whole = "in all" if total.bound is Bound.EXACTLY else total.bound.value
    numbers = (f"{total.calls:,}", words.count(total.tokens_in), words.count(total.tokens_out), price, time)
    yield from table(
        [head, *(_cells(row, screen) for row in plan.stages), (whole, "", *numbers)], align="llrrrrr", gap=3
    )


def _cells(row: PlanRow, screen: Screen) -> tuple[str, ...]:
    return (
        row.role,
        row.stage,
        f"{_sign(row.bound, screen)}{row.calls:,}",
        words.count(row.tokens_in),
        words.count(row.tokens_out),
        words.money(row.usd),
        "unknown" if row.seconds is None else words.duration(row.seconds),
    )


def _sign(bound: Bound, screen: Screen) -> str:
    match bound:
        case Bound.EXACTLY:
            return ""
        case Bound.AT_MOST:
            return screen.glyphs.at_most
        case Bound.AT_LEAST:
            return screen.glyphs.at_least
        case Bound.ABOUT:
            return "~"
        case other:
            assert_never(other)


def _known(plan: Plan) -> Iterator[str]:
    if plan.known:
        yield f"{plan.known:,} of {plan.rollouts:,} rollouts are known already and cost nothing"


def _unknown(plan: Plan) -> Iterator[str]:
    if plan.total.unpriced:
        yield f"the price of {', '.join(plan.total.unpriced)} is unknown; set model.prices to count it"
    if plan.total.untimed:
        yield f"how long it takes is not known: nothing was measured here yet with {', '.join(plan.total.untimed)}"


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
