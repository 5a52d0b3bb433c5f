"""A comparison of two revisions as Markdown, for the comment on a pull request or the summary of a job.

Names of skills, revisions and items are other people's words. They are in code spans, where GitHub interprets no
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
    for skill in report.skills:
        yield ""
        yield from _skill(skill, report)


def code(text: str) -> str:
    """Return ``text`` as a code span that means the same inside and outside of a table.

    Characters that are not seen are written out, line ends and bars are replaced: a bar would end the cell.
    """
    body = _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", one_line(text)).replace("|", "¦")
    body = body if len(body) <= _LONGEST else f"{body[: _LONGEST - 1]}…"
    fence = "`" * (max(map(len, re.findall("`+", body)), default=0) + 1)
    content = f" {body} " if body.startswith("`") or body.endswith("`") or not body else body
    return f"{fence}{content}{fence}"


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


def _skill(skill: SkillReport, report: GateReport) -> Iterator[str]:
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
        yield from _facts(skill, skill.compared)
    for warning in skill.warnings:
        yield ""
        yield f"> {code(warning)}"


def _sides(skill: SkillReport, report: GateReport) -> Iterator[str]:
    def row(label: str, cells: Sequence[str]) -> str:
        return f"| {label} | {' | '.join(cells)} |"

    sides = (skill.base, skill.head)
    yield row("", [f"{word} {code(_name(side))}" for word, side in zip(("base", "head"), sides, strict=True)])
    yield "|---|--:|--:|"
    if skill.compared is not None:
        yield row(f"{skill.metric} score", [words.score(side.score) or "none" for side in sides])
        yield row("items with a score", [f"{side.scored} of {skill.items}" for side in sides])
    yield row("recorded", [str(side.recorded) for side in sides])
    now = "to measure" if skill.compared is None else "measured now"
    now = "not recorded" if report.recorded_only else now
    yield row(now, [str(side.missing) for side in sides])


def _name(side: GateSide) -> str:
    return side.version or side.name


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
    def told(pair: ItemPair) -> str:
        whole = {pair.before, pair.after} == {0.0, 1.0}
        return code(pair.item) if whole else f"{code(pair.item)} {words.score(pair.before)} → {words.score(pair.after)}"

    return _some([told(pair) for pair in pairs])


def _some(items: Sequence[str]) -> str:
    more = len(items) - MOST_ITEMS
    return f"{' '.join(items[:MOST_ITEMS])}{f' and {more} more' if more > 0 else ''}"


def _facts(skill: SkillReport, comparison: Compared) -> Iterator[str]:
    verdict = comparison.verdict
    if comparison.delta is not None and comparison.interval is not None:
        low, high = comparison.interval
        gain = f"gained {words.delta(comparison.delta)} (95 % {words.delta(low)} to {words.delta(high)})"
        yield f"- {gain}, {words.chance(verdict.p)} one-sided, rule {code(skill.policy)}"
    yield f"- measured by {code(skill.config)} under {code(skill.target)}"
    yield f"- cost: {words.cost(skill.cost, _PLAIN)}"
