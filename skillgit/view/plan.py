"""What a run would cost, and what it did cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from skillgit.app.setup.plan import Bound, Plan, PlanRow
from skillgit.domain.address import version_label
from skillgit.domain.cost import Grouping, reuse
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Origin
from skillgit.view import numbers
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Cell, Column, Table
from skillgit.view.text import facts, headed, one_line, under, wrap

if TYPE_CHECKING:
    from skillgit.app.history.cost import CostRow, Spending
    from skillgit.app.history.status import Unfinished
    from skillgit.app.recorded.score_summary import SkillComparison
    from skillgit.app.train.run_report import ReportRow, Trained
    from skillgit.domain.placebo import Placebo


def planned(plan: Plan, screen: Screen) -> Iterator[str]:
    label = max((len(name) for name in plan.facts), default=0) + 3
    pairs = (pair for name, text in plan.facts.items() for pair in under(name, text.splitlines()))
    yield from facts(pairs, screen, label=label)
    if plan.facts and (plan.stages or not plan.exit_code):
        yield ""
    if plan.stages:
        yield from _stages(plan, screen)
    elif not plan.exit_code:
        yield "no model would be asked"
    for note in (*_remarks(plan), *plan.notes):
        yield ""
        yield from wrap(note, screen.width)
    yield ""
    yield "nothing was run or written"


def _stages(plan: Plan, screen: Screen) -> Iterator[str]:
    names = ("role", "stage", "calls", "tokens in", "out", "cost", "time")
    total = plan.total
    price = numbers.price(total.usd, len(total.unpriced))
    duration = "" if total.seconds is None else numbers.duration(total.seconds)
    time = duration if not total.untimed else f"at least {duration}" if duration else "unknown"
    whole = "in all" if total.bound is Bound.EXACTLY else total.bound.value
    cells = (f"{total.calls:,}", numbers.count(total.tokens_in), numbers.count(total.tokens_out), price, time)
    rows = [*(_cells(row, screen) for row in plan.stages), (whole, "", *cells)]
    yield from headed(names, rows, screen, align="llrrrrr", gap=3)


def _cells(row: PlanRow, screen: Screen) -> tuple[str, ...]:
    at_most, at_least = screen.glyphs.at_most, screen.glyphs.at_least
    signs = {Bound.EXACTLY: "", Bound.AT_MOST: at_most, Bound.AT_LEAST: at_least, Bound.ABOUT: "~"}
    return (
        row.role,
        row.stage,
        f"{signs[row.bound]}{row.calls:,}",
        numbers.count(row.tokens_in),
        numbers.count(row.tokens_out),
        numbers.money(row.usd),
        _time(row, screen),
    )


def _time(row: PlanRow, screen: Screen) -> str:
    if row.batches:
        return (
            numbers.plural(row.batches, "batch", "batches")
            if row.batches == 1
            else f"{screen.glyphs.at_most}{row.batches} batches"
        )
    return "unknown" if row.seconds is None else numbers.duration(row.seconds)


def _remarks(plan: Plan) -> Iterator[str]:
    if plan.known:
        yield f"{plan.known:,} of {plan.rollouts:,} rollouts are known already and cost nothing"
    if plan.total.unpriced:
        yield f"the price of {', '.join(plan.total.unpriced)} is unknown; set model.prices to count it"
    if plan.total.batches:
        yield "a batch may take up to 24 hours; a run can be stopped while it waits, and the same command continues it"
    if plan.total.untimed:
        yield f"how long it takes is not known: nothing was measured here yet with {', '.join(plan.total.untimed)}"


def trained(result: Trained, screen: Screen) -> Iterator[str]:
    style = Style.BEST if result.outcome == "improved" else Style.STRONG
    yield f"{screen.paint(Style.STRONG, result.run)}  {screen.paint(style, result.words)}"
    yield from wrap(result.sentence, screen.width)
    if result.report:
        yield ""
        yield from _report(result.report, result.metric, screen)
    if result.placebo is not None:
        yield ""
        yield from facts([("placebo", placebo(result.placebo))], screen, label=7, gap=2)
    yield ""
    yield f"{screen.paint(Style.FAINT, 'cost')}  {numbers.cost(result.cost, screen)}"
    if result.reuse:
        yield from wrap(result.reuse, screen.width)
    if result.shortcut:
        yield from wrap(one_line(result.shortcut), screen.width)
    if result.test is not None:
        yield from facts([("test", gain(result.test))], screen, label=4, gap=2)
    yield from facts(under("next", result.next_commands), screen, label=4, gap=2)


def gain(comparison: SkillComparison) -> str:
    """Return what one version gained over another, with its interval and the p-value of the paired test."""
    if comparison.delta is None:
        return f"{comparison.name} and {comparison.against} have no {comparison.split} item with a score in common"
    p = f", {numbers.chance(comparison.p)} one-sided" if comparison.p is not None else ""
    names, items = f"{comparison.name} against {comparison.against}", numbers.plural(comparison.n, "item")
    # the sentence on too few items begins with their number
    spread = numbers.spread(comparison.interval, comparison.too_few)
    on = comparison.metric if comparison.too_few else f"{comparison.metric} on {items}"
    return f"{names}: {numbers.delta(comparison.delta)} {on}, {spread}{p}"


def stopped(result: Trained, screen: Screen) -> Iterator[str]:
    if result.cost.calls:
        yield f"{result.run}: {numbers.cost(result.cost, screen)} so far"
    yield from unfinished(result.unfinished, screen, with_run=False)


def placebo(counts: Placebo) -> str:
    return f"{counts.accepted} of {numbers.plural(counts.n, 'no-op candidate')} accepted, rate {counts.rate:.2f}"


def _report(rows: Sequence[ReportRow], metric: str, screen: Screen) -> Iterator[str]:
    head = ("", "", f"selection {metric}", f"test {metric}")
    scores = [[numbers.score(score) or "none" for score in (row.selection, row.test)] for row in rows]
    body = [(row.label, version_label(row.version), *pair) for row, pair in zip(rows, scores, strict=True)]
    yield from headed(head, body, screen, align="llrr")


def cost_lines(result: Spending, screen: Screen) -> Iterator[str]:
    if result.run:
        yield screen.paint(Style.STRONG, result.run)
    if not result.total.calls:
        words = reuse(result.total.reused, result.total.unidentified)
        yield f"no model was asked; {words}" if words else "no model was asked"
        yield from unfinished(result.unfinished, screen, with_run=not result.run)
        return
    if result.run:
        yield ""
    yield from COST.lines([*result.rows, result.total], screen, whole=result, gap=3)
    yield from unfinished(result.unfinished, screen, with_run=not result.run)
    notes = list(_notes(result))
    if notes:
        yield ""
    for note in notes:
        yield from wrap(note, screen.width)


def unfinished(entries: Sequence[Unfinished] | None, screen: Screen, *, with_run: bool) -> Iterator[str]:
    """Yield what was spent on events that are not recorded yet, one line each; None is not known."""
    for entry in entries or ():
        run = f"{one_line(entry.run)}: " if with_run else ""
        cost = numbers.cost(replace(entry.cost, seconds=0.0), screen)
        wait = f"; waits for a batch of {numbers.plural(entry.batch_calls, 'call')}" if entry.batch_calls else ""
        yield f"{run}unfinished {entry.what}: {cost}; {entry.fate}{wait}"


def _version(row: CostRow, result: Spending) -> str:
    if row.version is not None:
        return version_label(row.version)
    versions = [entry.version for entry in result.rows if entry.version is not None]
    return f"after {version_label(max(versions))}" if versions else "no version"


def _step(row: CostRow) -> str:
    if row.origin == Origin.META:
        return f"meta {row.epoch}"
    match row.kind:
        case EventKind.RUN_STARTED:
            return "start"
        case EventKind.SLOW_PROPOSED:
            return f"slow {row.epoch}"
        case EventKind.RUN_FINISHED:
            return "end"
        case _:
            return f"step {row.step}"


def _became(row: CostRow) -> str:
    if row.version is not None:
        return version_label(row.version)
    return row.kind if row.kind in {EventKind.REJECTED, EventKind.SKIPPED} else ""


def _name_column(name: str) -> Column[CostRow]:
    """Return a column of what distinguishes rows; the first one of them says which row is the total."""

    def names(result: Spending) -> Callable[[CostRow], str]:
        is_first = result.by.split()[0] == name

        def words(row: CostRow) -> str:
            if row is result.total:
                return "total" if is_first else ""
            if name == Grouping.STEP:
                return _step(row)
            if name == Grouping.VERSION:
                return _version(row, result)
            return getattr(row, name) or ("not recorded" if is_first else "")

        return words

    return Column(name, head=name, among=names, only_if=lambda result, _: name in result.by.split())


def _count(number: int) -> Cell:
    return Cell(numbers.count(number), full=f"{number:,}")


def _share(row: CostRow) -> Cell:
    return Cell(f"{row.share:.0%}", bar=row.share)


COST: Final[Table[CostRow]] = Table(
    schema="cost/1",
    rows="rows",
    plain="run role stage model version step epoch kind origin "
    "calls tokens_in tokens_out cached cache_written reasoning unpriced usd seconds share",
    head="run by share_of total unpriced unfinished",
    columns=(
        *map(_name_column, ("run", "role", "stage", "model", "version", "step")),
        Column("", head="", show=_became, only_if=lambda result, _: result.by == Grouping.STEP),
        Column("calls", head="calls", right=True, show=lambda row: f"{row.calls:,}"),
        Column("tokens_in", head="tokens in", right=True, show=lambda row: _count(row.tokens_in)),
        Column("tokens_out", head="out", right=True, show=lambda row: _count(row.tokens_out)),
        Column(
            "cached",
            head="cached",
            right=True,
            show=lambda row: f"{row.cached / row.tokens_in:.0%}" if row.tokens_in else "",
        ),
        Column("usd", head="cost", right=True, show=lambda row: numbers.price(row.usd, row.unpriced)),
        Column("seconds", head="time", right=True, show=lambda row: numbers.duration(row.seconds)),
        Column("share", head="of cost", right=True, show=_share, only_if=lambda result, _: result.share_of == "usd"),
        Column("share", head="of tokens", right=True, show=_share, only_if=lambda result, _: result.share_of != "usd"),
    ),
)


def _notes(result: Spending) -> Iterator[str]:
    total = result.total
    if total.cached or total.cache_written:
        reads, writes = (count / total.tokens_in for count in (total.cached, total.cache_written))
        yield f"{reads:.0%} of the tokens in came from the provider's cache, {writes:.0%} were written to it"
    if result.by != "run" and result.by not in {Grouping.STEP, Grouping.VERSION} and result.rows:
        busy = sum(row.seconds for row in result.rows)
        if numbers.duration(busy) != numbers.duration(total.seconds):
            yield (
                f"the times above the total are those of calls, {numbers.duration(busy)} in all; they may overlap, and"
                f" {numbers.duration(total.seconds)} passed"
            )
    if words := reuse(total.reused, total.unidentified):
        yield f"{words}, for which other commands had paid: they are in no sum"
    for missing in result.unpriced:
        model = missing.model or "a model"
        calls = numbers.plural(missing.calls, "call")
        yield f"the price of {model} is not known: no sum of dollars contains its {calls}"
