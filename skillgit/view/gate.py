"""What a gate decided, on a pull request or on a candidate that a person asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.rehearsal import WORDS
from skillgit.errors import ExitCode
from skillgit.view import event_marks as cells
from skillgit.view import numbers, text
from skillgit.view.event_marks import Entry
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, headed, one_line

if TYPE_CHECKING:
    from skillgit.app.interventions.intervention import Decided
    from skillgit.app.measure.library_gate import LibraryVerdict
    from skillgit.app.measure.pull_request_verdicts import Compared, GateReport, GateSide, ItemPair, SkillReport
    from skillgit.domain.gate_decision import Verdict

MARK = "<!-- skillgit gate -->"
"""The first line, by which the comment is found again and replaced."""
MOST_ITEMS = 40
"""Items of one kind that are named; a comment may have 65,536 characters."""
_LONGEST = 120
_MARKS = {"passes": "✅", "fails": "❌", "removed": "✅"}
_UNSEEN = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def markdown(report: GateReport) -> Iterator[str]:
    yield MARK
    words = {ExitCode.OK: "passes", ExitCode.NO: "does not pass"}
    headline = words.get(report.exit_code, "cannot tell") if report.skills else "no skill is changed"
    yield f"## skillgit gate: {headline}"
    yield ""
    ends = f"{_end(report.base, report.base_commit)} → {_end(report.head, report.head_commit)}"
    yield f"{ends}, {report.split} split"
    if not report.skills:
        yield ""
        yield "No skill is changed."
    if report.work_tree:
        yield ""
        yield f"> {code(report.work_tree)}"
    for skill in report.skills:
        yield ""
        yield from _skill_markdown(skill, report)


def code(words: str) -> str:
    """Return ``words`` as a code span for any place: the unseen is written out, bars, which end cells, are replaced."""
    body = _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", one_line(words)).replace("|", "¦")
    body = body if len(body) <= _LONGEST else f"{body[: _LONGEST - 1]}…"
    fence = "`" * (max(map(len, re.findall("`+", body)), default=0) + 1)
    content = f" {body} " if body.startswith("`") or body.endswith("`") or not body else body
    return f"{fence}{content}{fence}"


def _end(name: str, commit: str) -> str:
    if not commit:
        return code(name)
    short = code(numbers.short(commit))
    return short if commit.startswith(name) else f"{code(name)} ({short})"


def _skill_markdown(skill: SkillReport, report: GateReport) -> Iterator[str]:
    mark = _MARKS.get(skill.word, "⚠️")
    yield f"### {mark} {code(skill.skill)} {skill.word}"
    if skill.reason:
        yield ""
        yield f"{skill.reason[0].upper()}{skill.reason[1:]}."
    if skill.items:
        yield ""
        yield from _sides(skill, report)
    if skill.compared is not None:
        yield ""
        yield from _items(skill.compared)
        yield ""
        yield from _fact_rows(skill, skill.compared)
    for warning in skill.warnings:
        yield ""
        yield f"> {code(warning)}"


def _sides(skill: SkillReport, report: GateReport) -> Iterator[str]:
    def row(label: str, cells: Sequence[str]) -> str:
        return f"| {label} | {' | '.join(cells)} |"

    sides = (skill.base, skill.head)
    names = [code(side.version or side.name) for side in sides]
    yield row("", [f"base {names[0]}", f"head {names[1]}"])
    yield "|---|--:|--:|"
    if skill.compared is not None:
        yield row(f"{skill.metric} score", [_score(side) for side in sides])
        yield row("items with a score", [f"{side.scored} of {skill.items}" for side in sides])
    yield row("recorded", [str(side.recorded) for side in sides])
    now = "to measure" if skill.compared is None else "measured now"
    now = "not recorded" if report.recorded_only else now
    yield row(now, [str(side.missing) for side in sides])


def _items(comparison: Compared) -> Iterator[str]:
    yield "| items | | which |"
    yield "|---|--:|---|"
    yield f"| fixed | {len(comparison.fixed)} | {_pairs(comparison.fixed)} |"
    yield f"| broken | {len(comparison.broken)} | {_pairs(comparison.broken)} |"
    yield f"| stable, solved | {len(comparison.stable_pass)} | |"
    yield f"| stable, not solved | {len(comparison.stable_fail)} | |"
    if comparison.missing:
        yield f"| without a score | {len(comparison.missing)} | {_some([code(item) for item in comparison.missing])} |"


def _pairs(pairs: Sequence[ItemPair]) -> str:
    def item(pair: ItemPair) -> str:
        is_whole = {pair.before, pair.after} == {0.0, 1.0}
        return code(pair.item) + ("" if is_whole else f" {numbers.score(pair.before)} → {numbers.score(pair.after)}")

    return _some([item(pair) for pair in pairs])


def _some(items: Sequence[str]) -> str:
    more = len(items) - MOST_ITEMS
    return f"{' '.join(items[:MOST_ITEMS])}{f' and {more} more' if more > 0 else ''}"


def _fact_rows(skill: SkillReport, comparison: Compared) -> Iterator[str]:
    verdict = comparison.verdict
    if comparison.delta is not None:
        gain = f"gained {numbers.delta(comparison.delta)} ({numbers.spread(comparison.interval, comparison.too_few)})"
        yield f"- {gain}, {numbers.chance(verdict.p)} one-sided, rule {code(skill.policy)}"
    if verdict.token_words:
        yield f"- {verdict.token_words}"
    basis = skill.basis
    reason = f" ({code(basis.reason)})" if basis.reason else ""
    yield f"- measured by {code(basis.source)}{reason} under {code(basis.target)}"
    if basis.judge:
        yield f"- scored by {code(basis.judge)}"
    yield f"- data: {code(basis.data)}"
    yield f"- text: {code(skill.text)}"
    if basis.rehearsal:
        yield f"- {basis.rehearsal}" if basis.rehearsal == WORDS else f"- {code(basis.rehearsal)}"
    yield f"- cost: {numbers.cost(skill.cost, Screen())}"


_STYLES = {"passes": Style.ACCEPTED, "fails": Style.REJECTED, "removed": Style.FAINT}


def lines(report: GateReport, screen: Screen) -> Iterator[str]:
    if not report.skills:
        yield f"{one_line(report.head)} changes no skill against {one_line(report.base)}"
        if report.work_tree:
            yield one_line(report.work_tree)
        return
    for index, skill in enumerate(report.skills):
        if index:
            yield ""
        yield from _skill(skill, report, screen)
    if report.work_tree:
        yield ""
        yield one_line(report.work_tree)


def _skill(skill: SkillReport, report: GateReport, screen: Screen) -> Iterator[str]:
    word = screen.paint(_STYLES.get(skill.word, Style.REVERTED), skill.word)
    yield f"{screen.paint(Style.STRONG, one_line(skill.skill))}  {word}{f': {skill.reason}' if skill.reason else ''}"
    comparison = skill.compared
    if comparison is None:
        return
    yield ""
    head = ("", skill.metric, "scored", "recorded", "measured now")
    rows = [_side(side, skill, report) for side in (skill.base, skill.head)]
    yield from headed(head, rows, screen, align="lrrrr")
    yield ""
    yield from text.facts(_facts(skill, comparison, screen), screen, label=10)


def _score(side: GateSide) -> str:
    return numbers.counted(side.score, side.scored, side.solved_items) or "none"


def _side(side: GateSide, skill: SkillReport, report: GateReport) -> tuple[str, ...]:
    version = f" ({side.version})" if side.version and side.version != side.name else ""
    return (
        f"{one_line(side.name)}{version}",
        _score(side),
        f"{side.scored}/{skill.items}",
        str(side.recorded),
        "0" if report.recorded_only else str(side.missing),
    )


def _facts(skill: SkillReport, comparison: Compared, screen: Screen) -> Iterator[tuple[str, str]]:
    verdict = comparison.verdict
    if comparison.delta is not None:
        interval = numbers.spread(comparison.interval, comparison.too_few)
        yield "gained", f"{numbers.delta(comparison.delta)}, {interval}, {numbers.chance(verdict.p)} one-sided"
    if verdict.token_words:
        yield "tokens", verdict.token_words
    yield "rule", skill.policy
    for label, pairs in (("fixed", comparison.fixed), ("broken", comparison.broken)):
        yield label, _ids([pair.item for pair in pairs], screen) if pairs else "0"
    yield "stable", f"{len(comparison.stable_pass)} solved, {len(comparison.stable_fail)} not"
    if comparison.missing:
        yield "missing", _ids(comparison.missing, screen)
    for warning in skill.warnings:
        yield "note", one_line(warning)
    yield "by", one_line(skill.basis.sentence)
    yield "text", one_line(skill.text)
    yield "cost", numbers.cost(skill.cost, screen)


def _ids(items: Sequence[str], screen: Screen) -> str:
    return f"{len(items)}: {numbers.ids(tuple(map(one_line, items)), screen)}"


LABEL = 8


def decided(result: Decided, screen: Screen) -> Iterator[str]:
    yield from head(result, screen)
    yield from facts(result, screen)
    yield following(next_commands(result), screen)


def head(result: Decided, screen: Screen) -> Iterator[str]:
    row = result.event
    entry = Entry.of_row(row)
    yield f"{screen.paint(Style.STRONG, row.label)}  {cells.outcome(entry, screen)}"
    yield screen.dotted((row.run, f"base {version_label(result.base)}", result.branch, numbers.short(row.commit)))
    yield screen.paint(Style.STRONG, cells.title(entry))


def facts(result: Decided, screen: Screen) -> Iterator[str]:
    yield ""
    yield fact("gate", _gate(result.verdict, screen, bound=result.event.bound is not None), screen)
    for label, items in (("fixed", result.fixed), ("broken", result.broken)):
        if items:
            yield fact(label, numbers.ids(items, screen), screen)
    evaluation = result.evaluation
    remark = f", {evaluation.unneeded} not measured (the decision was settled)" if evaluation.unneeded else ""
    yield fact("items", f"{evaluation.scored} of {evaluation.n} selection items scored{remark}", screen)
    before, after = result.tokens_before, result.tokens_after
    change = f", {after - before:+d}" if after != before else ""
    yield fact("length", f"about {after:,} tokens, {before:,} before{change}", screen)
    for omission in result.left_out:
        sentence = f"{omission.edit} ({omission.status}: {omission.reason})"
        yield fact("skipped", cut(sentence, max(40, screen.width - LABEL), screen), screen)
    for note in result.notes:
        yield fact("note", note, screen)
    yield fact("by", one_line(result.basis.sentence), screen)
    yield fact("cost", cost(result.cost, screen), screen)


def cost(total: Cost, screen: Screen) -> str:
    """Return what was spent; nothing, where all of it had been measured before."""
    return numbers.cost(total, screen) if total.calls else "no call: everything had been measured before"


def fact(label: str, sentence: str, screen: Screen) -> str:
    return f"{screen.paint(Style.FAINT, label.ljust(LABEL))}  {sentence}"


def following(commands: tuple[str, ...], screen: Screen) -> str:
    return fact("next", screen.dotted(commands), screen)


def _gate(verdict: Verdict, screen: Screen, *, bound: bool) -> str:
    demand = f"{verdict.policy} asks for {verdict.demand}"
    most = screen.glyphs.at_most if bound else ""
    scores = f"{most}{numbers.score(verdict.score)} against {numbers.score(verdict.current)}"
    flips = f"{verdict.fixed} fixed, {verdict.broken} broken, {numbers.chance(verdict.p)}"
    regressions = f"{verdict.blocked} of them may not score lower" if verdict.blocked else ""
    return screen.dotted((demand, scores, verdict.token_words, flips, regressions))


def next_commands(result: Decided) -> tuple[str, ...]:
    row = result.event
    show = f"skillgit show {row.address}"
    diff = f"skillgit diff {row.run}/{version_label(result.base)} {row.address} --items"
    return (diff, show) if result.accepted else (show,)


def library_lines(verdict: LibraryVerdict, screen: Screen) -> Iterator[str]:
    """Yield what an edit takes from other skills of a library."""
    for shadowing in verdict.shadowings:
        word = screen.paint(Style.REJECTED, "shadows")
        by = ", ".join(map(one_line, shadowing.by))
        yield f"{by} {word} {one_line(shadowing.skill)}: {shadowing.sentence}"
    count = numbers.plural(verdict.skills, "skill")
    changes = ", ".join(map(one_line, verdict.changes)) or "no skill"
    outcome = "does not pass" if verdict.shadowings else "passes"
    yield f"{outcome}: {changes} changed in a library of {count}"
