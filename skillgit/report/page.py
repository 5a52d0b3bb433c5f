"""One page for one run, in one file: no script, nothing from elsewhere, and the same bytes for the same history."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import skillgit
from skillgit.app.history.show import RunSetting
from skillgit.domain.evaluation import Metric
from skillgit.domain.gate_decision import Decision, NoRegression, Verdict
from skillgit.domain.gate_policies import shortfall
from skillgit.domain.skill_rules import Region
from skillgit.domain.text_diff import Line, interleaved
from skillgit.index.rows import LogRow
from skillgit.view import diff, numbers
from skillgit.view import event_marks as cells
from skillgit.view.curve import NUMBERS, course, run_curve
from skillgit.view.event_marks import Entry
from skillgit.view.items import CHECKS, MARKS, TYPES, flip_counts, outcome_mark
from skillgit.view.numbers import chance, delta, not_measured, plural, score
from skillgit.view.plan import COST
from skillgit.view.surface import UNICODE
from skillgit.view.table import Column, Surface, Table
from skillgit.view.text import fit, inert, one_line

if TYPE_CHECKING:
    from skillgit.app.deliver.report import EventStory, RunReport
    from skillgit.app.deliver.summary import RunSummary


_TEMPLATES = Path(__file__).parent / "templates"
STYLE = _TEMPLATES / "page.css"
_OUTCOMES = {
    "improved": "improved",
    "not-confirmed": "improved on the selection split, but not on the test split",
    "null-result": "no improvement",
    "underpowered": "no improvement, and too few items to see a small one",
    "ceiling": "the seed solves every selection item",
    "no-candidates": "no candidate came to be measured",
    "provider-failure": "ended by the failure of a model's provider",
    "budget": "ended by its budget",
    "stopped": "stopped by its user",
    "": "not finished",
}


def page(report: RunReport) -> str:
    style = STYLE.read_text(encoding="utf-8")
    template = environment().get_template("page.html")
    return template.render(
        report=report,
        style=Markup(style),  # noqa: S704 - it is a file of ours
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        program=f"skillgit {skillgit.__version__}",
        **header(report),
    )


def header(summary: RunSummary) -> dict[str, object]:
    """Return what templates print of a run in short."""
    run = summary.run
    return {
        "run": run,
        "outcome": ", ".join((_OUTCOMES.get(run.outcome, run.outcome), *run.remarks)),
        "gate_rule": rule(summary.verdict),
        "drawings": course(run_curve(run, summary.course, summary.events)),
    }


@cache
def environment(*folders: Path) -> Environment:
    """Return what renders the templates of the report, and those in ``folders``, which may draw on them."""
    environment = Environment(
        loader=FileSystemLoader([*folders, _TEMPLATES], encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(
        verdict_of=verdict_of,
        compared=compared,
        not_measured=not_measured,
        refusal=refusal,
        beside=diff.rows,
        interleaved=interleaved,
        CHECKS=CHECKS,
        COST=COST,
        MARKS=MARKS,
        NUMBERS=NUMBERS,
        SETTINGS=SETTINGS,
        TYPES=TYPES,
        on_page=Surface.PAGE,
        regions={region.value: words for region, words in _REGIONS.items()},
    )
    return environment


_REGIONS = {Region.BODY: "", Region.SLOW: "slow guidance", Region.APPENDIX: "appendix", Region.KEEP: "kept by people"}


_METRICS = {Metric.HARD: "hard score", Metric.SOFT: "soft score", Metric.MIXED: "mixed hard and soft score"}


def verdict_of(entry: EventStory) -> Verdict | None:
    """Return the gate's decision on an event; None if it passed no gate, or is not reported in full."""
    return None if entry.event is None else entry.event.verdict


def rule(verdict: Verdict | None) -> str:
    if verdict is None:
        return "no candidate came as far as the gate"
    if not verdict.gated:
        return "none: every candidate that was measured became a version"
    text = (
        f"{verdict.policy}: it asks for {verdict.demand}, by the mean {_METRICS[verdict.metric]} on the selection items"
    )
    match verdict.no_regression:
        case NoRegression.NONE:
            return text
        case NoRegression.PINNED:
            return f"{text}, and if no pinned item scores lower"
        case NoRegression.ALL:
            return f"{text}, and if no item scores lower"
        case _:
            assert_never(verdict.no_regression)


