"""What a run has cost as a table, with what the sums leave open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import table, wrap
from skillgit.cli.render.inert import one_line
from skillgit.cli.screen import Style
from skillgit.domain.cost import Grouping
from skillgit.domain.event import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.cost import CostRow, Spending
    from skillgit.app.unfinished import Unfinished
    from skillgit.cli.screen import Screen

COLUMNS = (
    "run",
    "role",
    "stage",
    "model",
    "version",
    "step",
    "epoch",
    "kind",
    "origin",
    "calls",
    "tokens_in",
    "tokens_out",
    "cached",
    "cache_written",
    "reasoning",
    "unpriced",
    "usd",
    "seconds",
    "share",
)
"""The columns of ``cost --plain``."""

_NOT_TOLD = "not recorded"


def lines(result: Spending, screen: Screen) -> Iterator[str]:
    """Yield where it went: a row for each part, the total, the cache's share and the prices that are not known."""
    if result.run:
        yield screen.paint(Style.STRONG, result.run)
    if not result.total.calls:
        yield "no model was asked"
        yield from unfinished(result.unfinished, screen, named=not result.run)
        return
    if result.run:
        yield ""
    head = (*_titles(result), "calls", "tokens in", "out", "cached", "cost", "time", f"of {_WHOLE[result.share_of]}")
    body = [(*_names(row, result), *_numbers(row)) for row in result.rows]
    names = len(_titles(result))
    total = ("total", *([""] * (names - 1)), *_numbers(result.total))
    faint = tuple(screen.paint(Style.FAINT, cell) for cell in head)
    yield from table([faint, *body, total], align="l" * names + "r" * (len(head) - names), gap=3)
    yield from unfinished(result.unfinished, screen, named=not result.run)
    notes = list(_notes(result))
    if notes:
        yield ""
    for note in notes:
        yield from wrap(note, screen.width)


def unfinished(found: Sequence[Unfinished] | None, screen: Screen, *, named: bool) -> Iterator[str]:
    """Yield what was spent on events that are not recorded yet, one line each.

    Args:
        found: The events; None where that is not known.
        screen: What is known of the screen.
        named: Whether to name the run.
    """
    for one in found or ():
        run = f"{one_line(one.run)}: " if named else ""
        spent = words.cost(replace(one.cost, seconds=0.0), screen)
        yield f"{run}unfinished {one.what}: {spent}; kept, a resume does not buy them again"


_WHOLE = {"usd": "cost", "tokens": "tokens"}


def _titles(result: Spending) -> tuple[str, ...]:
    return ("step", "") if result.by == Grouping.STEP else tuple(result.by.split())


def _names(row: CostRow, result: Spending) -> tuple[str, ...]:
    if result.by == Grouping.STEP:
        return _step(row), _became(row)
    if result.by == Grouping.VERSION:
        return (_version(row, result),)
    return tuple(getattr(row, name) or (_NOT_TOLD if place == 0 else "") for place, name in enumerate(_titles(result)))


def _version(row: CostRow, result: Spending) -> str:
    if row.version is not None:
        return f"v{row.version}"
    made = [other.version for other in result.rows if other.version is not None]
    return f"after v{max(made)}" if made else "no version"


def _step(row: CostRow) -> str:
    if row.origin == Origin.META:
        return f"meta {row.epoch}"
    names = {"run-started": "start", "slow-proposed": f"slow {row.epoch}", "run-finished": "end"}
    return names.get(row.kind, f"step {row.step}")


def _became(row: CostRow) -> str:
    return (
        f"v{row.version}"
        if row.version is not None
        else {"rejected": "rejected", "skipped": "skipped"}.get(row.kind, "")
    )


def _numbers(row: CostRow) -> tuple[str, ...]:
    return (
        f"{row.calls:,}",
        words.count(row.tokens_in),
        words.count(row.tokens_out),
        f"{row.cached / row.tokens_in:.0%}" if row.tokens_in else "",
        words.dollars(row.usd, is_all=not row.unpriced),
        words.duration(row.seconds),
        f"{row.share:.0%}",
    )


def _notes(result: Spending) -> Iterator[str]:
    total = result.total
    if total.cached or total.cache_written:
        read, written = (count / total.tokens_in for count in (total.cached, total.cache_written))
        yield f"{read:.0%} of the tokens in came from the provider's cache, {written:.0%} were written to it"
    for missing in result.unpriced:
        model = missing.model or "a model"
        yield f"the price of {model} is not known: {words.plural(missing.calls, 'call')} of it count as nothing"
