"""What is known of a judge before it decides: how far it agrees with itself, as this clone measured it.

The ledger has it, next to the paid gradings that it was computed from, by the fingerprint of the judge (model, server
and parameters), the digest of the environment and that of the criteria. Another model, server or rubric is not known.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from skillgit.app.recorded.evidence_json import members
from skillgit.app.setup.run_setup import Setup
from skillgit.calls.ledger import Ledger
from skillgit.domain.agreement import LEAST_ALPHA, width_of_noise
from skillgit.domain.evaluation import Gauge, Metric, Split
from skillgit.domain.ids import short_digest
from skillgit.domain.rehearsal import is_offline
from skillgit.plugin.environment import asks_judge, judged_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRecord:
    """How far a judge agrees with itself, by the strict score (``hard``) and by that with partial credit (``soft``).

    Attributes:
        results: How many results it graded several times.
        flips: How many of them passed in one grading and failed in another.
        hard_alpha: Krippendorff's alpha; absent where all scores are equal.
        hard_variance: Variance of one grading.
    """

    results: int
    flips: int
    hard_alpha: float | None
    soft_alpha: float | None
    hard_variance: float
    soft_variance: float

    def alpha(self, metric: Metric) -> float | None:
        """Return alpha of the scores that count under ``metric``: the lower one where both do."""
        alphas = {Metric.HARD: (self.hard_alpha,), Metric.SOFT: (self.soft_alpha,)}
        values = alphas.get(metric, (self.hard_alpha, self.soft_alpha))
        return min((value for value in values if value is not None), default=None)

    def variance(self, gauge: Gauge) -> float:
        """Return the variance of one grading under ``gauge``; of a mixed score, the most that it can be."""
        if gauge.metric is not Metric.MIXED:
            return self.hard_variance if gauge.metric is Metric.HARD else self.soft_variance
        weight = gauge.soft_weight
        return float(((1 - weight) * self.hard_variance**0.5 + weight * self.soft_variance**0.5) ** 2)


def keep_record(ledger: Ledger, setup: Setup, role: str, record: JudgeRecord, now: float) -> None:
    judge = setup.routes[role].fingerprint
    ledger.record_agreement(judge, setup.task.digest, criteria_digest(setup), asdict(record), now)


def criteria_digest(setup: Setup) -> str:
    """Identify everything that the judge of ``setup`` grades by, apart from the words of the environment."""
    criteria = {
        part.criterion
        for items in setup.task.items.values()
        for item in items
        for part in judged_parts(setup.task.environment, item)
    }
    return short_digest(sorted(criteria))


def judged_items(setup: Setup) -> int:
    """Return how many selection items the judge has a say in."""
    return sum(bool(judged_parts(setup.task.environment, item)) for item in setup.task.items[Split.SELECTION])


def noise_of(setup: Setup, record: JudgeRecord) -> float:
    """Return by how much grading alone makes two scores on the selection split differ, at 95 %."""
    rule, items = setup.rule, len(setup.task.items[Split.SELECTION])
    variance = record.variance(Gauge(metric=rule.metric, soft_weight=rule.soft_weight))
    return width_of_noise(variance, judged_items(setup), items)


def doubt_of(setup: Setup, judge: str, record: JudgeRecord) -> str:
    """Return a warning in a sentence if the judge does not agree with itself; empty if it does."""
    alpha, count = record.alpha(setup.rule.metric), len(setup.task.items[Split.SELECTION])
    if alpha is None or alpha >= LEAST_ALPHA:
        return ""
    return (
        f"warning: the judge {judge} does not agree with itself: alpha {alpha:.2f}, where {LEAST_ALPHA:.3f} is the"
        f" least; {record.flips} of {record.results} verdicts changed when the same results were graded again, and"
        f" grading alone makes two scores on {count} selection items differ by up to {noise_of(setup, record):.3f};"
        " write criteria that leave less open, or set model.judge"
    )


def judge_notes(ledger: Ledger, setup: Setup, command: str) -> tuple[str, ...]:
    """Return what to say of the judge before it is asked; nothing where it agrees with itself, or only rehearses.

    ``command`` is what measures it.
    """
    if not asks_judge(setup.task.environment) or is_offline(setup.routes["judge"].name):
        return ()
    route = setup.routes["judge"]
    records = ledger.agreements(route.fingerprint, setup.task.digest)
    record = _read(records.get(criteria_digest(setup)))
    if record is None:
        lack = "was measured by other criteria than these" if records else "is not measured"
        return (f"how far the judge {route.name} agrees with itself {lack}: {command}",)
    return tuple(filter(None, (doubt_of(setup, route.name, record),)))


def judge_command(revision: str, config: str | None = None, overrides: Sequence[str] = ()) -> str:
    """Return the command that measures a judge by the results of ``revision``."""
    words = ["skillgit", "eval", revision, "--judge", *(("--config", config) if config else ())]
    return shlex.join([*words, *(word for override in overrides for word in ("-o", override))])


def _read(value: object) -> JudgeRecord | None:
    """Return what :func:`keep_record` wrote; None for what is not it."""
    fields = members(value)
    numbers = {name: fields.get(name) for name in JudgeRecord.__slots__}
    if not all(isinstance(value, int | float) for name, value in numbers.items() if not name.endswith("alpha")):
        return None
    return JudgeRecord(**numbers)  # type: ignore[arg-type]
