"""Whether events say what follows from the events before them, and from their own counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isclose, isfinite

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import Metric, Split
from skillgit.domain.event import CANDIDATES, Event, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.outcomes import contradicted
from skillgit.domain.proposal import EDITS_SHOWN, BudgetSource, Origin
from skillgit.domain.run_state import RunState, advance, begin
from skillgit.domain.statistics import sign_test
from skillgit.errors import InvariantError
from skillgit.store.commit_message import Recorded
from skillgit.store.trailer_table import AMOUNT, COST

Rule = tuple[Metric, float]
MERGE = 2
"""How many parents a merge of the slow line has: the run's tip and the slow tip."""


def fold_problems(
    run: str, records: Sequence[Recorded], schedule: Callable[[int], int] | None
) -> Iterator[tuple[Recorded, str]]:
    """Yield what events say that contradicts the events before them; after a contradiction nothing follows."""
    state: RunState | None = None
    rules: set[Rule] = set()
    for record in records:
        event = record.event
        if event.run != run:
            yield record, f"an event of run {event.run} is on run {run}"
        try:
            if state is None:
                if event.kind is not EventKind.RUN_STARTED:
                    raise InvariantError(f"the run begins with {event.kind}", hint="skillgit fsck")  # noqa: TRY301 - one way out
                state = begin(event)
                continue
            for problems in (
                _score_problems(state, record),
                _sequence_problems(state, event, rules),
                _joining_problems(state, event),
                _final_score_problems(state, event),
            ):
                yield from ((record, sentence) for sentence in problems)
            verdict = event.verdict
            if verdict is not None:
                rules.add((verdict.metric, verdict.soft_weight))
            state = advance(state, event)
        except InvariantError as error:
            yield record, error.message
            return
        yield from ((record, sentence) for sentence in _budget_problems(event, schedule))


def _budget_problems(event: Event, schedule: Callable[[int], int] | None) -> Iterator[str]:
    """Yield what is wrong with the edit budget of a step; ``schedule`` gives it, where it is known."""
    if (patch := event.patch) is None:
        return
    budget = patch.budget
    if (budget is None) != (patch.by is BudgetSource.NONE):
        yield f"step {event.step} had the edit budget {budget}, though it was set by '{patch.by}'"
        return
    if budget is None:
        return
    if event.origin.intervenes:
        yield f"the {event.origin} after step {event.step} had the edit budget {budget}, and it has none"
        return
    if (event.origin is Origin.META) != (patch.by is BudgetSource.META):
        yield f"the reflection on epoch {event.epoch} and its edit budget do not belong together"
    budget_wanted = schedule(event.step) if schedule is not None else budget
    if patch.by not in {BudgetSource.OPTIMIZER, BudgetSource.META} and budget != budget_wanted:
        yield f"step {event.step} had an edit budget of {budget}, and the schedule says {budget_wanted}"
    # early runs wrote the rules down where the budget counts suggestions, too
    counts_rules = patch.rules is not None and patch.mode.proposals is not ProposalKind.SUGGESTIONS
    if counts_rules and (patch.rules or 0) > budget:
        yield f"step {event.step} changes {patch.rules} rules with an edit budget of {budget}"
    if not counts_rules and patch.ranked > budget:
        yield f"step {event.step} chose {patch.ranked} of its proposals with an edit budget of {budget}"


_COUNTS = {field.attribute: field.key for field in COST.fields if field.kind is AMOUNT}
_OF_NO_PART = frozenset({"reused", "unidentified"})
_ROUNDING = 1e-9


def count_problems(event: Event, *, is_import: bool) -> Iterator[str]:
    """Yield contradicting counts; an import counts all edits and lists those of kinds that exist here."""
    yield from _cost_problems(event.cost)
    if (patch := event.patch) is not None:
        if min(patch.merged, patch.ranked, patch.applied, patch.skipped, patch.budget or 0) < 0:
            yield "the commit counts fewer proposals or edits than none"
        if event.kind in CANDIDATES and not is_import and len(event.edits) != min(patch.applied, EDITS_SHOWN):
            yield f"the commit says that {patch.applied} edits were applied, and lists {len(event.edits)} of them"


