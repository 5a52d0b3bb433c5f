"""Whether an event says what follows from the events before it, from its own counts, and from the evidence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isclose, isfinite

from skillgit.domain.address import parse, version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary, Metric, Scored, Split, mean
from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    Gated,
    Inherited,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunOutcome,
    RunStarted,
    Skipped,
    SlowMerged,
    event_origin,
    version_of,
)
from skillgit.domain.event_kinds import AddressKind
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.outcomes import contradicted
from skillgit.domain.proposal import EDITS_SHOWN, Origin
from skillgit.domain.run_state import RunState
from skillgit.domain.statistics import sign_test
from skillgit.domain.untrusted.file_names import shown
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import DataError, SkillgitError
from skillgit.store import history_reader
from skillgit.store.commit_message import Recorded
from skillgit.store.repo import Repo, message_of
from skillgit.store.trailer_table import TRAILERS, bearers
from skillgit.store.trailer_values import AMOUNT, COST
from skillgit.store.trailers import PREFIX, has_trailers, parse_block

Rule = tuple[Metric, float]


def trailer_problems(repo: Repo, record: Recorded) -> Iterator[str]:
    """Yield which trailers the commit of ``record`` has that no event of its kind has, or that its kind fixes."""
    event = record.event
    if isinstance(event, Edited):
        return
    block = parse_block(message_of(repo.commit(record.commit)))
    for key in dict.fromkeys(trailer.key for trailer in TRAILERS):
        if type(event) not in bearers(key) and block.all(key):
            yield f"the commit has the trailer {PREFIX}{key}, which {event.kind} never has"
    if not isinstance(event, RunStarted):
        origin = getattr(event, "of", "")
        if origin and not ((address := parse(origin)) and address.run):
            yield f"it was taken from {shown(origin)}, which is the address of no event"
        return
    for key in ("Version", "Base", "Epoch"):
        if (value := block.one(key)) not in {"", "0"}:
            yield f"a run starts with {PREFIX}{key} 0, and this one with {value}"
    if event.fork_of:
        yield from _fork_problems(repo, record, event.fork_of)


def _fork_problems(repo: Repo, record: Recorded, source: str) -> Iterator[str]:
    address = parse(source)
    if address is None or not address.run or address.kind is not AddressKind.VERSION:
        yield f"it is a fork of {shown(source)}, which is the address of no version"
        return
    parent = record.parents[0] if record.parents else ""
    if parent and not repo.has_object(parent):
        return  # a shallow clone
    try:
        version = _version_at(repo, parent) if parent else None
    except SkillgitError:
        if repo.raw.is_shallow:
            return
        version = None
    if version != (address.run, address.number):
        yield f"it is a fork of {source}, and its parent is another commit"


def _version_at(repo: Repo, commit: str) -> tuple[str, int | None]:
    """Return the run and the version at ``commit``; that of a person's edit is counted from the event before it."""
    if has_trailers(message_of(repo.commit(commit))):
        event = history_reader.read_commit(repo, commit).event
        return event.run, version_of(event)
    position = history_reader.place_of(repo, commit)
    return position.run, position.version


_COUNTS = {field.key: field.attribute for field in COST.fields if field.kind is AMOUNT}
_OF_NO_PART = frozenset({"reused", "unidentified"})
_ROUNDING = 1e-9


def count_problems(event: Event, *, is_import: bool) -> Iterator[str]:
    """Yield contradicting counts; an import counts all edits and lists those of kinds that exist here."""
    if not isinstance(event, SlowMerged | Edited):
        yield from _cost_problems(event.cost)
    if isinstance(event, Accepted | Rejected | Skipped):
        patch = event.patch
        if min(patch.merged, patch.ranked, patch.applied, patch.skipped, patch.budget or 0) < 0:
            yield "the commit counts fewer proposals or edits than none"
        edits = () if isinstance(event, Skipped) else event.edits
        if isinstance(event, Accepted | Rejected) and not is_import and len(edits) != min(patch.applied, EDITS_SHOWN):
            yield f"the commit says that {patch.applied} edits were applied, and tells {len(edits)} of them"


