"""A comparison of two revisions as Markdown, for the comment on a pull request or the summary of a job.

Names of skills, revisions and items are other people's words. They stand in code spans, where GitHub interprets no
markup, link, mention or reference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.errors import ExitCode
from skillgit.view import words
from skillgit.view.screen import Screen
from skillgit.view.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.measure.gate_report import Compared, GateReport, GateSide, ItemPair, SkillReport

MARK = "<!-- skillgit gate -->"
"""The first line, by which the comment is found again and replaced."""
MOST_ITEMS = 40
"""Items of one kind that are named; a comment may have 65,536 characters."""
_LONGEST = 120
_PLAIN = Screen()
_MARKS = {"passes": "✅", "fails": "❌", "removed": "✅"}
_UNSEEN = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def markdown(report: GateReport) -> Iterator[str]:
    """Yield the lines of the whole comparison."""
    yield MARK
    yield f"## skillgit gate: {_headline(report)}"
    yield ""
    ends = f"{_end(report.base, report.base_commit)} → {_end(report.head, report.head_commit)}"
    yield f"{ends}, {report.split} split"
    if not report.skills:
        yield ""
        yield "No skill is changed."
    for one in report.skills:
        yield ""
        yield from _skill(one, report)


def code(text: str) -> str:
    """Return ``text`` as a code span that means the same inside and outside of a table.

    Characters that are not seen are written out, line ends and bars are replaced: a bar would end the cell.
    """
    shown = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", one_line(text)).replace("|", "¦")
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    padded = f" {shown} " if shown.startswith("`") or shown.endswith("`") or not shown else shown
    return f"{fence}{padded}{fence}"


def _headline(report: GateReport) -> str:
    if not report.skills:
        return "no skill is changed"
    match report.exit_code:
        case ExitCode.OK:
            return "passes"
        case ExitCode.NO:
            return "does not pass"
        case _:
            return "cannot tell"


def _end(name: str, commit: str) -> str:
    return f"{code(name)} ({code(words.short(commit))})" if not commit.startswith(name) else code(words.short(commit))


def _skill(one: SkillReport, report: GateReport) -> Iterator[str]:
    mark = _MARKS.get(one.word, "⚠️")
    yield f"### {mark} {code(one.skill)} {one.word}"
    if one.reason:
        yield ""
        yield f"{one.reason[0].upper()}{one.reason[1:]}."
    if one.items:
        yield ""
        yield from _sides(one, report)
    if one.compared is not None:
        yield ""
        yield from _items(one.compared)
        yield ""
        yield from _facts(one, one.compared)
    for warning in one.warnings:
        yield ""
        yield f"> {code(warning)}"


def _sides(one: SkillReport, report: GateReport) -> Iterator[str]:
    def row(label: str, cells: Sequence[str]) -> str:
        return f"| {label} | {' | '.join(cells)} |"

    sides = (one.base, one.head)
    yield row("", [f"{word} {code(_name(side))}" for word, side in zip(("base", "head"), sides, strict=True)])
    yield "|---|--:|--:|"
    if one.compared is not None:
        yield row(f"{one.metric} score", [words.score(side.score) or "none" for side in sides])
        yield row("items with a score", [f"{side.scored} of {one.items}" for side in sides])
    yield row("recorded", [str(side.recorded) for side in sides])
    now = "to measure" if one.compared is None else "measured now"
    now = "not recorded" if report.recorded_only else now
    yield row(now, [str(side.missing) for side in sides])


def _name(side: GateSide) -> str:
    return side.version or side.name


def _items(found: Compared) -> Iterator[str]:
    yield "| items | | which |"
    yield "|---|--:|---|"
    yield f"| fixed | {len(found.fixed)} | {_pairs(found.fixed)} |"
    yield f"| broken | {len(found.broken)} | {_pairs(found.broken)} |"
    yield f"| stable, solved | {len(found.stable_pass)} | |"
    yield f"| stable, not solved | {len(found.stable_fail)} | |"
    if found.missing:
        yield f"| without a score | {len(found.missing)} | {_some([code(item) for item in found.missing])} |"


def _pairs(pairs: Sequence[ItemPair]) -> str:
    def told(pair: ItemPair) -> str:
        whole = {pair.before, pair.after} == {0.0, 1.0}
        return code(pair.item) if whole else f"{code(pair.item)} {words.score(pair.before)} → {words.score(pair.after)}"

    return _some([told(pair) for pair in pairs])


def _some(items: Sequence[str]) -> str:
    more = len(items) - MOST_ITEMS
    return f"{' '.join(items[:MOST_ITEMS])}{f' and {more} more' if more > 0 else ''}"


def _facts(one: SkillReport, found: Compared) -> Iterator[str]:
    verdict = found.verdict
    if found.delta is not None and found.interval is not None:
        low, high = found.interval
        gained = f"gained {words.delta(found.delta)} (95 % {words.delta(low)} to {words.delta(high)})"
        yield f"- {gained}, {words.chance(verdict.p)} one-sided, rule {code(one.policy)}"
    yield f"- measured by {code(one.config)} under {code(one.target)}"
    yield f"- cost: {words.cost(one.cost, _PLAIN)}"