def _cost_problems(cost: Cost) -> Iterator[str]:
    """Yield where parts do not add up to the whole; seconds do not, for calls are made side by side."""
    for part_cost in (cost, *(part.cost for part in cost.parts)):
        amounts = (*(getattr(part_cost, name) for name in _COUNTS), part_cost.usd, part_cost.seconds)
        if not all(isfinite(amount) and amount >= 0 for amount in amounts):
            yield "the commit has a cost that is negative or not a number"
            return
    if not cost.parts:
        return
    for name, key in _COUNTS.items():
        whole, parts = getattr(cost, name), sum(getattr(part.cost, name) for part in cost.parts)
        if name not in _OF_NO_PART and whole != parts:
            yield f"the commit says that it cost {key}={whole}, and its parts add up to {parts}"
    usd = sum(part.cost.usd for part in cost.parts)
    if not isclose(cost.usd, usd, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        yield f"the commit says that it cost usd={cost.usd!r}, and its parts add up to {usd!r}"


def parent_problems(record: Recorded, guidance: Collection[str], versions: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with the parents of ``record``; ``guidance`` are the commits of the slow line."""
    event, parents = record.event, record.parents
    merges = event.kind is EventKind.ACCEPTED and event.origin is Origin.MERGE
    if merges and len(parents) != MERGE:
        yield f"a merge of another line has two parents, and this commit has {len(parents)}"
    lines = event.other_lines if event.kind is EventKind.ACCEPTED and event.origin is Origin.STEP else ()
    if parents[1:] != tuple(versions.get(version, "") for version in lines) and lines:
        names = " and ".join(map(version_label, lines))
        yield f"it was made of {names} besides the version before it, and its other parents are not these"
    if len(parents) > 1 and not merges and not lines and event.kind not in {EventKind.SLOW_MERGED, EventKind.EDITED}:
        yield f"the commit has {len(parents)} parents, though its event merges nothing"
    if event.kind is EventKind.REJECTED and parents != (versions.get(event.base, ""),):
        base = version_label(event.base)
        yield f"it was proposed on {base}, and its parent is not the commit of {base}"
    if event.kind is EventKind.SLOW_MERGED and not (len(parents) == MERGE and parents[1] in guidance):
        yield "a slow merge has the run and the slow line as parents, and this commit has others"
    if event.kind is EventKind.SLOW_PROPOSED and not (
        parents and (parents[0] in guidance or parents[0] == versions.get(0))
    ):
        yield "its parent is neither the guidance before it nor v0"


_ANY_RULE: tuple[Rule, ...] = ((Metric.HARD, 0.0), (Metric.SOFT, 0.0))
_OPEN = frozenset({RunOutcome.NULL_RESULT, RunOutcome.UNDERPOWERED})
"""Outcomes that differ only by the gate's ``alpha``."""


def _sequence_problems(state: RunState, event: Event, rules: Collection[Rule]) -> Iterator[str]:
    """Yield what does not follow from ``state`` by the metrics, with soft shares, in ``rules`` of the run's gates."""
    if event.kind is EventKind.SLOW_MERGED and (proposal := state.pending_merge) is not None and proposal.evaluation:
        if event.evaluation != proposal.evaluation:
            yield "the score of the merge is not that of the guidance that was proposed"
        if event.verdict != proposal.verdict:
            yield "the gate of the merge is not that of the guidance that was proposed"
    if not state.start.splits:
        # An import: another program set its epochs and chose its items.
        return
    if event.is_step:
        if event.epoch > state.epoch + 1:
            yield f"step {event.step} is of epoch {event.epoch}, and the step before it of epoch {state.epoch}"
        if event.epoch <= max(state.slow_epoch, state.meta_epoch):
            yield f"step {event.step} is of epoch {event.epoch}, which had ended before it"
        if state.pending_merge is not None:
            yield f"step {event.step} follows guidance that was accepted and not merged"
    elif event.epoch > state.epoch:
        yield f"{event.kind} names epoch {event.epoch} after a step of epoch {state.epoch}"
    yield from _condition_problems(state, event)
    if event.kind is EventKind.RUN_FINISHED:
        yield from _end_problems(state, event, rules or _ANY_RULE)


def _condition_problems(state: RunState, event: Event) -> Iterator[str]:
    """Yield scores of other items or seeds than the run's, but for forks' scores and interventions' seeds."""
    first = state.start.summary
    evaluations = (*event.evaluations, *filter(None, [event.summary]))
    has_seed = not (
        state.start.fork_of or event.kind in {EventKind.REVERTED, EventKind.MEASURED} or event.origin.intervenes
    )
    for evaluation in evaluations:
        if first is None:
            continue
        if event.kind is not EventKind.RUN_FINISHED:
            if evaluation.split is not Split.SELECTION:
                yield f"the gate's score is one on the split {evaluation.split}, and not on {Split.SELECTION}"
            if (evaluation.item_set, evaluation.n) != (first.item_set, first.n):
                start = f"the run began with {first.n}, the set {first.item_set}"
                yield f"the score is one of {evaluation.n} items, the set {evaluation.item_set}, and {start}"
        if has_seed and evaluation.seed != first.seed:
            yield f"the score was measured with seed {evaluation.seed}, and the run began with seed {first.seed}"


def _end_problems(state: RunState, event: Event, rules: Collection[Rule]) -> Iterator[str]:
    both = [state.evaluation(version) for version in (0, state.best)]
    complete = all(evaluation.scored == evaluation.n for evaluation in both)
    outcomes = {_outcome(state, rule) for rule in rules} if complete else set()
    # What ended before the test split was asked is recorded as improved, even against its test scores.
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


def _final_score_problems(state: RunState, event: Event) -> Iterator[str]:
    """Yield why the scores at the end of a run, which follows ``state``, cannot be its scores."""
    if event.kind is not EventKind.RUN_FINISHED:
        return
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


def _score_problems(state: RunState, record: Recorded) -> Iterator[str]:
    """Yield what is wrong with the numbers of a gated event that follows ``state``."""
    event = record.event
    verdict, evaluation = event.verdict, event.summary
    base_version = state.last_measured(state.version) if event.kind is EventKind.MEASURED else event.base
    if verdict is None or event.evaluation is None or base_version > state.version:
        return
    if evaluation is None:
        if verdict.gated:
            yield "a gate decided, and the score was not measured"
        return
    base = state.known_evaluation(base_version)
    if base is None:
        yield f"the gate compared with {version_label(base_version)}, which has no score"
        return
    if evaluation.stopped and verdict.decision.accepted:
        yield "the candidate is accepted, though it was not evaluated in full"
    if evaluation.spare > evaluation.unneeded or evaluation.scored + evaluation.unneeded > evaluation.n:
        yield "the evaluation says that more items were left out than there are"
    yield from _flip_problems(event, verdict)
    if verdict.compared is not None and not verdict.compared == evaluation.n == base.n:
        return  # its means are over some of the items, and follow from these: see ``recomputed_gates``
    rule = verdict.metric, verdict.soft_weight
    if evaluation.stopped:
        highest = evaluation.highest(*rule)
        if differ(verdict.score, highest):
            yield f"the gate compared score={verdict.score!r}, and at most {highest!r} could have been reached"
    elif not verdict.repeats and differ(verdict.score, evaluation.score(*rule)):
        yield f"the gate compared score={verdict.score!r}, and the evaluation says {evaluation.score(*rule)!r}"
    newest = state.evaluation(state.best)
    current, best = base.score(*rule), newest.score(*rule)
    # Items of a version that failed to evaluate are tried again, so that its score may be known better by now; and
    # after repeats the gate compares means over them.
    if not verdict.repeats and base.scored == base.n and differ(verdict.current, current):
        yield f"the gate compared current={verdict.current!r}, and the evaluation says {current!r}"
    is_averaged = verdict.repeats and verdict.best == verdict.current and state.best == base_version
    if not is_averaged and newest.scored == newest.n and differ(verdict.best, best):
        yield f"the gate compared best={verdict.best!r}, and the evaluation says {best!r}"


def differ(first: float, second: float) -> bool:
    return abs(first - second) > _ROUNDING


def _flip_problems(event: Event, verdict: Verdict) -> Iterator[str]:
    if verdict.metric is Metric.HARD and verdict.p != sign_test(verdict.fixed, verdict.broken):
        yield f"the gate says p={verdict.p!r}, which does not follow from fixed={verdict.fixed} broken={verdict.broken}"
    if not 0.0 < verdict.p <= 1.0:
        yield f"the gate says p={verdict.p!r}, which is not a probability"
    if verdict.blocked > verdict.broken:
        yield f"the gate says blocked={verdict.blocked}, and no more than broken={verdict.broken} can be"
    if event.kind is not EventKind.SLOW_MERGED and (len(event.fixed), len(event.broken)) != (
        verdict.fixed,
        verdict.broken,
    ):
        yield "the gate counts other items as fixed or broken than the message lists"
    for edit in event.edits:
        attributions = (edit.fixed, edit.broken)
        if attributions != (None, None) and (len(event.edits) > 1 or attributions != (verdict.fixed, verdict.broken)):
            yield "an edit is said to have fixed and broken other items than the gate counts for it alone"


def _joining_problems(state: RunState, event: Event) -> Iterator[str]:
    """Yield why a candidate that follows ``state`` cannot have taken up the line that it says."""
    if event.joined is None:
        return
    if not (0 <= event.base <= state.version and 0 <= event.joined <= state.version):
        return  # the fold says so
    base, rival = version_label(event.base), version_label(event.joined)
    if event.joined in state.line(event.base):
        yield f"it joins {rival}, of which {base} was made already"
    elif event.base in state.line(event.joined):
        yield f"it joins {rival}, which was made of {base}"


def rival_problems(records: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Yield where a candidate lost to a step that is not a rival of it, or a step is left to one without a version.

    A step that the run has not come to yet says nothing: a round is computed before its first step is recorded.
    """
    steps = {record.event.step: record.event for record in records if record.event.is_step}
    newest = max(steps, default=0)
    for record in records:
        event = record.event
        if event.kind in CANDIDATES and 0 != event.verdict.outrun <= newest:
            sentences = _rival_problems(event, steps.get(event.verdict.outrun))
            yield from ((record, sentence) for sentence in sentences)
        elif (union := event.taken_up_by) is not None:
            if union <= event.step:
                yield record, "it was left to a step that does not follow it"
            elif union <= newest and ((rival := steps.get(union)) is None or rival.kind is not EventKind.ACCEPTED):
                yield record, f"it was left to step {union}, which made no version"


def _rival_problems(event: Event, rival: Event | None) -> Iterator[str]:
    step = event.verdict.outrun
    if event.origin is not Origin.STEP or step == event.step or rival is None or rival.kind not in CANDIDATES:
        yield f"it lost to step {step}, which has no candidate that could be its rival"
        return
    if (rival.base, rival.epoch) != (event.base, event.epoch):
        bases = f"{version_label(rival.base)}, and this one of {version_label(event.base)}"
        yield f"it lost to step {step}, whose candidate was made of {bases}"
    ours, theirs = event.evaluation, rival.evaluation
    rule = event.verdict.metric, event.verdict.soft_weight
    # the score of one that left the race early is only a bound
    if ours.stopped or ours.scored < ours.n or theirs.scored + theirs.unneeded < theirs.n:
        return
    if theirs.stopped or theirs.score(*rule) < ours.score(*rule):
        yield f"it lost to step {step}, whose candidate was not better"
