"""Measured versions: side by side, again under another model, and held against what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from skillgit.app.measure.claim import SignedClaim
from skillgit.app.measure.claim_check import CheckedClaim
from skillgit.app.measure.eval import ArmScores, Evaluated
from skillgit.app.measure.retest import Retested, RetestRow
from skillgit.app.measure.verify import Verified
from skillgit.app.recorded.score_summary import Interval, Scores, SkillComparison
from skillgit.domain.evaluation import cut_phrase
from skillgit.plugin.environment import SummaryShare
from skillgit.view import numbers
from skillgit.view.items import differing
from skillgit.view.surface import Screen, Style
from skillgit.view.text import facts, headed, one_line, under


def measured_line(name: str, split: str, scores: Scores, screen: Screen) -> str:
    parts = (f"hard {_solved(scores)}", f"soft {_mean(scores.soft)}", f"{scores.scored} of {scores.n} items scored")
    loads = scores.loads.sentence if scores.loads is not None else ""
    return f"{name}  {split}  {screen.dotted((loads, *parts, _remarks(scores)))}"


def _remarks(scores: Scores) -> str:
    tokens = f"{scores.tokens:,.1f} tokens an item" if scores.tokens is not None else ""
    return ", ".join(filter(None, (tokens, cut_phrase(scores.cut, scores.scored) if scores.cut else "")))


def eval_lines(result: Evaluated, screen: Screen) -> Iterator[str]:
    yield screen.dotted((result.environment, f"target {result.target}", f"seed {result.seed}"))
    if result.conditions:
        yield result.conditions
    for sentence in result.same_text:
        yield one_line(sentence)
    arms = result.arms
    for index, first in enumerate(arms[0].splits):
        splits = [(arm.name, arm.splits[index]) for arm in arms]
        yield ""
        yield f"{screen.paint(Style.STRONG, first.split)}  {numbers.plural(first.overall.n, 'item')}"
        for name, split in splits:
            if split.overall.loads is not None:
                yield f"{name}: {split.overall.loads.sentence}"
        rows = [
            (
                name,
                f"{scores.scored}/{scores.n}",
                _solved(scores),
                _interval(scores.hard_interval),
                _mean(scores.soft),
                _interval(scores.soft_interval),
            )
            for name, scores in ((name, split.overall) for name, split in splits)
        ]
        yield from headed(("", "scored", "hard", "95 %", "soft", "95 %"), rows, screen, align="lrrlrl")
        for name, split in splits:
            if words := _remarks(split.overall):
                yield f"{name}: {words}"
        if len(first.types) > 1:
            yield ""
            head = ("task type, hard", "items", *(name for name, _ in splits))
            types = [
                (group.task_type or "none", str(group.n), *(_mean(split.types[number].hard) for _, split in splits))
                for number, group in enumerate(first.types)
            ]
            yield from headed(head, types, screen, align="lr" + "r" * len(arms))
        if any(split.shares for _, split in splits):
            yield ""
            yield from _shares([(name, split.shares) for name, split in splits], screen)
        if against := [entry for entry in result.comparisons if entry.split == first.split]:
            yield ""
            yield from _against(against, screen)
    if any(arm.shares for arm in arms):
        yield ""
        yield screen.paint(Style.STRONG, "all splits")
        yield from _shares([(arm.name, arm.shares) for arm in arms], screen)
    yield ""
    is_test = any(entry.split == "test" for entry in arms[0].splits)
    yield from facts(_records(result, arms, screen, is_test=is_test), screen, label=7)


def _shares(arms: Sequence[tuple[str, Sequence[SummaryShare]]], screen: Screen) -> Iterator[str]:
    cells = [
        (name, share.name, str(share.n), _mean(share.share), _interval(share.interval))
        for name, shares in arms
        for share in shares
    ]
    yield from headed(("", "share", "requests", "", "95 %"), cells, screen, align="llrrl")


def _against(comparisons: Sequence[SkillComparison], screen: Screen) -> Iterator[str]:
    head = ("", f"{comparisons[0].metric} gained", "95 %", "fixed", "broken", "paired test")
    rows = [
        (
            f"{comparison.name} against {comparison.against}",
            numbers.delta(comparison.delta) or "none",
            _signed(comparison.interval) or comparison.too_few,
            str(len(comparison.fixed)),
            str(len(comparison.broken)),
            numbers.chance(comparison.p) if comparison.p is not None else "",
        )
        for comparison in comparisons
    ]
    yield from headed(head, rows, screen, align="lrlrrl")


def _records(
    result: Evaluated | Retested, rows: Sequence[ArmScores | RetestRow], screen: Screen, *, is_test: bool
) -> Iterator[tuple[str, str]]:
    committed = [row for row in rows if row.commit]
    if is_test and committed:
        reads = ", ".join(f"{row.name} {numbers.plural(row.test_reads, 'time')}" for row in committed)
        yield "test", f"evaluated so far: {reads}"
    note = f"{numbers.plural(result.noted, 'new evaluation')} on refs/notes/skillgit/evals"
    yield "notes", note if result.noted else "nothing new"
    yield "by", one_line(result.basis.sentence)
    yield from under("text", (one_line(row.text) for row in rows))
    yield "cost", numbers.cost(result.cost, screen)


def _mean(value: float | None) -> str:
    return numbers.score(value) if value is not None else "none"


def _solved(scores: Scores) -> str:
    return numbers.counted(scores.hard, scores.scored, scores.solved_items) or "none"


def _interval(interval: Interval | None) -> str:
    return f"{numbers.score(interval[0])} to {numbers.score(interval[1])}" if interval is not None else ""


def _signed(interval: Interval | None) -> str:
    return f"{numbers.delta(interval[0])} to {numbers.delta(interval[1])}" if interval is not None else ""


def _counted(score: float | None, scores: Scores, metric: str) -> str:
    return numbers.counted(score, scores.scored, scores.solved_items if metric == "hard" else None)


def retest_lines(result: Retested, screen: Screen) -> Iterator[str]:
    plan = result.plan
    yield from differing(result.differs, screen)
    items = numbers.plural(plan.items, "item")
    yield f"{screen.paint(Style.STRONG, plan.split)}  {items}, {result.metric} scores"
    again = result.own_target == plan.target
    own = f"{result.own_target}, then" if again else result.own_target or "recorded"
    new = f"{plan.target}, now" if again else plan.target
    is_comparable = not any(difference.matters for difference in result.differs)
    gains, changes = ("gained", "95 %", "fixed", "broken", "p, two-sided"), ("change", "95 %", "higher", "lower")
    names = ("", "scored", new, "95 %", own, *(gains if is_comparable else changes))
    rows = []
    for row in result.rows:
        scores, pair = row.found, row.comparison
        interval = {"hard": scores.hard_interval, "soft": scores.soft_interval}.get(result.metric)
        score_cells = (
            f"{scores.scored}/{scores.n}",
            _counted(row.score, scores, result.metric) or "none",
            _interval(interval),
        )
        change: list[str] = []
        if pair is not None:
            change = [numbers.delta(pair.delta), _signed(pair.interval) or pair.too_few]
            change += [str(len(pair.fixed)), str(len(pair.broken)), numbers.chance(row.p) if row.p is not None else ""]
        then = _counted(row.own_score, row.own, result.metric) if row.own is not None else ""
        cells = (row.name, *score_cells, then or "unknown", *change, *[""] * len(names))
        rows.append(cells[: len(names)])
    yield from headed(names, rows, screen, align="lrrlrrlrrl"[: len(names)])
    yield ""
    if any(row.comparison is None for row in result.rows):
        reason = "not compared where the run's outcomes on these items are not known here"
        if any(difference.aspect in {"environment", "items"} for difference in result.differs):
            reason = "not compared item by item with what the run recorded: it measured other items"
            reason += ", or scored them otherwise"
        yield screen.paint(Style.FAINT, reason)
    run = next((row.run for row in result.rows if row.run), "")
    following = [("next", f"skillgit items {run} --models --split {plan.split}")] if run and result.noted else []
    pairs = _records(result, result.rows, screen, is_test=plan.split == "test")
    yield from facts((*pairs, *following), screen, label=7)


_LABEL = 10
_STYLES = {
    "consistent": Style.ACCEPTED,
    "lower": Style.REJECTED,
    "higher": Style.REVERTED,
    "not comparable": Style.REVERTED,
}
_MEANS = {"consistent": " with what was recorded", "not comparable": ""}


def verify_lines(result: Verified, screen: Screen) -> Iterator[str]:
    verdict = result.verdict
    word = screen.paint(_STYLES[verdict.word], verdict.word)
    yield f"{screen.paint(Style.STRONG, result.name)}  {word}{_MEANS.get(verdict.word, ' than recorded')}"
    yield ""
    columns = screen.width - _LABEL if screen.width else 0
    yield from facts(_facts(result, screen), screen, label=_LABEL, columns=columns)


def _facts(result: Verified, screen: Screen) -> Iterator[tuple[str, str]]:
    verdict, claim = result.verdict, result.claim
    on = f"on {numbers.plural(claim.n, f'{result.plan.split} item')}"
    yield "claimed", f"{numbers.score(claim.score)} {on} under {claim.target or 'an unknown model'}"
    if claim.remark:
        yield "", claim.remark
    yield from under("differs", verdict.differs)
    if verdict.differs:
        yield "next", f"skillgit eval {result.row.run}/{result.name} measures it under other conditions"
    if verdict.measured is not None:
        count, is_paired = numbers.plural(verdict.n, "item"), verdict.recorded is not None
        if is_paired:
            score = numbers.counted(verdict.recorded, verdict.n, verdict.recorded_items)
            yield "recorded", f"{score} on the {count} of the sample"
        failures = f", {verdict.failed} could not be evaluated" if verdict.failed else ""
        which = "the same" if is_paired else "the sample's"
        score = numbers.counted(verdict.measured, verdict.n, verdict.solved_items)
        yield "measured", f"{score} on {which} {count}{failures}"
        test = f", {numbers.chance(verdict.p)} two-sided" if verdict.p is not None else ""
        gain = numbers.delta(verdict.delta)
        if is_paired:
            yield "gained", f"{gain}, {numbers.spread(verdict.interval, verdict.too_few)}{test}, paired item by item"
        else:
            low, high = map(numbers.score, verdict.interval or (0.0, 1.0))
            yield "gained", f"{gain} over the claim, 95 % of the measured score {low} to {high}{test}"
            yield "", "the recorded outcomes are not here, so that items could not be paired"
        for label, items in (("higher", verdict.higher), ("lower", verdict.lower)):
            if items:
                yield label, f"{len(items)}: {numbers.ids(items, screen)}"
    if result.plan.split == "test" or result.test_reads:
        yield "test", f"{numbers.plural(result.test_reads, 'evaluation')} of this version on the test split so far"
    if result.cost is not None:
        yield "by", one_line(result.basis.sentence)
        yield "text", f"{one_line(str(result.row.address))}, {numbers.short(result.row.commit)}"
        yield "notes", "1 new evaluation on refs/notes/skillgit/evals" if result.noted else "nothing new"
        yield "cost", numbers.cost(result.cost, screen)


def claim_lines(result: SignedClaim, screen: Screen) -> Iterator[str]:
    yield from _headline(result.statement, screen)
    rows = [
        ("signed", f"sha256 {result.digest}"),
        *([("file", result.file)] if result.file else []),
        ("notes", "1 new claim on refs/notes/skillgit/evals" if result.noted else "nothing new"),
        *([("salt", f"{result.salt} opens the digests of items; it is not kept")] if result.salt else []),
        ("next", f"skillgit verify {result.file or result.name}"),
    ]
    yield from facts(rows, screen, label=_LABEL)


def checked_lines(result: CheckedClaim, screen: Screen) -> Iterator[str]:
    yield from _headline(result.statement, screen)
    yield from facts(_levels(result), screen, label=12, columns=screen.width - 12 if screen.width else 0)


def _headline(statement: Any, screen: Screen) -> Iterator[str]:  # noqa: ANN401 - JSON values, of a stranger perhaps
    predicate = statement.get("predicate")
    version, items, score = (
        part if isinstance(part := predicate.get(name) if isinstance(predicate, dict) else None, dict) else {}
        for name in ("version", "items", "score")
    )
    value = score.get("value")
    number = numbers.score(value) if isinstance(value, float) else value
    text = f"{version.get('skill')}  {items.get('split')} {number} of {items.get('count')} items"
    yield f"{screen.paint(Style.STRONG, one_line(str(version.get('name'))))}  {one_line(text)}"
    yield ""


def _levels(result: CheckedClaim) -> Iterator[tuple[str, str]]:
    signature, check = result.signature, result.recomputation
    if not signature.valid:
        yield "signed", f"no: {one_line(signature.fault)}"
    elif signature.principal:
        yield "signed", f"by {one_line(signature.principal)}, {signature.key}"
    else:
        yield "signed", f"by {signature.key}, which you have to know, or name with --signers"
    replies = f", and {numbers.plural(check.replies, 'reply', 'replies')} scored again" if check.replies else ""
    yield "recomputed", f"{check.wording}: {numbers.plural(check.agreeing, 'value')} as claimed{replies}"
    yield from under("differs", map(one_line, check.contradictions))
    yield from under("not here", map(one_line, check.missing))
    if check.word:
        yield "word", f"the signer's alone: {', '.join(check.word)}"
    verdict = result.reproduction.verdict if result.reproduction is not None else None
    again: str = "not tried: --sample N measures N items again" if verdict is None else verdict.word
    if verdict is not None and verdict.measured is not None:
        again += f": {numbers.score(verdict.measured)} on {numbers.plural(verdict.n, 'item')} measured again"
    yield "reproduced", again
