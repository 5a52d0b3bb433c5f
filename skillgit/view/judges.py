"""How far judges agree: with themselves, with each other, with labels; and what that does to a score."""

from __future__ import annotations

from collections.abc import Iterator

from skillgit.app.measure.judge_agreement import JudgeAgreement, JudgeComparison, JudgeNoise, PositionBias
from skillgit.domain.agreement import Estimate
from skillgit.view import numbers
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, facts, headed, one_line

_CRITERIA = 12  # criteria that a table lists; --json has all
_LONGEST = 48  # columns of one


def judge_lines(result: JudgeAgreement, screen: Screen) -> Iterator[str]:
    counts = f"{result.results} of {result.available} results {one_line(result.source)}"
    yield screen.dotted((counts, f"each graded {numbers.plural(result.repeats, 'time')}"))
    for comparison in result.comparisons:
        yield ""
        yield from _comparison(comparison, screen)
    if result.positions:
        yield ""
        yield from headed(
            ("shown first or second", "items", "first", "second", "difference", "95 %", "winner changes", "95 %"),
            [_position(position) for position in result.positions],
            screen,
            align="lrrrrlrl",
        )
    yield ""
    yield from facts(_records(result, screen), screen, label=9, columns=screen.width - 9 if screen.width else 0)


def _comparison(comparison: JudgeComparison, screen: Screen) -> Iterator[str]:
    title = f"{one_line(comparison.judge)} with {one_line(comparison.against)}"
    if not comparison.rows:
        yield f"{screen.paint(Style.STRONG, title)}  nothing that both have a score of"
        return
    yield screen.paint(Style.STRONG, title)
    rows = [
        (
            cut(one_line(row.name), _LONGEST, screen),
            str(row.agreement.items),
            *_estimate(row.agreement.same),
            *_estimate(row.agreement.coefficient),
            *_estimate(row.agreement.difference),
        )
        for row in comparison.rows
    ]
    names = ("", "results", "same", "95 %", comparison.coefficient, "95 %", "mean difference", "95 %")
    yield from headed(names, rows[: _CRITERIA + 3], screen, align="lrrlrlrl")
    if (more := len(rows) - _CRITERIA - 3) > 0:
        yield screen.paint(Style.FAINT, f"and {more} more criteria, which --json lists")


def _estimate(estimate: Estimate) -> tuple[str, str]:
    if estimate.value is None:
        return "", ""
    interval = estimate.interval
    return _two(estimate.value), f"{_two(interval[0])} to {_two(interval[1])}" if interval is not None else ""


def _two(value: float) -> str:
    text = f"{abs(value):.2f}"
    return f"{'-' if round(value, 2) < 0 else ''}{text.removeprefix('0')}"


def _position(position: PositionBias) -> tuple[str, ...]:
    return (
        one_line(position.judge),
        str(position.items),
        _two(position.first),
        _two(position.second),
        *_estimate(position.difference),
        *_estimate(position.change_share),
    )


def _records(result: JudgeAgreement, screen: Screen) -> Iterator[tuple[str, str]]:
    for noise in result.noise:
        yield from _noise(noise, screen)
    if result.failures:
        reasons = "; ".join(map(one_line, result.reasons[:3]))
        yield "failed", f"{numbers.plural(result.failures, 'grading')} without a score, which count nowhere: {reasons}"
    if result.noise:
        yield (
            "kept",
            "runs with this judge and these criteria know of it" if result.is_kept else "too few results to keep",
        )
    yield "by", one_line(result.basis.sentence)
    yield "cost", numbers.cost(result.cost, screen)


def _noise(noise: JudgeNoise, screen: Screen) -> Iterator[tuple[str, str]]:
    share, interval = _estimate(noise.flip_share)
    names = f": {numbers.ids(noise.flips, screen)}" if noise.flips else ""
    yield "flips", f"{share} of the results change their verdict, 95 % {interval}{names}"
    on = f"{numbers.plural(noise.items, 'selection item')}"
    judged_count = "" if noise.judged_items == noise.items else f", {noise.judged_items} of them judged"
    yield (
        "noise",
        (
            f"grading alone gives a {noise.metric} score on {on}{judged_count} a standard deviation of"
            f" {numbers.score(noise.deviation)}; two such scores differ by up to {numbers.score(noise.difference)}"
        ),
    )
    least_gain = (
        "too few items to tell a gain from chance"
        if noise.detectable is None
        else (f"the paired test finds gains from {numbers.score(noise.detectable)}")
    )
    yield "gate", f"{least_gain}; equal answers get one grade, so that this noise is in answers that changed"
