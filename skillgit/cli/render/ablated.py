"""What the rules of a skill are worth: one line for each, the most valuable first and the dead ones last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import gated, words
from skillgit.cli.render.columns import fit, table, width
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.ablate import Ablated, AblatedRule
    from skillgit.app.gating.ablation import Ablation
    from skillgit.app.prune import Pruned
    from skillgit.cli.screen import Screen

_STYLES = {"works": Style.ACCEPTED, "mixed": Style.REVERTED, "harmful": Style.REJECTED, "dead": Style.SKIPPED}
_MEANS = {
    "works": "the score is lower without it",
    "mixed": "it helps as many items as it harms",
    "harmful": "the score is higher without it",
    "dead": "nothing changes without it",
}
_LEAST = 24


def ablated(result: Ablated, screen: Screen) -> Iterator[str]:
    """Yield the rules of a version with what leaving each out changes."""
    dot = f" {screen.glyphs.dot} "
    whole = f"{result.metric} {words.score(result.score)} on {words.plural(result.n, f'{result.split} item')}"
    name = screen.paint(Style.STRONG, result.name)
    count = words.plural(result.every, "rule")
    left_out = count if len(result.rules) == result.every else f"{len(result.rules)} of {count}"
    yield f"{name}  {dot.join((whole, f'{left_out} left out one at a time'))}"
    yield ""
    yield from _table(result, screen)
    yield ""
    present = dict.fromkeys(row.ablation.worth.value for row in result.rules)
    for worth in present:
        yield f"{screen.paint(_STYLES[worth], worth.ljust(gated.LABEL))}  {_MEANS[worth]}"
    noted = f"{words.plural(result.noted, 'new ablation')} on refs/notes/skillgit/evals"
    yield gated.fact("notes", noted if result.noted else "nothing new", screen)
    yield gated.fact("cost", gated.cost(result.cost, screen), screen)
    yield gated.following(_next(result), screen)


def _table(result: Ablated, screen: Screen) -> Iterator[str]:
    names = ("rule", "lines", "since", "without", "delta", "fixed", "broken", "p", "")
    head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
    rows = [head, *(_cells(row, screen) for row in result.rules)]
    shown = list(table(rows, align="rllrrrrll"))
    used = max(map(width, shown)) + 2
    room = max(_LEAST, screen.width - used) if screen.width else 0
    for line, text in zip(shown, ("", *(row.ablation.text for row in result.rules)), strict=True):
        cut = fit(text, room, screen.glyphs.ellipsis) if room else text
        yield f"{line}{' ' * (used - width(line))}{cut}".rstrip()


def _cells(row: AblatedRule, screen: Screen) -> tuple[str, ...]:
    found = row.ablation
    where = "" if found.region.value == "body" else f" {found.region.value}"
    worth = found.worth.value
    return (
        str(found.rule),
        f"{_lines(found)}{where}",
        row.since,
        words.score(found.score),
        words.delta(found.delta),
        str(len(found.fixed)),
        str(len(found.broken)),
        words.chance(found.p).removeprefix("p "),
        screen.paint(_STYLES[worth], worth),
    )


def _lines(found: Ablation) -> str:
    return str(found.first) if found.first == found.last else f"{found.first}-{found.last}"


def _next(result: Ablated) -> tuple[str, ...]:
    removable = [row for row in result.rules if row.ablation.removable]
    if removable and result.is_head:
        return (f"skillgit prune {result.name} drops {words.plural(len(removable), 'rule')} that it can do without",)
    if removable:
        return (f"skillgit ablate {result.run} looks at the newest version, which prune can shorten",)
    if len(result.rules) < result.every:
        return (f"skillgit ablate {result.name} measures every rule",)
    return (f"skillgit compress {result.name} says the same in fewer words",)


def pruned(result: Pruned, screen: Screen) -> Iterator[str]:
    """Yield what was pruned and what the gate decided."""
    yield from gated.head(result.decided, screen)
    yield ""
    for label, found in (("dropped", result.rules), ("needed", result.needed)):
        for number, one in enumerate(found):
            room = screen.width - gated.LABEL - 12 if screen.width else 0
            text = fit(one.text, max(_LEAST, room), screen.glyphs.ellipsis) if room else one.text
            yield gated.fact(label if number == 0 else "", f"rule {one.rule:<3} {text}", screen)
    yield from gated.facts(result.decided, screen)
    yield gated.following(gated.next_commands(result.decided), screen)
