"""What a gate decided, on a pull request or on a candidate that a person asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.policies import wanted
from skillgit.view import event as cells
from skillgit.view import words
from skillgit.view.event import Entry
from skillgit.view.screen import Style
from skillgit.view.text import fit, one_line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.change.intervention import Decided
    from skillgit.app.measure.gate_report import Compared, GateReport, GateSide, ItemPair, SkillReport
    from skillgit.domain.cost import Cost
    from skillgit.domain.gate import Verdict
    from skillgit.view.screen import Screen


_LABEL = 10
_STYLES = {"passes": Style.ACCEPTED, "fails": Style.REJECTED, "removed": Style.FAINT}


def lines(report: GateReport, screen: Screen) -> Iterator[str]:
    """Yield everything about a comparison."""
    if not report.skills:
        yield nothing_changed(report)
        return
    for place, one in enumerate(report.skills):
        if place:
            yield ""
        yield from _skill(one, report, screen)


def nothing_changed(report: GateReport) -> str:
    """Return the sentence for a head that changes no skill."""
    return f"{one_line(report.head)} changes no skill against {one_line(report.base)}"


def _skill(one: SkillReport, report: GateReport, screen: Screen) -> Iterator[str]:
    word = screen.paint(_STYLES.get(one.word, Style.REVERTED), one.word)
    yield f"{screen.paint(Style.STRONG, one_line(one.skill))}  {word}{f': {one.reason}' if one.reason else ''}"
    found = one.compared
    if found is None:
        return
    yield ""
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("", one.metric, "scored", "recorded", "measured now"))
    yield from table([head, *(_side(side, one, report) for side in (one.base, one.head))], align="lrrrr")
    yield ""
    for label, text in _facts(one, found, screen):
        yield f"{screen.paint(Style.FAINT, label.ljust(_LABEL))}{text}"


def _side(side: GateSide, one: SkillReport, report: GateReport) -> tuple[str, ...]:
    known = f" ({side.version})" if side.version and side.version != side.name else ""
    return (
        f"{one_line(side.name)}{known}",
        words.score(side.score) or "none",
        f"{side.scored}/{one.items}",
        str(side.recorded),
        "0" if report.recorded_only else str(side.missing),
    )


def _facts(one: SkillReport, found: Compared, screen: Screen) -> Iterator[tuple[str, str]]:
    verdict = found.verdict
    if found.delta is not None and found.interval is not None:
        low, high = found.interval
        interval = f"95 % {words.delta(low)} to {words.delta(high)}"
        yield "gained", f"{words.delta(found.delta)}, {interval}, {words.chance(verdict.p)} one-sided"
    yield "rule", one.policy
    yield "fixed", _ids(found.fixed, screen)
    yield "broken", _ids(found.broken, screen)
    yield "stable", f"{len(found.stable_pass)} solved, {len(found.stable_fail)} not"
    if found.missing:
        yield "missing", f"{len(found.missing)}: {words.ids(tuple(map(one_line, found.missing)), screen)}"
    for warning in one.warnings:
        yield "note", one_line(warning)
    yield "cost", words.cost(one.cost, screen)


def _ids(pairs: tuple[ItemPair, ...], screen: Screen) -> str:
    if not pairs:
        return "0"
    return f"{len(pairs)}: {words.ids(tuple(one_line(pair.item) for pair in pairs), screen)}"


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
