"""What a gate decided on a candidate that a person asked for: the event, the numbers, the items, and what next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import entry as cells
from skillgit.cli.render import words
from skillgit.cli.render.columns import fit
from skillgit.cli.render.entry import Entry
from skillgit.cli.screen import Style
from skillgit.domain.policies import wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.gating.candidate import Decided
    from skillgit.cli.screen import Screen
    from skillgit.domain.cost import Cost
    from skillgit.domain.gate import Verdict

LABEL = 8


def decided(result: Decided, screen: Screen) -> Iterator[str]:
    """Yield everything about a decision, with the command to type next."""
    yield from head(result, screen)
    yield from facts(result, screen)
    yield following(next_commands(result), screen)


def head(result: Decided, screen: Screen) -> Iterator[str]:
    """Yield what became of the candidate, and where it stands."""
    row = result.event
    entry = Entry.of_row(row)
    dot = f" {screen.glyphs.dot} "
    sign = screen.paint(cells.style(entry), f"{cells.glyph(entry, screen.glyphs)} {cells.decision(entry)}")
    name = screen.paint(Style.STRONG, row.label)
    yield f"{name}  {sign}   {cells.score(entry).strip()} {words.delta(row.delta)}".rstrip()
    yield dot.join((row.run, f"base v{result.base}", result.branch, words.short(row.commit)))
    yield screen.paint(Style.STRONG, cells.title(entry))


def facts(result: Decided, screen: Screen) -> Iterator[str]:
    """Yield the numbers behind a decision."""
    yield ""
    yield fact("gate", _gate(result.verdict, screen, bound=result.event.bound is not None), screen)
    for label, items in (("fixed", result.fixed), ("broken", result.broken)):
        if items:
            yield fact(label, words.ids(items, screen), screen)
    seen = result.evaluation
    stopped = f", {seen.unneeded} not measured (the decision was settled)" if seen.unneeded else ""
    yield fact("items", f"{seen.scored} of {seen.n} selection items scored{stopped}", screen)
    yield fact("length", _length(result), screen)
    for left in result.left_out:
        room = max(40, screen.width - LABEL) if screen.width else 0
        text = f"{left.edit} ({left.status}: {left.reason})"
        yield fact("skipped", fit(text, room, screen.glyphs.ellipsis) if room else text, screen)
    for note in result.notes:
        yield fact("note", note, screen)
    yield fact("cost", cost(result.cost, screen), screen)


def cost(spent: Cost, screen: Screen) -> str:
    """Return what was spent; nothing, where all of it had been measured before."""
    return words.cost(spent, screen) if spent.calls else "no call: everything had been measured before"


def fact(label: str, text: str, screen: Screen) -> str:
    """Return one fact on one line."""
    return f"{screen.paint(Style.FAINT, label.ljust(LABEL))}  {text}"


def following(commands: tuple[str, ...], screen: Screen) -> str:
    """Return the line that names what to type next."""
    return fact("next", f" {screen.glyphs.dot} ".join(commands), screen)


def _gate(verdict: Verdict, screen: Screen, *, bound: bool) -> str:
    dot = f" {screen.glyphs.dot} "
    policy = verdict.policy
    asked = f"{policy} asks for {wanted(policy, verdict.terms)}"
    most = screen.glyphs.at_most if bound else ""
    numbers = f"{most}{words.score(verdict.score)} against {words.score(verdict.current)}"
    flipped = f"{verdict.fixed} fixed, {verdict.broken} broken, {words.chance(verdict.p)}"
    blocked = f"{verdict.blocked} of them may not score lower" if verdict.blocked else ""
    return dot.join(part for part in (asked, numbers, flipped, blocked) if part)


def _length(result: Decided) -> str:
    before, after = result.tokens_before, result.tokens_after
    change = f", {after - before:+d}" if after != before else ""
    return f"about {after:,} tokens, {before:,} before{change}"


def next_commands(result: Decided) -> tuple[str, ...]:
    """Return what to type after a decision."""
    row = result.event
    if result.accepted:
        return f"skillgit diff {row.run}/v{result.base} {row.address} --items", f"skillgit show {row.address}"
    return (f"skillgit show {row.address}",)
