"""A merge: what both lines changed, what was tried there, and what the gate decided on the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import gated, words
from skillgit.cli.render.columns import fit, table
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.gating.settling import Stretch
    from skillgit.app.merge import Merged
    from skillgit.cli.screen import Screen

_NARROW, _INDENT = 100, 4


def lines(result: Merged, screen: Screen) -> Iterator[str]:
    """Yield a merge."""
    yield from gated.head(result.decided, screen)
    yield ""
    yield gated.fact("against", result.ancestor, screen)
    yield from _stretches(result, screen)
    yield from gated.facts(result.decided, screen)
    yield gated.following(gated.next_commands(result.decided), screen)


def _stretches(result: Merged, screen: Screen) -> Iterator[str]:
    if not result.stretches:
        yield gated.fact("merge", "no line was changed by both", screen)
        return
    for number, one in enumerate(result.stretches, 1):
        yield ""
        chosen = f"{screen.glyphs.arrow} {one.chosen}" if one.chosen else f"one of {', '.join(one.choices)}"
        place = screen.paint(Style.STRONG, f"conflict {number}")
        yield f"{place}  {one.file} line {one.line}  {chosen}"
        yield from _texts(one, screen)
        if one.tried:
            scores = [
                tuple(tried.choice for tried in one.tried),
                tuple(words.score(tried.score) for tried in one.tried),
            ]
            yield from table(scores, align="r" * len(one.tried), indent=" " * _INDENT)


def _texts(one: Stretch, screen: Screen) -> Iterator[str]:
    room = (screen.width or _NARROW) - _INDENT - 8
    for side, text in (("ours", one.ours), ("theirs", one.theirs)):
        told = [line for line in text.splitlines() if line.strip()] or ["nothing"]
        for number, line in enumerate(told):
            label = screen.paint(Style.FAINT, (side if number == 0 else "").ljust(6))
            yield f"{' ' * _INDENT}{label}  {fit(line, room, screen.glyphs.ellipsis)}"
