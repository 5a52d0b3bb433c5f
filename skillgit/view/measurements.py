"""Measured versions: side by side, again under another model, and held against what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.view import numbers
from skillgit.view.items import differing
from skillgit.view.surface import Style
from skillgit.view.text import table, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.measure.eval import ArmScores, Evaluated
    from skillgit.app.measure.retest import Retested, RetestRow
    from skillgit.app.measure.verification import ClaimVerdict
    from skillgit.app.measure.verify import Verified
    from skillgit.app.recorded.score_summary import Interval, Scores, SkillComparison
    from skillgit.view.surface import Screen


def measured_line(name: str, split: str, scores: Scores, screen: Screen) -> str:
    """Return what was measured just now on one line."""
    dot = f" {screen.glyphs.dot} "
    parts = (f"hard {_mean(scores.hard)}", f"soft {_mean(scores.soft)}", f"{scores.scored} of {scores.n} items scored")
    return f"{name}  {split}  {dot.join(parts)}"


def eval_lines(result: Evaluated, screen: Screen) -> Iterator[str]:
    dot = f" {screen.glyphs.dot} "
    yield dot.join((result.environment, f"target {result.target}", f"seed {result.seed}"))
    for index, split in enumerate(entry.split for entry in result.arms[0].splits):
        yield ""
        yield from _split(result, index, screen)
        against = [entry for entry in result.comparisons if entry.split == split]
        if against:
            yield ""
            yield from _against(against, screen)
    yield ""
    yield from _end(result, screen)


def _split(result: Evaluated, index: int, screen: Screen) -> Iterator[str]:
    arms = result.arms
    first = arms[0].splits[index]
    yield f"{screen.paint(Style.STRONG, first.split)}  {numbers.plural(first.overall.n, 'item')}"
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("", "scored", "hard", "95 %", "soft", "95 %"))
    rows = [_overall(arm, index) for arm in arms]
    yield from table([head, *rows], align="lrrlrl")
    kinds = [group.task_type for group in first.types]
    if len(kinds) > 1:
        yield ""
        yield from _types(arms, index, screen)


def _overall(arm: ArmScores, index: int) -> tuple[str, ...]:
    scores = arm.splits[index].overall
    return (
        arm.name,
        f"{scores.scored}/{scores.n}",
        _mean(scores.hard),
        _interval(scores.hard_interval),
        _mean(scores.soft),
        _interval(scores.soft_interval),
    )


def _types(arms: Sequence[ArmScores], index: int, screen: Screen) -> Iterator[str]:
    """Yield the hard score of each task type under each skill."""
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("task type, hard", "items", *(arm.name for arm in arms)))
    rows = [
        (group.task_type or "none", str(group.n), *(_mean(arm.splits[index].types[number].hard) for arm in arms))
        for number, group in enumerate(arms[0].splits[index].types)
    ]
    yield from table([head, *rows], align="lr" + "r" * len(arms))


def _against(comparisons: Sequence[SkillComparison], screen: Screen) -> Iterator[str]:
    metric = comparisons[0].metric
    names = ("", f"{metric} gained", "95 %", "fixed", "broken", "paired test")
    head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
    rows = [
        (
            f"{comparison.name} against {comparison.against}",
            numbers.delta(comparison.delta) or "none",
            _signed(comparison.interval),
            str(len(comparison.fixed)),
            str(len(comparison.broken)),
            numbers.chance(comparison.p) if comparison.p is not None else "",
        )
        for comparison in comparisons
    ]
    yield from table([head, *rows], align="lrlrrl")


def _end(result: Evaluated, screen: Screen) -> Iterator[str]:
    arms = [arm for arm in result.arms if arm.commit]
    if any(entry.split == "test" for entry in result.arms[0].splits):
        reads = ", ".join(f"{arm.name} {numbers.plural(arm.test_reads, 'time')}" for arm in arms)
        yield _fact("test", f"evaluated so far: {reads}", screen)
    note = f"{numbers.plural(result.noted, 'new evaluation')} on refs/notes/skillgit/evals"
    yield _fact("notes", note if result.noted else "nothing new", screen)
    yield _fact("cost", numbers.cost(result.cost, screen), screen)


def _fact(label: str, text: str, screen: Screen) -> str:
    return f"{screen.paint(Style.FAINT, label.ljust(5))}  {text}"


def _mean(value: float | None) -> str:
    return numbers.score(value) if value is not None else "none"


def _interval(interval: Interval | None) -> str:
    return f"{numbers.score(interval[0])} to {numbers.score(interval[1])}" if interval is not None else ""


def _signed(interval: Interval | None) -> str:
    return f"{numbers.delta(interval[0])} to {numbers.delta(interval[1])}" if interval is not None else ""


def retest_lines(result: Retested, screen: Screen) -> Iterator[str]:
    plan = result.plan
    yield from differing(result.differs, screen)
    items = numbers.plural(plan.items, "item")
    yield f"{screen.paint(Style.STRONG, plan.split)}  {items}, {result.metric} scores"
    again = result.own_target == plan.target
    own = f"{result.own_target}, then" if again else result.own_target or "recorded"
    new = f"{plan.target}, now" if again else plan.target
    is_comparable = not any(difference.matters for difference in result.differs)
    columns = (
        ("gained", "95 %", "fixed", "broken", "p, two-sided")
        if is_comparable
        else ("change", "95 %", "higher", "lower")
    )
    names = ("", "scored", new, "95 %", own, *columns)
    head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
    rows = [_cells(row, result)[: len(names)] for row in result.rows]
    yield from table([head, *rows], align="lrrlrrlrrl"[: len(names)])
    yield ""
    if any(row.comparison is None for row in result.rows):
        yield screen.paint(Style.FAINT, _unpaired(result))
    if plan.split == "test":
        reads = ", ".join(f"{row.name} {numbers.plural(row.test_reads, 'time')}" for row in result.rows)
        yield _fact("test", f"evaluated so far: {reads}", screen)
    note = f"{numbers.plural(result.noted, 'new evaluation')} on refs/notes/skillgit/evals"
    yield _fact("notes", note if result.noted else "nothing new", screen)
    yield _fact("cost", numbers.cost(result.cost, screen), screen)
    run = next((row.run for row in result.rows if row.run), "")
    if run and result.noted:
        yield _fact("next", f"skillgit matrix {run} --split {plan.split}", screen)


def _cells(row: RetestRow, result: Retested) -> tuple[str, ...]:
    scores, pair = row.found, row.comparison
    interval = {"hard": scores.hard_interval, "soft": scores.soft_interval}.get(result.metric)
    return (
        row.name,
        f"{scores.scored}/{scores.n}",
        numbers.score(row.score) or "none",
        f"{numbers.score(interval[0])} to {numbers.score(interval[1])}" if interval is not None else "",
        numbers.score(row.own_score) or "unknown",
        numbers.delta(pair.delta) if pair is not None else "",
        _signed(pair.interval) if pair is not None else "",
        str(len(pair.fixed)) if pair is not None else "",
        str(len(pair.broken)) if pair is not None else "",
        numbers.chance(row.p) if row.p is not None else "",
    )


def _unpaired(result: Retested) -> str:
    if any(difference.aspect in {"environment", "items"} for difference in result.differs):
        return "not compared item by item with what the run recorded: it measured other items, or scored them otherwise"
    return "not compared where the run's outcomes on these items are not known here"


_LABEL = 10
_STYLES = {
    "consistent": Style.ACCEPTED,
    "lower": Style.REJECTED,
    "higher": Style.REVERTED,
    "not comparable": Style.REVERTED,
}


def verify_lines(result: Verified, screen: Screen) -> Iterator[str]:
    verdict = result.verdict
    word = screen.paint(_STYLES[verdict.word], verdict.word)
    yield f"{screen.paint(Style.STRONG, result.name)}  {word}{_meaning(verdict)}"
    yield ""
    for label, text in _facts(result, screen):
        columns = screen.width - _LABEL if screen.width else 0
        for number, line in enumerate(wrap(text, columns)):
            yield f"{screen.paint(Style.FAINT, label.ljust(_LABEL)) if number == 0 else ' ' * _LABEL}{line}"


def _meaning(verdict: ClaimVerdict) -> str:
    return {
        "consistent": " with what was recorded",
        "lower": " than recorded",
        "higher": " than recorded",
        "not comparable": "",
    }[verdict.word]


def _facts(result: Verified, screen: Screen) -> Iterator[tuple[str, str]]:
    verdict, claim = result.verdict, result.claim
    on = f"on {numbers.plural(claim.n, f'{result.plan.split} item')}"
    yield "claimed", f"{numbers.score(claim.score)} {on} under {claim.target or 'an unknown model'}"
    if claim.remark:
        yield "", claim.remark
    for number, sentence in enumerate(verdict.differs):
        yield "differs" if number == 0 else "", sentence
    if verdict.differs:
        yield "next", f"skillgit eval {result.row.run}/{result.name} measures it under other conditions"
    if verdict.measured is not None:
        yield from _numbers(verdict, screen)
    if result.plan.split == "test" or result.test_reads:
        yield ("test", f"{numbers.plural(result.test_reads, 'evaluation')} of this version on the test split so far")
    if result.cost is not None:
        yield "notes", "1 new evaluation on refs/notes/skillgit/evals" if result.noted else "nothing new"
        yield "cost", numbers.cost(result.cost, screen)


def _numbers(verdict: ClaimVerdict, screen: Screen) -> Iterator[tuple[str, str]]:
    if verdict.recorded is not None:
        yield (
            "recorded",
            f"{numbers.score(verdict.recorded)} on the {numbers.plural(verdict.n, 'item')} of the sample",
        )
    failures = f", {verdict.failed} could not be evaluated" if verdict.failed else ""
    which = "the same" if verdict.recorded is not None else "the sample's"
    yield ("measured", f"{numbers.score(verdict.measured)} on {which} {numbers.plural(verdict.n, 'item')}{failures}")
    low, high = verdict.interval or (0.0, 0.0)
    test = f", {numbers.chance(verdict.p)} two-sided" if verdict.p is not None else ""
    if verdict.recorded is not None:
        interval = f"95 % {numbers.delta(low)} to {numbers.delta(high)}"
        yield "gained", f"{numbers.delta(verdict.delta)}, {interval}{test}, paired item by item"
    else:
        interval = f"95 % of the measured score {numbers.score(low)} to {numbers.score(high)}"
        yield "gained", f"{numbers.delta(verdict.delta)} over the claim, {interval}{test}"
        yield "", "the recorded outcomes are not here, so that items could not be paired"
    for label, items in (("higher", verdict.higher), ("lower", verdict.lower)):
        if items:
            yield label, f"{len(items)}: {numbers.ids(items, screen)}"