def compared(verdict: Verdict, *, bound: bool) -> str:
    own = f"at most {score(verdict.score)}" if bound else score(verdict.score)
    flips = f"{verdict.fixed} fixed, {verdict.broken} broken, {chance(verdict.p)}"
    repeats = f", {plural(verdict.repeats, 'repeat')} of items that differ" if verdict.repeats else ""
    tokens = f"; {verdict.token_words}" if verdict.token_words else ""
    return f"{verdict.metric.value} {own} against {score(verdict.current)}{tokens}; {flips}{repeats}"


def refusal(verdict: Verdict, *, bound: bool) -> str:
    gain = verdict.score - verdict.current
    if verdict.decision is Decision.INDECISIVE:
        if verdict.lost > verdict.regained:
            return f"it lost {plural(verdict.lost, 'item')} that the current version could answer"
        if verdict.token_words and verdict.tokens is None:
            return verdict.token_words
        return "too few items had a score for a decision"
    if verdict.blocked:
        return f"{plural(verdict.blocked, 'item')} that may not score lower did"
    if verdict.exceeds_tokens:
        return verdict.token_shortfall
    if gain <= 0 and bound:
        return f"could not beat {score(verdict.current)} any more, and was stopped early"
    if gain < 0:
        return f"lower than {score(verdict.current)} by {score(-gain)}"
    if gain == 0:
        return f"a tie with {score(verdict.current)}, and {verdict.token_shortfall or 'a tie is not a gain'}"
    if verdict.outrun:
        return f"higher by {delta(gain)}, but the candidate of step {verdict.outrun} was better"
    return f"higher by {delta(gain)}, but {shortfall(verdict.policy, verdict.p, verdict.terms)}"


_SOURCES = {
    "failure": "rollouts that failed",
    "success": "rollouts that went well",
    "mixed": "rollouts that failed and others",
    "meta": "the reflection on an epoch",
    "slow": "a slow update",
    "human": "a person",
    "seed": "the seed",
}


def glyph(row: LogRow) -> str:
    return cells.glyph(Entry.of_row(row), UNICODE)


def pieces(line: Line) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line of a difference, each with whether it is marked."""
    at = 0
    for start, end in line.spans:
        if start > at:
            yield line.text[at:start], False
        yield line.text[start:end], True
        at = end
    if at < len(line.text) or not line.text:
        yield line.text[at:], False


_CHOSEN = {
    "default": "default",
    "set": "set for this run",
    "environment": "option of the environment",
    "backend": "option of a backend",
}
SETTINGS: Final[Table[RunSetting]] = Table(
    columns=(
        Column("key", head="key"),
        Column("value", head="value", show=lambda row: fit(row.value, 600)),
        Column("chosen", head="comes from", show=lambda row: _CHOSEN[row.chosen]),
    )
)


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


FILTERS = {
    "score": lambda value: score(value) or "–",  # noqa: RUF001 - a dash
    "delta": delta,
    "interval": lambda value: f"{score(value[0])} to {score(value[1])}",
    "number": "{:,}".format,
    "date": "{:%Y-%m-%d %H:%M} UTC".format,
    "rfc3339": numbers.rfc3339,
    "cut": lambda text, most=400: fit(one_line(text), most),
    "paragraphs": paragraphs,
    "pieces": pieces,
    "short": numbers.short,
    "price": numbers.price,
    "money": numbers.money,
    "count": numbers.count,
    "duration": numbers.duration,
    "chance": chance,
    "mark": outcome_mark,
    "flips": flip_counts,
    "glyph": glyph,
    "tone": lambda row: cells.style(Entry.of_row(row)).name.lower(),  # the colour that repeats what the sign says
    "made_of": cells.made_of,
    "decision": lambda row: cells.decision(Entry.of_row(row)),
    "source": lambda word: _SOURCES.get(word, word),
}
"""What templates can do with a value."""


# Code points that HTML does not allow.
_IMPOSSIBLE = re.compile(
    "[\ufdd0-\ufdef\ufffe\uffff"
    + "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def visible(value: object) -> object:
    """Return what a template prints: of text of models and users no sign takes effect or stays unseen."""
    if not isinstance(value, str) or isinstance(value, Markup) or (value.isascii() and value.isprintable()):
        return value
    return _IMPOSSIBLE.sub("\ufffd", inert(value))