def _cost_problems(cost: Cost) -> Iterator[str]:
    """Yield where parts do not add up to the whole; seconds do not, for calls are made side by side."""
    for part_cost in (cost, *(part.cost for part in cost.parts)):
        amounts = (*(getattr(part_cost, name) for name in _COUNTS.values()), part_cost.usd, part_cost.seconds)
        if not all(isfinite(amount) and amount >= 0 for amount in amounts):
            yield "the commit tells a cost that is below 0 or no number"
            return
    if not cost.parts:
        return
    for key, name in ((key, name) for key, name in _COUNTS.items() if name not in _OF_NO_PART):
        whole, parts = getattr(cost, name), sum(getattr(part.cost, name) for part in cost.parts)
        if whole != parts:
            yield f"the commit says that it cost {key}={whole}, and its parts add up to {parts}"
    usd = sum(part.cost.usd for part in cost.parts)
    if not isclose(cost.usd, usd, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        yield f"the commit says that it cost usd={cost.usd!r}, and its parts add up to {usd!r}"


_ANY_RULE: tuple[Rule, ...] = ((Metric.HARD, 0.0), (Metric.SOFT, 0.0))
_OPEN = frozenset({RunOutcome.NULL_RESULT, RunOutcome.UNDERPOWERED})
"""Outcomes that only the gate's ``alpha`` tells apart."""


def sequence_problems(state: RunState, event: Event, rules: Collection[Rule]) -> Iterator[str]:
    """Yield what does not follow from ``state`` by the metrics, with soft shares, in ``rules`` of the run's gates."""
    if isinstance(event, SlowMerged) and (proposal := state.pending_merge) is not None and proposal.evaluation:
        if event.evaluation != proposal.evaluation:
            yield "the score of the merge is not that of the guidance that was proposed"
        if event.verdict != proposal.verdict:
            yield "the gate of the merge is not that of the guidance that was proposed"
    if not state.start.splits:
        # An import: another program set its epochs and chose its items.
        return
    yield from _epoch_problems(state, event)
    yield from _condition_problems(state, event)
    if isinstance(event, RunFinished):
        yield from _end_problems(state, event, rules or _ANY_RULE)


def _epoch_problems(state: RunState, event: Event) -> Iterator[str]:
    if not isinstance(event, Accepted | Rejected | Skipped) or event_origin(event) is not Origin.STEP:
        if event.epoch > state.epoch:
            yield f"{event.kind} names epoch {event.epoch} after a step of epoch {state.epoch}"
        return
    if event.epoch > state.epoch + 1:
        yield f"step {event.step} is of epoch {event.epoch}, and the step before it of epoch {state.epoch}"
    if event.epoch <= max(state.slow_epoch, state.meta_epoch):
        yield f"step {event.step} is of epoch {event.epoch}, which had ended before it"
    if state.pending_merge is not None:
        yield f"step {event.step} follows guidance that was accepted and not merged"


def _condition_problems(state: RunState, event: Event) -> Iterator[str]:
    """Yield scores of other items or seeds than the run's, but for forks' scores and interventions' seeds."""
    first = state.start.evaluation
    evaluations: tuple[object, ...] = event.evaluations if isinstance(event, RunFinished) else ()
    if isinstance(event, Gated):
        evaluations = (event.evaluation,)
    has_seed = not (state.start.fork_of or isinstance(event, Reverted | Measured) or event_origin(event).intervenes)
    for evaluation in evaluations:
        if not isinstance(evaluation, EvaluationSummary) or not isinstance(first, EvaluationSummary):
            continue
        if not isinstance(event, RunFinished):
            if evaluation.split is not Split.SELECTION:
                yield f"the gate's score is one on the split {evaluation.split}, and not on {Split.SELECTION}"
            if (evaluation.item_set, evaluation.n) != (first.item_set, first.n):
                start = f"the run began with {first.n}, the set {first.item_set}"
                yield f"the score is one of {evaluation.n} items, the set {evaluation.item_set}, and {start}"
        if has_seed and evaluation.seed != first.seed:
            yield f"the score was measured with seed {evaluation.seed}, and the run began with seed {first.seed}"


def _end_problems(state: RunState, event: RunFinished, rules: Collection[Rule]) -> Iterator[str]:
    both = [state.evaluation(version) for version in (0, state.best)]
    complete = all(evaluation.scored == evaluation.n for evaluation in both)
    outcomes = {_outcome(state, rule) for rule in rules} if complete else set()
    # What ended before the test split was asked is recorded as improved, whatever the test scores beside it say.
    by_selection = RunOutcome.IMPROVED if event.outcome is RunOutcome.NOT_CONFIRMED else event.outcome
    if len(outcomes) == 1 and outcomes != {RunOutcome.NULL_RESULT if by_selection in _OPEN else by_selection}:
        (outcome,) = outcomes
        name = " or ".join(sorted(_OPEN)) if outcome in _OPEN else outcome
        yield f"the run ends as {event.outcome}, and its scores say {name}"
    if event.outcome is RunOutcome.NOT_CONFIRMED:
        tests = {test.version: test for test in event.evaluations}
        seed, best, best_name = tests.get(0), tests.get(state.best), version_label(state.best)
        if seed is None or best is None:
            yield f"the run ends as {event.outcome}, and v0 and {best_name} have no scores on the test split"
        elif all(contradicted(seed, best, *rule) is False for rule in rules):
            yield f"the run ends as {event.outcome}, and {best_name} scores no lower on the test split than v0"


def _outcome(state: RunState, rule: Rule) -> RunOutcome:
    """Return how the run ended under the metric of its gate; a null result may be an underpowered one."""
    first, best = (state.evaluation(version).score(*rule) for version in (0, state.best))
    if state.best > 0 and best > first:
        return RunOutcome.IMPROVED
    if first >= 1.0:
        return RunOutcome.CEILING
    if all(step.decision is None for step in state.memory if not step.by_hand):
        return RunOutcome.NO_CANDIDATES
    return RunOutcome.NULL_RESULT


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
            f" soft={summary.soft!r}, and its items say n={figures[0]} scored={figures[1]} hard={figures[2]!r}"
            f" soft={figures[3]!r}"
        )


