"""How the parts of an event stand in trailer values: each ``format_x`` has its ``read_x`` next to it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict

from skillgit.domain.appendix import AppendixCounts
from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.edit import Op, Source
from skillgit.domain.evaluation import EvaluationSummary, Gauge, Metric, Split
from skillgit.domain.event import NOBODY, BudgetSource, EditRecord, Inherited, Models, Origin, PatchCounts
from skillgit.domain.gate import Decision, NoRegression, Verdict
from skillgit.domain.placebo import Placebo
from skillgit.domain.rewrite import UpdateMode
from skillgit.errors import TrailerError
from skillgit.store.trailers import as_integer, format_value, parse_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.domain.event import Measurement
    from skillgit.store.trailers import Value

DEFAULT_WEIGHT = 0.5
EXACT = "exact"
"""How an evaluation was stopped: not before its decision was certain."""
_SELDOM = {"cached": "cached", "cache-written": "cache_written", "reasoning": "reasoning", "unpriced": "unpriced"}
"""The counts of a cost that stand only where they are not 0: key to field."""
_MOST = 10**15
"""What an amount is less than."""
_VERDICT = 8
"""How many fields a verdict has at least; most have no more."""

# An enumeration finds its member in a function of Python's, which history calls a million times.
OPS = {str(one): one for one in Op}
SOURCES = {str(one): one for one in Source}
SPLITS = {str(one): one for one in Split}
DECISIONS = {str(one): one for one in Decision}
METRICS = {str(one): one for one in Metric}


def format_edit(edit: EditRecord) -> str:
    """Return the value of ``Skillgit-Edit``."""
    return format_value(
        op=edit.op.value,
        file=edit.file,
        support=edit.support,
        source=edit.source.value,
        anchor=edit.anchor,
        fixed="" if edit.fixed is None else edit.fixed,
        broken="" if edit.broken is None else edit.broken,
    )


def read_edit(value: Value) -> EditRecord:
    """Read ``Skillgit-Edit``."""
    text, (op, source) = value.fields.get, (value.text("op"), value.text("source"))
    return EditRecord(
        op=OPS.get(op) or Op(op),
        file=text("file", ""),
        support=value.integer("support"),
        source=SOURCES.get(source) or Source(source),
        anchor=text("anchor", ""),
        fixed=value.integer("fixed") if text("fixed") else None,
        broken=value.integer("broken") if text("broken") else None,
    )


def format_patch(patch: PatchCounts) -> str:
    """Return the value of ``Skillgit-Patch``."""
    return format_value(
        merged=patch.merged,
        ranked=patch.ranked,
        applied=patch.applied,
        skipped=patch.skipped,
        budget="" if patch.budget is None else patch.budget,
        by="" if patch.by is BudgetSource.SCHEDULE else patch.by.value,
        mode="" if patch.mode is UpdateMode.PATCH else patch.mode.value,
        salvaged="true" if patch.salvaged else "",
    )


@lru_cache(maxsize=1 << 10)
def read_patch(text: str) -> PatchCounts:
    """Read ``Skillgit-Patch``; a run has few different ones."""
    value = parse_value(text)
    return PatchCounts(
        merged=value.integer("merged"),
        ranked=value.integer("ranked"),
        applied=value.integer("applied"),
        skipped=value.integer("skipped"),
        budget=value.integer("budget") if value.text("budget") else None,
        by=BudgetSource(value.text("by") or BudgetSource.SCHEDULE),
        mode=UpdateMode(value.text("mode") or UpdateMode.PATCH),
        salvaged=value.text("salvaged") == "true",
    )


def format_appendix(appendix: AppendixCounts | None) -> str:
    """Return the value of ``Skillgit-Appendix``; empty where the appendix stayed as it was."""
    if appendix is None:
        return ""
    before = appendix.consolidated or ""
    return format_value(added=appendix.added, total=appendix.total, consolidated=before)


def read_appendix(value: Value | None) -> AppendixCounts | None:
    """Read ``Skillgit-Appendix``."""
    if value is None:
        return None
    before = value.count("consolidated")
    return AppendixCounts(added=value.integer("added"), total=value.integer("total"), consolidated=before)


def format_origin(origin: Origin, number: int = 0, of: str = "") -> str:
    """Return the value of ``Skillgit-Origin``; empty for a step."""
    return "" if origin is Origin.STEP else format_value(origin.value, number=number or "", of=of)


def read_origin(value: Value | None) -> tuple[Origin, int, str]:
    """Read ``Skillgit-Origin``: where a candidate comes from, an intervention's number, and what it was taken from."""
    if value is None:
        return Origin.STEP, 0, ""
    return Origin(value.word), value.count("number"), value.text("of")


