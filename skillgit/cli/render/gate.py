"""A comparison of two revisions, skill by skill: the verdict first, then the numbers that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import table
from skillgit.cli.render.inert import one_line
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.gate_report import Compared, GateReport, GateSide, ItemPair, SkillReport
    from skillgit.cli.screen import Screen

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