def _outcomes(content: bytes) -> tuple[int, dict[str, Scored]]:
    """Return the number of items in a table of outcomes, and the score of each that has one."""
    rows = loads(content)
    outcomes = {row["id"]: Scored(float(row["hard"]), float(row["soft"])) for row in rows if "failed" not in row}
    return len(rows), outcomes


def _repeat_problems(files: Mapping[str, bytes], outcomes: dict[str, Scored], verdict: Verdict) -> Iterator[str]:
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
    conditions = {(evaluation.item_set, evaluation.n, evaluation.seed) for evaluation in evaluations}
    if len(conditions) > 1 and state.start.splits:
        yield "the scores at the end of the run are not all of the same items and the same seed"
    versions_needed = {0, state.best, state.version}
    if evaluations and state.start.splits and set(versions) != versions_needed:
        names = ", ".join(version_label(version) for version in sorted(versions_needed))
        yield f"the run ends with scores of other versions than the first, the best and the last, which are {names}"


def final_item_problems(event: RunFinished, files: Mapping[str, bytes], *, is_import: bool) -> Iterator[str]:
    """Yield outcomes in ``files`` that contradict test scores; imports may keep theirs under another name."""
    for evaluation in event.evaluations:
        name = f"test-{version_label(evaluation.version)}.json"
        if name in files:
            yield from item_problems(name, files[name], evaluation)
        elif not is_import:
            yield f"the evidence lacks '{name}', and the commit tells the score of {version_label(evaluation.version)}"
    versions = {evaluation.version for evaluation in event.evaluations}
    for name in sorted(files):
        match = re.fullmatch(r"test-v(?P<version>\d+)\.json", name)
        if match is not None and int(match["version"]) not in versions:
            yield f"the evidence has '{name}', and the commit tells no score of {version_label(int(match['version']))}"
