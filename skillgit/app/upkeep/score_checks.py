"""Whether the numbers of gates and of the end of a run follow from the outcomes in the evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.evaluation import EvaluationSummary, Metric, Scored, Split, mean
from skillgit.domain.event import Accepted, Gated, Inherited, Measured, Rejected, RunFinished, SlowMerged
from skillgit.domain.statistics import sign_test
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.domain.gate_decision import Verdict
    from skillgit.domain.run_state import RunState
    from skillgit.store.commit_message import Recorded

_ROUNDING = 1e-9
_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError, DataError)


def score_problems(state: RunState, record: Recorded) -> Iterator[str]:
    """Yield what is wrong with the numbers of a gated event that follows ``state``."""
    event = record.event
    if not isinstance(event, Gated):
        return
    verdict, evaluation = event.verdict, event.evaluation
    base_version = state.last_measured(state.version) if isinstance(event, Measured) else event.base
    if verdict is None or evaluation is None or base_version > state.version:
        return
    if isinstance(evaluation, Inherited):
        if verdict.gated:
            yield "a gate decided, and the score was not measured"
        return
    base = state.known_evaluation(base_version)
    if base is None:
        yield f"the gate compared with {version_label(base_version)}, which has no score"
        return
    yield from _stop_problems(evaluation, verdict)
    yield from _flip_problems(event, verdict)
    if verdict.compared is not None and not verdict.compared == evaluation.n == base.n:
        return  # its means are over some of the items, and follow from these: see ``recomputed_gates``
    yield from _candidate_score_problems(evaluation, verdict)
    rule = verdict.metric, verdict.soft_weight
    newest = state.evaluation(state.best)
    current, best = base.score(*rule), newest.score(*rule)
    # Items of a version that failed to evaluate are tried again, so that its score may be known better by now; and
    # after repeats the gate compares means over them.
    if not verdict.repeats and base.scored == base.n and _differ(verdict.current, current):
        yield f"the gate compared current={verdict.current!r}, and the evaluation says {current!r}"
    is_averaged = verdict.repeats and verdict.best == verdict.current and state.best == base_version
    if not is_averaged and newest.scored == newest.n and _differ(verdict.best, best):
        yield f"the gate compared best={verdict.best!r}, and the evaluation says {best!r}"


def _differ(first: float, second: float) -> bool:
    return abs(first - second) > _ROUNDING


def _stop_problems(evaluation: EvaluationSummary, verdict: Verdict) -> Iterator[str]:
    if evaluation.stopped and verdict.decision.accepted:
        yield "the candidate is accepted, though it was not evaluated in full"
    if evaluation.spare > evaluation.unneeded or evaluation.scored + evaluation.unneeded > evaluation.n:
        yield "the evaluation says that more items were left out than there are"


def _candidate_score_problems(evaluation: EvaluationSummary, verdict: Verdict) -> Iterator[str]:
    rule = verdict.metric, verdict.soft_weight
    if evaluation.stopped:
        highest = evaluation.highest(*rule)
        if _differ(verdict.score, highest):
            yield f"the gate compared score={verdict.score!r}, and at most {highest!r} could have been reached"
    elif not verdict.repeats and _differ(verdict.score, evaluation.score(*rule)):
        yield f"the gate compared score={verdict.score!r}, and the evaluation says {evaluation.score(*rule)!r}"


def _flip_problems(event: Gated, verdict: Verdict) -> Iterator[str]:
    if verdict.metric is Metric.HARD and verdict.p != sign_test(verdict.fixed, verdict.broken):
        yield f"the gate says p={verdict.p!r}, which does not follow from fixed={verdict.fixed} broken={verdict.broken}"
    if not 0.0 < verdict.p <= 1.0:
        yield f"the gate says p={verdict.p!r}, which is no chance"
    if verdict.blocked > verdict.broken:
        yield f"the gate says blocked={verdict.blocked}, and no more than broken={verdict.broken} can be"
    if not isinstance(event, SlowMerged) and (len(event.fixed), len(event.broken)) != (verdict.fixed, verdict.broken):
        yield "the gate counts other items as fixed or broken than the message lists"
    edits = event.edits if isinstance(event, Accepted | Rejected) else ()
    for edit in edits:
        attributions = (edit.fixed, edit.broken)
        if attributions != (None, None) and (len(edits) > 1 or attributions != (verdict.fixed, verdict.broken)):
            yield "an edit is said to have fixed and broken other items than the gate counts for it alone"


def selection_problems(
    files: Mapping[str, bytes], summary: EvaluationSummary, verdict: Verdict | None
) -> Iterator[str]:
    """Yield where the outcomes of items in the evidence contradict the evaluation or the gate's score."""
    name = "selection.json"
    yield from item_problems(name, files[name], summary)
    if verdict is None or not verdict.repeats or verdict.compared not in {None, summary.n}:
        return
    try:
        _, outcomes = _outcomes(files[name])
    except _UNREADABLE:
        return
    yield from _repeat_problems(files, outcomes, verdict)