def format_measurement(measurement: Measurement) -> str:
    """Return the value of ``Skillgit-Eval``."""
    if isinstance(measurement, Inherited):
        return f"inherited from=v{measurement.version}"
    return format_value(
        split=measurement.split.value,
        version="" if measurement.version is None else str(measurement.version),
        set=measurement.item_set,
        n=measurement.n,
        scored=measurement.scored,
        hard=measurement.hard,
        soft=measurement.soft,
        seed=measurement.seed,
        stopped=EXACT if measurement.stopped else "",
        unneeded=measurement.unneeded if measurement.stopped else "",
        spare=measurement.spare or "",
    )


def format_start(measurement: Measurement, gauge: Gauge) -> str:
    """Return the value of ``Skillgit-Eval`` where a run starts, with the gate's metric unless it is hard."""
    metric = "" if gauge.metric is Metric.HARD else gauge.metric.value
    told = format_value(metric=metric, weight=gauge.soft_weight if gauge.metric is Metric.MIXED else "")
    return f"{format_measurement(measurement)} {told}".rstrip()


def read_gauge(value: Value) -> Gauge:
    """Read the gate's metric from the ``Skillgit-Eval`` with which a run starts."""
    metric = Metric(value.text("metric") or Metric.HARD)
    return Gauge(metric=metric, soft_weight=value.number("weight") if value.text("weight") else DEFAULT_WEIGHT)


def read_measurement(value: Value) -> Measurement:
    """Read ``Skillgit-Eval``, which may be inherited."""
    if value.word == "inherited":
        return Inherited(version=as_integer(value.text("from").removeprefix("v"), "from"))
    return read_summary(value)


def read_summary(value: Value) -> EvaluationSummary:
    """Read ``Skillgit-Eval`` of a text that was measured."""
    text, split = value.fields.get, value.text("split")
    return EvaluationSummary(
        split=SPLITS.get(split) or Split(split),
        item_set=text("set", ""),
        n=value.integer("n"),
        scored=value.integer("scored"),
        hard=value.number("hard"),
        soft=value.number("soft"),
        seed=value.integer("seed"),
        version=value.integer("version") if text("version") else None,
        unneeded=value.integer("unneeded") if text("stopped") == EXACT else 0,
        spare=value.integer("spare") if text("spare") else 0,
    )


def format_verdict(verdict: Verdict) -> str:
    """Return the value of ``Skillgit-Gate``."""
    return format_value(
        verdict.decision.value,
        policy=verdict.policy,
        metric=verdict.metric.value,
        score=verdict.score,
        current=verdict.current,
        best=verdict.best,
        fixed=verdict.fixed,
        broken=verdict.broken,
        p=verdict.p,
        weight=verdict.soft_weight if verdict.metric is Metric.MIXED else "",
        alpha="" if verdict.alpha is None else verdict.alpha,
        margin="" if verdict.margin is None else verdict.margin,
        guard="" if verdict.no_regression is NoRegression.NONE else verdict.no_regression.value,
        blocked="" if verdict.no_regression is NoRegression.NONE else verdict.blocked,
        repeats=verdict.repeats or "",
        gated="" if verdict.gated else "no",
        compared="" if verdict.compared is None else verdict.compared,
        lost=verdict.lost or "",
        regained=verdict.regained or "",
    )


def read_verdict(value: Value) -> Verdict:
    """Read ``Skillgit-Gate``."""
    policy, metric = value.text("policy"), value.text("metric")
    if not policy:
        raise TrailerError("a gate names the policy that it compared by", hint="skillgit fsck")
    return Verdict(
        decision=DECISIONS.get(value.word) or Decision(value.word),
        policy=policy,
        metric=METRICS.get(metric) or Metric(metric),
        score=value.number("score"),
        current=value.number("current"),
        best=value.number("best"),
        fixed=value.integer("fixed"),
        broken=value.integer("broken"),
        p=value.number("p"),
        **(_terms(value) if len(value.fields) > _VERDICT else _NO_TERMS),
    )


class _Terms(TypedDict, total=False):
    """What verdicts seldom tell of the rule behind them."""

    soft_weight: float
    alpha: float | None
    margin: float | None
    no_regression: NoRegression
    blocked: int
    repeats: int
    gated: bool
    compared: int | None
    lost: int
    regained: int


