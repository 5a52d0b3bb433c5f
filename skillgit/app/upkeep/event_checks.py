"""Whether an event says what it must: its trailers, its counts, and what the events before it leave it to say."""

from __future__ import annotations

from math import isclose, isfinite
from typing import TYPE_CHECKING

from skillgit.domain.address import parse, version_label
from skillgit.domain.evaluation import EvaluationSummary, Metric, Split
from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    Gated,
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
from skillgit.domain.outcomes import contradicted
from skillgit.domain.proposal import EDITS_SHOWN, Origin
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import SkillgitError
from skillgit.store import history_reader
from skillgit.store.repo import Repo, message_of
from skillgit.store.trailer_table import TRAILERS, bearers
from skillgit.store.trailer_values import AMOUNT, COST
from skillgit.store.trailers import PREFIX, has_trailers, parse_block

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from skillgit.domain.cost import Cost
    from skillgit.domain.run_state import RunState
    from skillgit.store.commit_message import Recorded


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
        # a shallow clone
        return
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
_ROUNDING = 1e-9


def count_problems(event: Event, *, is_import: bool) -> Iterator[str]:
    """Yield which counts of ``event`` contradict each other.

    An import lists edits as far as they are of a kind that exists here, and counts all of them.
    """
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
    for key, name in _COUNTS.items():
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
    """Yield what ``event`` says that does not follow from ``state``, the run before it.

    ``rules`` are the metrics, with the share of the soft score, that the run's gates compared.
    """
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
    name = event.kind
    if not isinstance(event, Accepted | Rejected | Skipped) or event_origin(event) is not Origin.STEP:
        if event.epoch > state.epoch:
            yield f"{name} names epoch {event.epoch} after a step of epoch {state.epoch}"
        return
    if event.epoch > state.epoch + 1:
        yield f"step {event.step} is of epoch {event.epoch}, and the step before it of epoch {state.epoch}"
    if event.epoch <= max(state.slow_epoch, state.meta_epoch):
        yield f"step {event.step} is of epoch {event.epoch}, which had ended before it"
    if state.pending_merge is not None:
        yield f"step {event.step} follows guidance that was accepted and not merged"


def _condition_problems(state: RunState, event: Event) -> Iterator[str]:
    """Yield where a score was measured on other items than the run's, or with another seed.

    Whoever intervenes may set a seed of their own; a fork takes over a score, whoever measured it.
    """
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
                yield (
                    f"the score is one of {evaluation.n} items, the set {evaluation.item_set},"
                    f" and the run began with {first.n}, the set {first.item_set}"
                )
        if has_seed and evaluation.seed != first.seed:
            yield f"the score was measured with seed {evaluation.seed}, and the run began with seed {first.seed}"


def _end_problems(state: RunState, event: RunFinished, rules: Collection[Rule]) -> Iterator[str]:
    """Yield where the outcome does not follow from the scores under the metric of the run's gate."""
    both = [state.evaluation(version) for version in (0, state.best)]
    complete = all(evaluation.scored == evaluation.n for evaluation in both)
    outcomes = {_outcome(state, rule) for rule in rules} if complete else set()
    if len(outcomes) == 1 and outcomes != {_on_selection(event.outcome)}:
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


def _on_selection(outcome: RunOutcome) -> RunOutcome:
    """Return what the selection split alone says of a run that ended as ``outcome``.

    What ended before the test split was asked is recorded as improved, whatever the test scores beside it say.
    """
    if outcome is RunOutcome.NOT_CONFIRMED:
        return RunOutcome.IMPROVED
    return RunOutcome.NULL_RESULT if outcome in _OPEN else outcome


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


if TYPE_CHECKING:
    Rule = tuple[Metric, float]