def item_problems(name: str, content: bytes, summary: EvaluationSummary) -> Iterator[str]:
    """Yield where the outcomes of items in ``content``, the file ``name``, contradict the evaluation."""
    try:
        count, outcomes = _outcomes(content)
        hard, soft = _means(list(outcomes.values()))
    except _UNREADABLE:
        yield f"{name} in the evidence cannot be read"
        return
    figures = count + summary.unneeded, len(outcomes), hard, soft
    if figures != (summary.n, summary.scored, summary.hard, summary.soft):
        of = "" if summary.version is None else f" of {version_label(summary.version)}"
        yield (
            f"the evaluation{of} says n={summary.n} scored={summary.scored} hard={summary.hard!r}"
            f" soft={summary.soft!r},"
            f" and its items say n={figures[0]} scored={figures[1]} hard={figures[2]!r} soft={figures[3]!r}"
        )


def _outcomes(content: bytes) -> tuple[int, dict[str, Scored]]:
    """Return the number of items in a table of outcomes, and the score of each that has one."""
    rows = loads(content)
    outcomes = {row["id"]: Scored(float(row["hard"]), float(row["soft"])) for row in rows if "failed" not in row}
    return len(rows), outcomes


def _repeat_problems(files: Mapping[str, bytes], outcomes: dict[str, Scored], verdict: Verdict) -> Iterator[str]:
    """Yield where the gate's score is not the mean over first and repeated rollouts."""
    try:
        again = {
            row["id"]: [Scored(float(draw["hard"]), float(draw["soft"])) for draw in row["candidate"] if "hard" in draw]
            for row in loads(files["repeats.json"])
        }
        means = [Scored(*_means([first, *again.get(item, [])])) for item, first in outcomes.items()]
        score = Scored(*_means(means)).value(verdict.metric, verdict.soft_weight)
    except _UNREADABLE:
        yield "repeats.json in the evidence cannot be read"
        return
    if _differ(score, verdict.score):
        yield f"the gate compared score={verdict.score!r}, and its repeats say {score!r}"


def _means(outcomes: Sequence[Scored]) -> tuple[float, float]:
    return mean([outcome.hard for outcome in outcomes]), mean([outcome.soft for outcome in outcomes])


_TABLE = re.compile(r"test-v(?P<version>\d+)\.json")


def final_score_problems(state: RunState, event: RunFinished) -> Iterator[str]:
    """Yield why the scores at the end of a run, which follows ``state``, cannot be its scores."""
    evaluations = event.evaluations
    versions = [evaluation.version for evaluation in evaluations]
    for evaluation in evaluations:
        if evaluation.split is not Split.TEST:
            yield f"the run ends with a score on the split {evaluation.split}, and not on {Split.TEST}"
        if evaluation.version is None or not 0 <= evaluation.version <= state.version:
            yield f"the run ends with a score of {version_label(evaluation.version)}, which it does not have"
    if len(set(versions)) < len(versions):
        yield "the run ends with two scores of one version"
    if (
        len({(evaluation.item_set, evaluation.n, evaluation.seed) for evaluation in evaluations}) > 1
        and state.start.splits
    ):
        yield "the scores at the end of the run are not all of the same items and the same seed"
    versions_needed = {0, state.best, state.version}
    if evaluations and state.start.splits and set(versions) != versions_needed:
        names = ", ".join(version_label(version) for version in sorted(versions_needed))
        yield f"the run ends with scores of other versions than the first, the best and the last, which are {names}"


def final_item_problems(event: RunFinished, files: Mapping[str, bytes], *, is_import: bool) -> Iterator[str]:
    """Yield where the outcomes of items in ``files`` contradict the scores on the test split.

    What was imported keeps outcomes that do not add up to a score under another name.
    """
    for evaluation in event.evaluations:
        name = f"test-{version_label(evaluation.version)}.json"
        if name in files:
            yield from item_problems(name, files[name], evaluation)
        elif not is_import:
            yield f"the evidence lacks '{name}', and the commit tells the score of {version_label(evaluation.version)}"
    versions = {evaluation.version for evaluation in event.evaluations}
    for name in sorted(files):
        match = _TABLE.fullmatch(name)
        if match is not None and int(match["version"]) not in versions:
            yield f"the evidence has '{name}', and the commit tells no score of {version_label(int(match['version']))}"
