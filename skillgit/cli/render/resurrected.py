"""Rejected candidates then and now: one line for each, those first that had come closest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import gated, words
from skillgit.cli.render.columns import fit, table
from skillgit.cli.screen import Style
from skillgit.domain.score import known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.resurrect import Resurrected, Retried
    from skillgit.cli.screen import Screen

_TITLE = 40
_LEFT = 8
"""Candidates that were not tried which are told one by one."""


def lines(result: Resurrected, screen: Screen) -> Iterator[str]:
    """Yield the candidates, then those that could not be tried, with the reason."""
    dot = f" {screen.glyphs.dot} "
    model = f"target {result.target}{'' if result.own_model else ', not the model of the run'}"
    whole = f"v{result.base} {result.metric} {words.score(result.base_score)}"
    items = words.plural(result.n, f"{result.split} item")
    found = f"{whole} on {items}" if result.base_score is not None else f"nothing applies to v{result.base}"
    yield f"{screen.paint(Style.STRONG, result.run)}  {dot.join((model, found))}"
    tried = [row for row in result.rows if not row.reason]
    if tried:
        yield ""
        names = ("", "", "then", "delta", "on", "now", "delta", "fixed", "broken", "p", "")
        head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
        yield from table([head, *(_cells(row, screen) for row in tried)], align="llrrlrrrrll")
    left = [row for row in result.rows if row.reason]
    if left:
        yield ""
    for row in left[:_LEFT]:
        yield f"{screen.paint(Style.SKIPPED, f'{screen.glyphs.skipped} {row.name}')}  not tried: {row.reason}"
    if len(left) > _LEFT:
        yield screen.paint(Style.FAINT, f"{len(left) - _LEFT} more were not tried; --json names all")
    yield ""
    if result.kept is not None:
        yield from gated.head(result.kept, screen)
        yield from gated.facts(result.kept, screen)
        yield gated.following(gated.next_commands(result.kept), screen)
        return
    yield gated.fact("cost", gated.cost(result.cost, screen), screen)
    yield gated.following(_next(result, tried), screen)


def _cells(row: Retried, screen: Screen) -> tuple[str, ...]:
    style = Style.ACCEPTED if row.passes else Style.REJECTED
    sign = screen.glyphs.passed if row.passes else screen.glyphs.rejected
    return (
        screen.paint(style, sign),
        screen.paint(Style.STRONG, row.name),
        words.known(known(row.old_score, row.bound), screen),
        words.delta(row.old_delta),
        f"v{row.old_base}" if row.old_base is not None else "",
        words.score(row.score),
        words.delta(row.delta),
        str(len(row.fixed)),
        str(len(row.broken)),
        words.chance(row.p).removeprefix("p ") if row.p is not None else "",
        fit(row.title, _TITLE, screen.glyphs.ellipsis),
    )


def _next(result: Resurrected, tried: list[Retried]) -> tuple[str, ...]:
    passed = [row for row in tried if row.passes]
    if not passed:
        return (f"skillgit show {result.run}/{tried[0].name}",) if tried else ("skillgit log --graph",)
    if not result.own_model:
        return (f"skillgit diff {result.run}/v{result.base} {result.run}/{passed[0].name}",)
    return (f"skillgit cherry-pick {result.run}/{passed[0].name} --onto {result.run}",)
