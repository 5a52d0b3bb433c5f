"""What stands in trailer values: the records that events are made of, field by field.

What a field means is said where the class that is read documents its attribute. A new field of a record is an attribute
of that class, with a default for the commits that were written before, and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.domain.appendix import AppendixCounts
from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.edit import Op, Source
from skillgit.domain.evaluation import EvaluationSummary, Gauge, Metric, Split
from skillgit.domain.event import BudgetSource, EditRecord, Inherited, Models, Origin, PatchCounts
from skillgit.domain.gate import Decision, NoRegression, Verdict
from skillgit.domain.placebo import Placebo
from skillgit.domain.rewrite import UpdateMode
from skillgit.errors import TrailerError
from skillgit.store.fields import (
    AMOUNT,
    INTEGER,
    NEEDED,
    NUMBER,
    TEXT,
    VERSION,
    WORD,
    Field,
    Form,
    Record,
    flag,
    member,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillgit.domain.event import Measurement

EDIT = Record(
    EditRecord,
    Field("op", member(Op)),
    Field("file", TEXT),
    Field("support", INTEGER),
    Field("source", member(Source)),
    Field("anchor", TEXT),
    Field("fixed", INTEGER),
    Field("broken", INTEGER),
)
PATCH = Record(
    PatchCounts,
    Field("merged", INTEGER),
    Field("ranked", INTEGER),
    Field("applied", INTEGER),
    Field("skipped", INTEGER),
    Field("budget", INTEGER, absent=None),
    Field("by", member(BudgetSource)),
    Field("mode", member(UpdateMode)),
    Field("salvaged", flag("true", means=True)),
)
ORIGIN: Record[Mapping[str, Any]] = Record(
    dict,
    Field(WORD, member(Origin), "origin", absent=Origin.STEP),
    Field("number", INTEGER, absent=0),
    Field("of", TEXT),
)
"""The attributes of a candidate that say where it comes from."""
APPENDIX = Record(AppendixCounts, Field("added", INTEGER), Field("total", INTEGER), Field("consolidated", INTEGER))
SUMMARY = Record(
    EvaluationSummary,
    Field("split", member(Split)),
    Field("version", INTEGER),
    Field("set", TEXT, "item_set"),
    Field("n", INTEGER),
    Field("scored", INTEGER),
    Field("hard", NUMBER),
    Field("soft", NUMBER),
    Field("seed", INTEGER),
    Field("stopped", flag("exact", means=True), absent=False, derived=True),
    Field("unneeded", INTEGER),
    Field("spare", INTEGER),
)
_INHERITED = "inherited"
INHERITED = Record(Inherited, Field("from", VERSION, "version"))
GATE = Record(
    Verdict,
    Field(WORD, member(Decision), "decision"),
    Field("policy", TEXT, absent=NEEDED),
    Field("metric", member(Metric)),
    Field("score", NUMBER),
    Field("current", NUMBER),
    Field("best", NUMBER),
    Field("fixed", INTEGER),
    Field("broken", INTEGER),
    Field("p", NUMBER),
    Field("weight", NUMBER, "soft_weight", when=lambda verdict: verdict.metric is Metric.MIXED),
    Field("alpha", NUMBER),
    Field("margin", NUMBER),
    Field("guard", member(NoRegression), "no_regression"),
    Field("blocked", INTEGER, when=lambda verdict: verdict.no_regression is not NoRegression.NONE),
    Field("repeats", INTEGER),
    Field("gated", flag("no", means=False)),
    Field("compared", INTEGER),
    Field("lost", INTEGER),
    Field("regained", INTEGER),
)
GAUGE = Record(
    Gauge,
    Field(WORD, member(Metric), "metric", absent=NEEDED),
    Field("weight", NUMBER, "soft_weight", when=lambda gauge: gauge.metric is Metric.MIXED),
)
PLACEBO = Record(Placebo, Field("n", INTEGER), Field("accepted", INTEGER), Field("rate", NUMBER, derived=True))
MODELS = Record(Models, Field("target", TEXT), Field("optimizer", TEXT), Field("judge", TEXT))
COST = Record(
    Cost,
    Field("calls", AMOUNT, absent=NEEDED),
    Field("in", AMOUNT, "tokens_in", absent=NEEDED),
    Field("out", AMOUNT, "tokens_out", absent=NEEDED),
    Field("usd", NUMBER, absent=NEEDED),
    Field("seconds", NUMBER, absent=NEEDED),
    Field("cached", AMOUNT),
    Field("cache-written", AMOUNT, "cache_written"),
    Field("reasoning", AMOUNT),
    Field("unpriced", AMOUNT),
    elsewhere="parts",
)
SPENT = Record(CostPart, Field("role", TEXT), Field("stage", TEXT), inner=("cost", COST))


def _write_measurement(measurement: Measurement) -> str:
    if isinstance(measurement, Inherited):
        return f"{_INHERITED} {INHERITED.write(measurement)}"
    return SUMMARY.write(measurement)


def _read_measurement(text: str) -> Measurement:
    word, _, rest = text.partition(" ")
    return INHERITED.read(rest) if word == _INHERITED else SUMMARY.read(text)


MEASUREMENT = Form("an evaluation, or `inherited from=v<N>`", _read_measurement, _write_measurement)


def read_cost(text: str, spent: Iterable[str]) -> Cost:
    """Read a cost, which may be empty, and its parts.

    Raises:
        TrailerError: They break the grammar, or two parts are of one role in one stage.
    """
    parts = tuple(map(SPENT.read, spent))
    if len({(part.role, part.stage) for part in parts}) < len(parts):
        raise TrailerError("two trailers Skillgit-Spent tell of one role in one stage", hint="skillgit fsck")
    return COST.read(text, parts) if text else Cost(parts=parts)
