"""A claim and what came of measuring it again: the verdict first, then the numbers that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import wrap
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.claim import Verdict
    from skillgit.app.verify import Verified
    from skillgit.cli.screen import Screen

_LABEL = 10
_STYLES = {
    "consistent": Style.ACCEPTED,
    "lower": Style.REJECTED,
    "higher": Style.REVERTED,
    "not comparable": Style.REVERTED,
}


def lines(result: Verified, screen: Screen) -> Iterator[str]:
    """Yield everything about a verification."""
    verdict = result.verdict
    word = screen.paint(_STYLES[verdict.word], verdict.word)
    yield f"{screen.paint(Style.STRONG, result.name)}  {word}{_meaning(verdict)}"
    yield ""
    for label, text in _facts(result, screen):
        columns = screen.width - _LABEL if screen.width else 0
        for number, line in enumerate(wrap(text, columns)):
            yield f"{screen.paint(Style.FAINT, label.ljust(_LABEL)) if number == 0 else ' ' * _LABEL}{line}"


def _meaning(verdict: Verdict) -> str:
    return {
        "consistent": " with what was recorded",
        "lower": " than recorded",
        "higher": " than recorded",
        "not comparable": "",
    }[verdict.word]


def _facts(result: Verified, screen: Screen) -> Iterator[tuple[str, str]]:
    verdict, claim = result.verdict, result.claim
    on = f"on {words.plural(claim.n, f'{result.plan.split} item')}"
    yield "claimed", f"{words.score(claim.score)} {on} under {claim.target or 'an unknown model'}"
    if claim.remark:
        yield "", claim.remark
    for number, sentence in enumerate(verdict.differs):
        yield "differs" if number == 0 else "", sentence
    if verdict.differs:
        yield "next", f"skillgit eval {result.row.run}/{result.name} measures it under other conditions"
    if verdict.measured is not None:
        yield from _numbers(verdict, screen)
    if result.plan.split == "test" or result.test_reads:
        yield "test", f"{words.plural(result.test_reads, 'evaluation')} of this version on the test split so far"
    if result.cost is not None:
        yield "notes", "1 new evaluation on refs/notes/skillgit/evals" if result.noted else "nothing new"
        yield "cost", words.cost(result.cost, screen)


def _numbers(verdict: Verdict, screen: Screen) -> Iterator[tuple[str, str]]:
    if verdict.recorded is not None:
        yield "recorded", f"{words.score(verdict.recorded)} on the {words.plural(verdict.n, 'item')} of the sample"
    failed = f", {verdict.failed} could not be evaluated" if verdict.failed else ""
    which = "the same" if verdict.recorded is not None else "the sample's"
    yield "measured", f"{words.score(verdict.measured)} on {which} {words.plural(verdict.n, 'item')}{failed}"
    low, high = verdict.interval or (0.0, 0.0)
    tested = f", {words.chance(verdict.p)} two-sided" if verdict.p is not None else ""
    if verdict.recorded is not None:
        interval = f"95 % {words.delta(low)} to {words.delta(high)}"
        yield "gained", f"{words.delta(verdict.delta)}, {interval}{tested}, paired item by item"
    else:
        interval = f"95 % of the measured score {words.score(low)} to {words.score(high)}"
        yield "gained", f"{words.delta(verdict.delta)} over the claim, {interval}{tested}"
        yield "", "the recorded outcomes are not here, so that items could not be paired"
    for label, items in (("higher", verdict.higher), ("lower", verdict.lower)):
        if items:
            yield label, f"{len(items)}: {words.ids(items, screen)}"
