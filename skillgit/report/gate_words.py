"""What a gate asks for, and why it refused a candidate, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from skillgit.domain.evaluation import Metric
from skillgit.domain.gate import Decision, NoRegression
from skillgit.domain.policies import shortfall, wanted
from skillgit.report.figures import delta, score
from skillgit.view.words import chance, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.app.deliver.report_events import Told
    from skillgit.app.deliver.report_whole import Report
    from skillgit.domain.gate import Verdict

_METRICS = {
    Metric.HARD: "hard score",
    Metric.SOFT: "soft score",
    Metric.MIXED: "mixed hard and soft score",
}


def verdict_of(told: Told) -> Verdict | None:
    """Return the gate's decision on an event; None if it passed no gate, or is not told in full."""
    return None if told.telling is None else getattr(told.telling.event, "verdict", None)


def rule(report: Report) -> str:
    """Return by which rule the run's gate decides."""
    verdict = next(filter(None, map(verdict_of, _gated(report))), None)
    if verdict is None:
        return "no candidate came as far as the gate"
    if not verdict.gated:
        return "none: every candidate that was measured became a version"
    told = (
        f"{verdict.policy}: it asks for {wanted(verdict.policy, verdict.terms)},"
        f" by the mean {_METRICS[verdict.metric]} on the selection items"
    )
    match verdict.no_regression:
        case NoRegression.NONE:
            return told
        case NoRegression.PINNED:
            return f"{told}, and if no pinned item scores lower"
        case NoRegression.ALL:
            return f"{told}, and if no item scores lower"
        case _:
            assert_never(verdict.no_regression)


def _gated(report: Report) -> Iterable[Told]:
    # an intervention may have a gate of its own, as compress has
    events = (*report.versions.told, *report.rejected.told, *report.slow.told)
    return (told for told in events if told.row.origin in {"step", "meta"} and told.row.kind != "reverted")


def compared(verdict: Verdict, *, bound: bool) -> str:
    """Return what the gate compared: both scores, what flipped, and the chance of that."""
    own = f"at most {score(verdict.score)}" if bound else score(verdict.score)
    flipped = f"{verdict.fixed} fixed, {verdict.broken} broken, {chance(verdict.p)}"
    repeats = f", {plural(verdict.repeats, 'repeat')} of items that differ" if verdict.repeats else ""
    return f"{verdict.metric.value} {own} against {score(verdict.current)}; {flipped}{repeats}"


def refusal(verdict: Verdict, *, bound: bool) -> str:
    """Return why a candidate was refused."""
    gain = verdict.score - verdict.current
    if verdict.decision is Decision.INDECISIVE:
        if verdict.lost > verdict.regained:
            return f"it lost {plural(verdict.lost, 'item')} that the current version could answer"
        return "too few items had a score for a decision"
    if verdict.blocked:
        return f"{plural(verdict.blocked, 'item')} that may not score lower did"
    if gain <= 0 and bound:
        return f"could not beat {score(verdict.current)} any more, and was stopped early"
    if gain < 0:
        return f"lower than {score(verdict.current)} by {score(-gain)}"
    if gain == 0:
        return f"a tie with {score(verdict.current)}, and a tie is no gain"
    return f"higher by {delta(gain)}, but {shortfall(verdict.policy, verdict.p, verdict.terms)}"
