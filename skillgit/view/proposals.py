"""How it ended for each skill that was to be proposed, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.proposals.proposal import Answer, ProposeReport, SkillProposal
from skillgit.domain.address import version_label
from skillgit.view import numbers
from skillgit.view.surface import Screen, Style
from skillgit.view.text import facts, one_line, under, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

_STYLES = {
    Answer.PROPOSED: Style.ACCEPTED,
    Answer.STANDS: Style.ACCEPTED,
    Answer.NOTHING_NEW: Style.FAINT,
    Answer.NO_BETTER: Style.REJECTED,
    Answer.CANNOT_TELL: Style.REVERTED,
    Answer.BEHIND: Style.REVERTED,
    Answer.UNFINISHED: Style.REVERTED,
    Answer.FAILED: Style.REJECTED,
}


def lines(report: ProposeReport, screen: Screen) -> Iterator[str]:
    for index, proposal in enumerate(report.proposals):
        if index:
            yield ""
        yield f"{screen.paint(Style.STRONG, proposal.skill)}  {screen.paint(_STYLES[proposal.answer], proposal.answer)}"
        if proposal.sentence:
            yield from wrap(one_line(proposal.sentence), screen.width)
        yield from facts(_facts(proposal, report.base, screen), screen, label=8)


def _facts(proposal: SkillProposal, base: str, screen: Screen) -> Iterator[tuple[str, str]]:
    if gain := proposal.gain:
        yield gain.metric, f"{numbers.score(gain.after)}, was {numbers.score(gain.before)}"
        low, high = (numbers.delta(end) for end in gain.interval)
        chance = f"{numbers.chance(gain.p)} one-sided, {numbers.plural(gain.n, f'{gain.split} item')}"
        yield "gain", f"{numbers.delta(gain.delta)}, 95 % {low} to {high}, {chance}"
        yield "gate", f"{gain.policy} at {gain.alpha:g}"
    if proposal.run:
        version = "" if proposal.version is None else version_label(proposal.version)
        yield "run", screen.dotted((proposal.run, version, f"from {numbers.short(proposal.base)}"))
    if proposal.commit:
        yield "branch", screen.dotted((one_line(proposal.branch), numbers.short(proposal.commit), proposal.remote))
    if proposal.url:
        yield "request", one_line(proposal.url)
    if proposal.cost.calls:
        yield "cost", numbers.cost(proposal.cost, screen)
    yield from under("next", _next(proposal, base))


def _next(proposal: SkillProposal, base: str) -> Iterator[str]:
    if proposal.hint:
        yield one_line(proposal.hint)
    elif proposal.commit and not proposal.url:
        branch = one_line(proposal.branch)
        yield f"git diff {one_line(base)}...{branch}"
        push = f"git push REMOTE {branch}; gh pr create --head {branch} --fill"
        yield f"skillgit propose --pull-request, or: {push}"
