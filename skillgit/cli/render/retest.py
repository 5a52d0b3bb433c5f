"""Versions measured again: what it will cost, and each beside what its run recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import table
from skillgit.cli.render.items import differing
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.retest import Retested, RetestRow
    from skillgit.app.scores import Interval
    from skillgit.cli.screen import Screen


def lines(result: Retested, screen: Screen) -> Iterator[str]:
    """Yield everything about a retest."""
    plan = result.plan
    yield from differing(result.differs, screen)
    items = words.plural(plan.items, "item")
    yield f"{screen.paint(Style.STRONG, plan.split)}  {items}, {result.metric} scores"
    again = result.own_target == plan.target
    own = f"{result.own_target}, then" if again else result.own_target or "recorded"
    new = f"{plan.target}, now" if again else plan.target
    tested = not any(one.matters for one in result.differs)
    turned = ("gained", "95 %", "fixed", "broken", "p, two-sided") if tested else ("change", "95 %", "higher", "lower")
    names = ("", "scored", new, "95 %", own, *turned)
    head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
    rows = [_cells(row, result)[: len(names)] for row in result.rows]
    yield from table([head, *rows], align="lrrlrrlrrl"[: len(names)])
    yield ""
    if any(row.comparison is None for row in result.rows):
        yield screen.paint(Style.FAINT, _unpaired(result))
    if plan.split == "test":
        reads = ", ".join(f"{row.name} {words.plural(row.test_reads, 'time')}" for row in result.rows)
        yield _fact("test", f"evaluated so far: {reads}", screen)
    noted = f"{words.plural(result.noted, 'new evaluation')} on refs/notes/skillgit/evals"
    yield _fact("notes", noted if result.noted else "nothing new", screen)
    yield _fact("cost", words.cost(result.cost, screen), screen)
    run = next((row.run for row in result.rows if row.run), "")
    if run and result.noted:
        yield _fact("next", f"skillgit matrix {run} --split {plan.split}", screen)


def _cells(row: RetestRow, result: Retested) -> tuple[str, ...]:
    found, pair = row.found, row.comparison
    interval = {"hard": found.hard_interval, "soft": found.soft_interval}.get(result.metric)
    return (
        row.name,
        f"{found.scored}/{found.n}",
        words.score(row.score) or "none",
        f"{words.score(interval[0])} to {words.score(interval[1])}" if interval is not None else "",
        words.score(row.own_score) or "unknown",
        words.delta(pair.delta) if pair is not None else "",
        _signed(pair.interval) if pair is not None else "",
        str(len(pair.fixed)) if pair is not None else "",
        str(len(pair.broken)) if pair is not None else "",
        words.chance(row.p) if row.p is not None else "",
    )


def _unpaired(result: Retested) -> str:
    if any(one.aspect in {"environment", "items"} for one in result.differs):
        return "not compared item by item with what the run recorded: it measured other items, or scored them otherwise"
    return "not compared where the run's outcomes on these items are not known here"


def _signed(found: Interval | None) -> str:
    return f"{words.delta(found[0])} to {words.delta(found[1])}" if found is not None else ""


def _fact(label: str, text: str, screen: Screen) -> str:
    return f"{screen.paint(Style.FAINT, label.ljust(5))}  {text}"