_NO_TERMS = _Terms()


def _terms(value: Value) -> _Terms:
    return _Terms(
        soft_weight=value.number("weight") if value.text("weight") else DEFAULT_WEIGHT,
        alpha=value.number("alpha") if value.text("alpha") else None,
        margin=value.number("margin") if value.text("margin") else None,
        no_regression=NoRegression(value.text("guard") or NoRegression.NONE),
        blocked=value.count("blocked"),
        repeats=value.count("repeats"),
        gated=value.text("gated") != "no",
        compared=value.integer("compared") if value.text("compared") else None,
        lost=value.count("lost"),
        regained=value.count("regained"),
    )


def format_cost(cost: Cost) -> str:
    """Return the value of ``Skillgit-Cost``; empty if there was none."""
    return "" if cost == Cost() else format_value(**_amounts(cost))


def read_cost(value: Value | None, spent: Iterable[str]) -> Cost:
    """Read ``Skillgit-Cost`` and every ``Skillgit-Spent``; a commit without them cost nothing, or tells no parts."""
    parts = read_parts(spent)
    return Cost(parts=parts) if value is None else _read_amounts(value, parts)


def format_spent(part: CostPart) -> str:
    """Return the value of a ``Skillgit-Spent``."""
    return format_value(role=part.role, stage=part.stage, **_amounts(part.cost))


def read_parts(spent: Iterable[str]) -> tuple[CostPart, ...]:
    """Read every ``Skillgit-Spent``."""
    found = [
        CostPart(role=value.text("role"), stage=value.text("stage"), cost=_read_amounts(value))
        for value in map(parse_value, spent)
    ]
    if len({(part.role, part.stage) for part in found}) < len(found):
        raise TrailerError("two trailers Skillgit-Spent tell of one role in one stage", hint="skillgit fsck")
    return tuple(found)


def _amounts(cost: Cost) -> dict[str, int | float]:
    always = {"calls": cost.calls, "in": cost.tokens_in, "out": cost.tokens_out, "usd": cost.usd}
    seldom = {key: getattr(cost, name) for key, name in _SELDOM.items()}
    return {**always, "seconds": cost.seconds, **{key: count for key, count in seldom.items() if count}}


def _read_amounts(value: Value, parts: tuple[CostPart, ...] = ()) -> Cost:
    return Cost(
        calls=_amount(value, "calls"),
        tokens_in=_amount(value, "in"),
        tokens_out=_amount(value, "out"),
        usd=value.number("usd"),
        seconds=value.number("seconds"),
        parts=parts,
        **({} if _SELDOM.keys().isdisjoint(value.fields) else _seldom_counts(value)),
    )


def _seldom_counts(value: Value) -> dict[str, int]:
    return {name: _amount(value, key) if value.text(key) else 0 for key, name in _SELDOM.items()}


def _amount(value: Value, key: str) -> int:
    """Return the count ``key``; the sum over a history of any length has to fit into what a database calls an integer.

    Raises:
        TrailerError: It is absent, not an integer, or not between 0 and a thousand million millions.
    """
    found = value.integer(key)
    if not 0 <= found < _MOST:
        raise TrailerError(f"'{key}={value.text(key)}' cannot be an amount", hint="skillgit fsck")
    return found


def format_placebo(placebo: Placebo | None) -> str:
    """Return the value of ``Skillgit-Placebo``; empty if there was none."""
    return "" if placebo is None else format_value(n=placebo.n, accepted=placebo.accepted, rate=placebo.rate)


def read_placebo(value: Value | None) -> Placebo | None:
    """Read ``Skillgit-Placebo``; the rate follows from the counts."""
    return None if value is None else Placebo(n=value.integer("n"), accepted=value.integer("accepted"))


def format_models(models: Models) -> str:
    """Return the value of ``Skillgit-Models``."""
    judge = {"judge": models.judge} if models.judge else {}
    return format_value(target=models.target, optimizer=models.optimizer, **judge)


@lru_cache(maxsize=1 << 8)
def read_models(text: str) -> Models:
    """Read ``Skillgit-Models``, which may be absent; a run has the same ones throughout."""
    if not text:
        return NOBODY
    value = parse_value(text)
    return Models(target=value.text("target"), optimizer=value.text("optimizer"), judge=value.text("judge"))
