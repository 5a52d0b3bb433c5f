"""What history says that a version scored, and whether a new measurement of some items agrees with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.app.recorded.evaluation_notes import noted_outcomes
from skillgit.app.recorded.run_record import AsMeasured, event_outcomes, is_own, started
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Metric, Scored, Split, mean
from skillgit.domain.outcomes import exact, whole
from skillgit.domain.statistics import binomial_test, bootstrap_interval, sign_flip_test, wilson_interval
from skillgit.index import queries, version_queries
from skillgit.store.history_reader import read_commit

if TYPE_CHECKING:
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.evaluation import Gauge
    from skillgit.domain.gate_decision import GateRule
    from skillgit.index.rows import LogRow

ALPHA = 0.05
"""A difference less likely than this by chance is called one."""
_ROUNDING = 1e-9

Word = Literal["consistent", "lower", "higher", "not comparable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A score that a commit tells, and what is behind it.

    Attributes:
        n: Number of items that it is the mean of.
        paired: Whether the outcomes are here and add up to the score.
        remark: What is to be known of them: what is wrong, or that a note tells them; empty if nothing is.
    """

    score: float
    n: int
    target: str
    paired: bool
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """Whether a claim holds.

    Attributes:
        word: ``consistent``, ``lower`` or ``higher`` than claimed, or ``not comparable``.
        recorded: The mean score that was recorded for the same items; absent where nothing tells.
        delta: The mean difference, item by item; without recorded outcomes, from the claimed score.
        interval: Its 95 % bootstrap interval; without recorded outcomes, the 95 % interval of ``measured``.
        p: The two-sided chance of such a difference without a cause: a sign-flip test of the pairs; without recorded
            outcomes an exact binomial test, which only strict scores have.
        failed: How many items could not be evaluated now.
        differs: What keeps the numbers from being compared, one sentence each.
    """

    word: Word
    n: int = 0
    measured: float | None = None
    recorded: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    higher: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    failed: int = 0
    differs: tuple[str, ...] = ()


def claim_of(workspace: Workspace, row: LogRow, split: Split) -> tuple[Claim, Evaluation | None] | None:
    """Return what history says that the version or candidate in ``row`` scored on ``split``; None if it says nothing.

    The outcomes that add up to it come with it, if they are here.

    What was inherited or is only an upper bound is no claim about this text; then the first note that tells of all
    items is one.
    """
    claimed_score = _score(workspace, row, split)
    if claimed_score is None:
        return _noted(workspace, row, split)
    score, n = claimed_score
    gauge, start = queries.gauge(workspace.index, row.run), started(workspace, row.run)
    recorded_outcomes = event_outcomes(
        workspace, row, split
    )  # not notes, which measured the claim again, perhaps a sample of it
    outcomes = Evaluation(split=split, item_set="", outcomes=recorded_outcomes, seed=0) if recorded_outcomes else None
    total = outcomes.summary().score(gauge.metric, gauge.soft_weight) if outcomes is not None else None
    adds_up = total is not None and abs(total - score) <= _ROUNDING
    # Repeats make the gate's score a mean over more rollouts than the table of items holds.
    wrong = f"the recorded outcomes add up to {total:.4f}, not to the claimed {score:.4f}" if total is not None else ""
    claim = Claim(
        score=score,
        n=n,
        target=start.models.target if start is not None else "",
        paired=adds_up,
        remark="" if adds_up else wrong,
    )
    return claim, outcomes if adds_up else None


def _noted(workspace: Workspace, row: LogRow, split: Split) -> tuple[Claim, Evaluation | None] | None:
    gauge, run = queries.gauge(workspace.index, row.run), AsMeasured(workspace, row.run)
    for note in filter(None, map(noted_outcomes, version_queries.note_lines(workspace.index, row.commit))):
        if note.split == split.value and note.outcomes and run.counts(note) and run.is_whole(note):
            evaluation = Evaluation(split=split, item_set=note.item_set, outcomes=dict(note.outcomes), seed=0)
            score = evaluation.summary().score(gauge.metric, gauge.soft_weight)
            remark = "measured after the run; a note tells it"
            claim = Claim(score=score, n=len(note.outcomes), target=note.target, paired=True, remark=remark)
            return claim, evaluation
    return None


