"""One page for one run, in one file: no script, nothing from elsewhere, and the same bytes for the same history."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import skillgit
from skillgit.domain.evaluation import Metric
from skillgit.domain.rules import Region
from skillgit.report import figures, gate_words, naming
from skillgit.report.interval_chart import chart
from skillgit.report.score_curve import NARROW, WIDE, curve, drawn_rows
from skillgit.report.visible import visible
from skillgit.view.words import not_measured

if TYPE_CHECKING:
    from skillgit.app.deliver.report_whole import Report

_TEMPLATES = Path(__file__).parent / "templates"
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

_BOUND = "▽"
"""The sign of a candidate of whose score no more than a bound is known."""


def page(report: Report) -> str:
    """Return the page that tells ``report``, as HTML."""
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    intervals = report.run.metric == Metric.HARD.value
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            run=report.run,
            style=Markup(style),  # noqa: S704 - it is a file of ours
            style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            curves={name: curve(report.rows, report.scored, size, intervals=intervals) for name, size in _SIZES},
            shapes=sorted({_BOUND if row.bound is not None else naming.glyph(row) for row in drawn_rows(report.rows)}),
            outcome=_OUTCOMES.get(report.run.outcome, report.run.outcome),
            gate_rule=gate_words.rule(report),
            program=f"skillgit {skillgit.__version__}",
        )
    )


_SIZES = (("wide", WIDE), ("narrow", NARROW))


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters.update(figures.FILTERS)
    found.filters.update(naming.FILTERS)
    found.globals.update(
        chart=chart,
        verdict_of=gate_words.verdict_of,
        compared=gate_words.compared,
        not_measured=not_measured,
        refusal=gate_words.refusal,
        regions={region.value: words for region, words in _REGIONS.items()},
    )
    return found


_REGIONS = {
    Region.BODY: "",
    Region.SLOW: "slow guidance",
    Region.APPENDIX: "appendix",
    Region.KEEP: "kept by people",
}


def _shown(value: object) -> object:
    """Return what a template prints: text of models and users without signs that would take effect."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