def _score(workspace: Workspace, row: LogRow, split: Split) -> tuple[float, int] | None:
    gauge = queries.gauge(workspace.index, row.run)
    if split is Split.SELECTION:
        return _selection(workspace, row, gauge) if is_own(row) and row.bound is None else None
    if row.version is None:
        return None
    final = [
        final_row
        for final_row in version_queries.final_rows(workspace.index, row.run, row.version)
        if final_row.split == split.value
    ]
    if not final:
        return None
    value = Scored(final[-1].hard, final[-1].soft).value(gauge.metric, gauge.soft_weight)
    return value, final[-1].n


def _selection(workspace: Workspace, row: LogRow, gauge: Gauge) -> tuple[float, int] | None:
    if row.version is not None:
        scores = version_queries.selection_scores(workspace.index, row.run, row.version)
        own = next((score for score in scores if score.hard is not None and score.soft is not None), None)
        return None if own is None else (Scored(own.hard, own.soft).value(gauge.metric, gauge.soft_weight), own.n)  # type: ignore[arg-type]
    evaluation = getattr(read_commit(workspace.repo, row.commit).event, "evaluation", None)
    if not isinstance(evaluation, EvaluationSummary):
        return None
    return evaluation.score(gauge.metric, gauge.soft_weight), evaluation.n


def judge(claim: Claim, original: Evaluation | None, evaluation: Evaluation, rule: GateRule) -> ClaimVerdict:
    """Compare a new measurement with a claim: pair by pair where the recorded outcomes are here, else by its mean."""
    failures = len(evaluation.outcomes) - len(evaluation.scored)
    values = {item: outcome.value(rule.metric, rule.soft_weight) for item, outcome in evaluation.scored.items()}
    earlier = {} if original is None else original.scored
    before = {item: earlier[item].value(rule.metric, rule.soft_weight) for item in values if item in earlier}
    if not values:
        return ClaimVerdict(word="not comparable", failed=failures, differs=("no item could be evaluated",))
    return _paired(values, before, failures) if before else _alone(claim, values, failures, rule.metric)


def _paired(values: dict[str, float], originals: dict[str, float], failures: int) -> ClaimVerdict:
    gains = {item: values[item] - score for item, score in originals.items()}
    differences = list(gains.values())
    delta = mean(differences)
    exactly = whole([exact(values[item]) - exact(score) for item, score in originals.items()])
    p = min(1.0, 2 * min(sign_flip_test(exactly), sign_flip_test([-gain for gain in exactly])))
    return ClaimVerdict(
        word=_word(delta, p),
        n=len(differences),
        measured=mean([values[item] for item in originals]),
        recorded=mean(list(originals.values())),
        delta=delta,
        interval=bootstrap_interval(differences),
        p=p,
        higher=tuple(item for item, gain in gains.items() if gain > 0),
        lower=tuple(item for item, gain in gains.items() if gain < 0),
        failed=failures,
    )


def _alone(claim: Claim, values: dict[str, float], failures: int, metric: Metric) -> ClaimVerdict:
    scores = list(values.values())
    average = mean(scores)
    strict = metric is Metric.HARD and all(score in {0.0, 1.0} for score in scores)
    interval = wilson_interval(average, len(scores)) if strict or len(set(scores)) == 1 else bootstrap_interval(scores)
    p = binomial_test(round(sum(scores)), len(scores), claim.score) if strict else None
    outside = p <= ALPHA if p is not None else not interval[0] <= claim.score <= interval[1]
    return ClaimVerdict(
        word=("lower" if average < claim.score else "higher") if outside else "consistent",
        n=len(scores),
        measured=average,
        delta=average - claim.score,
        interval=interval,
        p=p,
        failed=failures,
    )


def _word(delta: float, p: float) -> Word:
    if p > ALPHA or delta == 0.0:
        return "consistent"
    return "lower" if delta < 0 else "higher"
