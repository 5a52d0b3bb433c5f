"""The loop: from the state of a run to its next transition, until it is finished.

There is one code path. A run that starts, a run that goes on and a run that was killed and continues all ask the same
question: given these events, what is the next one?
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import (
    Evaluation,
    FailedToEvaluate,
    FailureKind,
    Loading,
    Metric,
    Scored,
    Split,
    cut_phrase,
)
from skillgit.domain.event import (
    Event,
    RunOutcome,
    finish_scope,
    measure_scope,
    meta_scope,
    slow_scope,
    start_scope,
    step_scope,
)
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.outcomes import Confirmation, Pairs, confirmation
from skillgit.domain.placebo import Placebo, no_op
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.statistics import CHANCE, may_be_chance, minimum_detectable_effect
from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate import check_files, check_seed
from skillgit.engine.concurrency import ended, ordered, side_by_side
from skillgit.engine.epoch_end import merge_slow_update, propose_slow_update, reflect_on_epoch
from skillgit.engine.measure import (
    EvaluationResult,
    evaluate,
    evaluate_selection,
    lacks_score,
    measure,
    measure_version,
    recorded,
)
from skillgit.engine.rollout import roll_out
from skillgit.engine.rounds import Rounds
from skillgit.engine.search import (
    Monitor,
    Overlap,
    Search,
    Session,
    SkillHistory,
    Stage,
    Transition,
    epoch_of,
    unanswered_file,
)
from skillgit.engine.strategy import Strategy
from skillgit.errors import ConfigError, NotLoadedError, ServiceError

FIRST_SLOW_EPOCH = 2  # the slow update compares two epochs, so that there is none after the first
_SOLVED = 1.0 - 1e-6  # below it, one item keeps a mean from being rounded to a full score


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    skill: Skill
    config: str  # digest of the resolved configuration
    splits: str  # digest of all items
    evidence: Mapping[str, bytes]  # the files behind the digests
    fork_of: str = ""  # ``<run>/v<N>`` for a fork
    remark: str = ""  # what else the first event says of the text


def _check_measured(session: Session, measurement: EvaluationResult) -> None:
    """Raise a ServiceError if no selection item was evaluated; if none was even answered, all are asked again later."""
    outcomes = measurement.evaluation.outcomes.values()
    failures = [outcome for outcome in outcomes if isinstance(outcome, FailedToEvaluate)]
    if failures and len(failures) == len(outcomes):
        session.calls.retract()
        if failures[0].kind is not FailureKind.ENVIRONMENT:
            hint = "skillgit doctor asks each model once and says what is wrong"
        else:
            judge = "; if that is a judge's reply, choose another model.judge" if session.judged else ""
            hint = f"correct what the reason names, then type the same command again{judge}"
        message = f"none of the {len(failures)} selection items could be evaluated; the first: {failures[0].reason}"
        raise ServiceError(message, hint=hint)


@dataclass(slots=True)
class Prefetch:
    """Rollouts of the step after the one in progress."""

    _task: asyncio.Task[None] | None = None
    _over: bool = False

    def start(self, session: Session, skill: Skill, step: int, items: Sequence[Item], slots: asyncio.Semaphore) -> None:
        """Begin the rollouts of ``items``, which ``step`` is certain to make; under a cap, nothing runs ahead."""
        if items and (self._task is None or self._task.done()) and not session.calls.capped:
            self._over = False
            self._task = asyncio.create_task(self._roll_out(session, skill, step, items, slots))

    def give_way(self) -> None:
        """Begin no further rollout, for the step begins now; it waits for those in progress as for its own."""
        self._over = True

    async def settle(self) -> None:
        """Begin no further rollout, and wait for those in progress; stop the calls first to keep the wait short."""
        self.give_way()
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            await ended((task,))

    async def _roll_out(
        self, session: Session, skill: Skill, step: int, items: Sequence[Item], slots: asyncio.Semaphore
    ) -> None:
        unseen = replace(session, monitor=Monitor())

        async def one(item: Item) -> None:
            async with slots:
                if not self._over:
                    await roll_out(unseen, skill, [item], "rollout")

        with session.calls.charged_to(step_scope(session.run, step)):
            tasks = [asyncio.create_task(one(item)) for item in items]
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await ended(tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """The method; ``prepare`` has to succeed before a run begins, and its calls are charged to the first event."""

    session: Session
    strategy: Strategy
    start: Start
    history: SkillHistory
    prepare: Callable[[], Awaitable[None]] | None = None
    prefetch: Prefetch = field(default_factory=Prefetch)
    rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", Rounds(self.session, self.strategy, self.history))

    async def next(self, state: RunState | None) -> Transition | None:
        """Return the transition that follows ``state``; None once the run is finished."""
        try:
            transition = await self._next(state)
            await self.session.calls.settle()
        except BaseException:
            await self.close()
            raise
        if transition is None or transition.event.kind is EventKind.SLOW_MERGED:  # which asks no model
            return transition
        return replace(transition, evidence=evidence_files.merged([transition.evidence, unanswered_file(self.session)]))

    async def stop(self) -> None:
        """Let no further call pass, and wait for those in flight: they run ahead and are paid for."""
        self.session.calls.stop()
        await self.prefetch.settle()

    async def close(self) -> None:
        """Cancel what runs ahead; call this when you stop asking for transitions before the run is finished."""
        await self.prefetch.close()

    async def _next(self, state: RunState | None) -> Transition | None:
        session = self.session
        if state is None:
            session.calls.enter(start_scope(session.run), Cost())
            check_files(session, self.start.skill)
            await check_seed(session, self.start.skill)
            if self.prepare is not None:
                await self.prepare()
            return await self._begin()
        search = Search.of(session, state, self.history)
        if lacks_score(state):
            session.calls.enter(measure_scope(session.run, state.version), state.cost)
            return await measure_version(search)
        return await self._go_on(search) if state.outcome is None else None

    async def _go_on(self, search: Search) -> Transition:
        session, state = self.session, search.state
        self._tell_place(search)
        if state.pending_merge is not None:
            return merge_slow_update(search, state.pending_merge)
        if self.rounds.is_open(state):
            return await self._step(state)
        if stop_at_once(session, state):
            return await self._finish(search)
        if is_due(session, state):
            session.calls.enter(meta_scope(session.run, state.epoch), state.cost)
            return await reflect_on_epoch(search)
        if self._slow_update_is_due(state):
            session.calls.enter(slow_scope(session.run, state.epoch), state.cost)
            return await propose_slow_update(search)
        if state.step < session.steps and not stop_before_step(session, state):
            check_loading(session, state)
            return await self._step(state)
        return await self._finish(search)

    async def _step(self, state: RunState) -> Transition:
        session, step = self.session, state.step + 1
        self.prefetch.give_way()
        session.calls.enter(step_scope(session.run, step), state.cost)
        skill = self.history.skill(state.version)

        def refused(slots: asyncio.Semaphore) -> None:
            self._run_ahead(skill, step + 1, slots)

        # Whether a refusal of the candidate is sure to be followed by a step on the same version.
        after = replace(state, step=step, epoch=epoch_of(step, session.per_epoch))
        due = is_due(session, after) or self._slow_update_is_due(after)
        ends = step >= session.steps or stop_before_step(session, after)
        is_known = not due and not ends and not session.settings.optimizer.salvage
        return await self.rounds.transition(state, step, on_refusal=refused if is_known else None)

    def _run_ahead(self, skill: Skill, step: int, slots: asyncio.Semaphore) -> None:
        items = self.strategy.certain(self.session, step)
        self.prefetch.start(self.session, skill, step, items, slots)

    def _slow_update_is_due(self, state: RunState) -> bool:
        optimizer = self.session.settings.optimizer
        at_the_end = state.step > 0 and state.step % self.session.per_epoch == 0
        is_on = optimizer.use_slow_update or optimizer.use_meta_skill
        return is_on and at_the_end and state.slow_epoch < state.epoch >= FIRST_SLOW_EPOCH

    def _tell_place(self, search: Search) -> None:
        session, state = self.session, search.state
        step = min(state.step + 1, session.steps)
        together = self.rounds.steps(state, step)
        session.monitor.place(
            last=together[-1] if len(together) > 1 else 0,
            epoch=epoch_of(step, session.per_epoch),
            epochs=session.settings.train.num_epochs,
            step=step,
            steps=session.steps,
            score=search.score(state.version),
            best=search.score(state.best),
        )

    async def _begin(self) -> Transition:
        session, start = self.session, self.start
        session.leaks.prepare(session)
        epochs = session.settings.train.num_epochs
        session.monitor.place(epoch=0, epochs=epochs, step=0, steps=session.steps, score=None, best=None)
        began = session.clock()
        slots = asyncio.Semaphore(session.workers)

        def known(rollout: Rollout) -> None:
            if self._step_follows_baseline(rollout):
                self._run_ahead(start.skill, 1, slots)

        measurement = await evaluate_selection(session, start.skill, Stage.BASELINE, slots=slots, each=known)
        summary = measurement.evaluation.summary()
        _check_measured(session, measurement)
        if session.rule.counts_tokens and summary.tokens is None:
            raise ConfigError(
                f"gate.objective is {session.rule.objective}, and the target's tokens are not known of all of the"
                f" {summary.scored} selection items that have a score",
                hint="-o gate.objective=score compares scores alone",
            )
        event = Event(
            kind=EventKind.RUN_STARTED,
            run=session.run,
            skill=session.skill_path,
            title=f"train {start.skill.name} on {session.task.environment.info.name}",
            why=f"{summary.scored} of {summary.n} selection items have a score with the seed skill. {start.remark}",
            config=start.config,
            splits=start.splits,
            environment=session.task.digest,
            models=session.models,
            evaluation=summary,
            gauge=session.gauge,
            fork_of=start.fork_of,
            served=session.served,
            cost=session.cost_since(began),
        )
        files = evidence_files.rollouts_files("selection", measurement.rollouts)
        return Transition(event=event, skill=start.skill, evidence=evidence_files.merged([start.evidence, files]))

    def _step_follows_baseline(self, rollout: Rollout) -> bool:
        """Say whether a first step is sure: the seed cannot have the full score, and no agent ignores it always."""
        rule, outcome = self.session.rule, rollout.outcome
        is_ignored = isinstance(outcome, Scored) and outcome.loading is Loading.NOT_LOADED
        if is_ignored and self.session.settings.train.require_loading:
            return False
        if not self.session.ends_at_ceiling:
            return True
        return isinstance(outcome, Scored) and outcome.value(rule.metric, rule.soft_weight) < _SOLVED

    async def _finish(self, search: Search) -> Transition:
        session, state = search.session, search.state
        session.calls.enter(finish_scope(session.run), state.cost)
        began = session.clock()
        overlap = Overlap(session.monitor)
        testing, trying = (replace(search, session=replace(session, monitor=overlap.branch())) for _ in range(2))
        # Places are taken in the order in which they are asked for, so that all items of one text come before the next.
        slots = asyncio.Semaphore(session.workers)
        results, placebo = await side_by_side(_test(testing, slots), measure_placebo(trying, slots))
        tests = {version: result.evaluation for version, result in results.items()}
        outcome = run_outcome(session, state, tests)
        stop = ""
        if outcome is not RunOutcome.CEILING and state.step < session.steps:  # a ceiling would say the same
            stop = stop_at_once(session, state) or stop_before_step(session, state)
        words = outcome_words(session, state, outcome, f" after {state.step} {'step' if state.step == 1 else 'steps'}")
        finish = finish_sentence(session, state, outcome, tests)
        loading, cuts = loading_and_cuts(state)
        sentences = (loading, finish, stop, cuts, placebo.sentence)
        event = Event(
            kind=EventKind.RUN_FINISHED,
            run=session.run,
            skill=session.skill_path,
            epoch=state.epoch,
            step=state.step,
            title=words,
            why=" ".join(filter(None, sentences)),
            outcome=outcome,
            evaluations=tuple(result.evaluation.summary(version) for version, result in results.items()),
            placebo=placebo.counts,
            models=session.models,
            cost=session.cost_since(began),
        )
        files = [
            evidence_files.rollouts_files(f"test-{version_label(version)}", result.rollouts)
            for version, result in results.items()
        ]
        return Transition(event=event, evidence=evidence_files.merged([*files, placebo.files]))


async def _test(search: Search, slots: asyncio.Semaphore) -> dict[int, EvaluationResult]:
    """Measure the first, the best and the last version on the test split."""
    session, state = search.session, search.state
    if not session.settings.evaluation.eval_test:
        return {}
    versions = list(dict.fromkeys((0, state.best, state.version)))
    session.monitor.stage(Stage.TEST, len(versions) * len(session.task.items[Split.TEST]))

    async def one(version: int) -> EvaluationResult:
        return await evaluate(session, search.history.skill(version), Split.TEST, slots=slots)

    return dict(zip(versions, await ordered(one, versions, limit=len(versions)), strict=True))


def is_due(session: Session, state: RunState) -> bool:
    at_the_end = state.step > 0 and state.step % session.per_epoch == 0
    open_ = max(state.meta_epoch, state.slow_epoch) < state.epoch
    return session.settings.optimizer.use_meta_reflect and at_the_end and open_


def stop_at_once(session: Session, state: RunState) -> str:
    """Return why nothing more can be gained, so that the run ends now; empty if something can."""
    settings, evaluation = session.settings, state.evaluation(state.version)
    is_covered = evaluation.coverage >= settings.evaluation.min_coverage
    if session.ends_at_ceiling and is_covered and session.score(state, state.version) >= 1.0:
        version = version_label(state.version)
        return f"{version} has the full score on the selection split, so that no edit can score higher."
    return ""


def stop_before_step(session: Session, state: RunState) -> str:
    """Return why no further step is taken though there would be one; empty if one is taken."""
    patience = session.settings.train.patience
    count = state.step - state.versions[state.best].step
    if patience and count >= patience and state.step < session.steps:
        steps = "1 step" if count == 1 else f"{count} steps in a row"
        return f"{steps} made no new best version, and train.patience is {patience}."
    return ""


def check_loading(session: Session, state: RunState) -> None:
    """Raise a NotLoadedError before the first step of a run whose agent loaded the seed in no rollout."""
    evaluation = state.known_evaluation(0)
    loads = evaluation.loads if evaluation is not None else None
    if session.settings.train.require_loading and not state.step and loads is not None and loads.is_never:
        hint = "say in the skill's description when to use it, and begin another run"
        raise NotLoadedError(f"{loads.phrase} of the baseline, so no change to its text can be measured", hint=hint)


SAMPLES_APART = 1_000_000
"""So far apart are the draws of one placebo from those of another, and from those of real candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboResult:
    counts: Placebo | None = None  # how many there were and passed; absent if there were none
    sentence: str = ""  # what that means; empty if there were none
    files: evidence_files.Evidence


async def measure_placebo(search: Search, slots: asyncio.Semaphore | None = None) -> PlaceboResult:
    """Gate ``train.placebo`` no-op candidates as real ones, on fresh draws of every item, and discard them.

    ``slots`` are the places of rollouts in progress, where they are shared with others.
    """
    session, count = search.session, search.settings.train.placebo
    if not count:
        return PlaceboResult(files={})
    session.monitor.stage(Stage.PLACEBO, count * len(session.task.items[Split.SELECTION]))
    rows: list[dict[str, object]] = []
    for number in range(1, count + 1):
        candidate = no_op(search.skill, number)
        measurement = await measure(search, candidate.skill, sample=SAMPLES_APART * number, slots=slots)
        verdict, is_accepted = measurement.verdict, measurement.is_accepted
        row = {"number": number, "change": candidate.change, "decision": verdict.decision.value}
        numbers = {"accepted": is_accepted, "score": verdict.score, "current": verdict.current, "p": verdict.p}
        rows.append(row | numbers | {"fixed": list(measurement.fixed), "broken": list(measurement.broken)})
    counts = Placebo(n=count, accepted=sum(bool(row["accepted"]) for row in rows))
    candidates = "1 candidate that changes" if count == 1 else f"{count} candidates that change"
    sentence = f"Placebo: {counts.accepted} of {candidates} nothing passed the gate (rate {counts.rate:.2f})."
    if not any(row["fixed"] or row["broken"] for row in rows):
        sentence += " No outcome of an item differed: this target answers alike every time, without noise."
    return PlaceboResult(counts=counts, sentence=sentence, files={"placebo.json": evidence_files.json_file(rows)})


def run_outcome(session: Session, state: RunState, tests: Mapping[int, Evaluation]) -> RunOutcome:
    """Return how a run that has done all its steps ended, by ``tests``: version to its evaluation on the test split.

    A best version that scores higher than the seed on the selection split makes a run improved, unless the test split
    contradicts it (see :mod:`skillgit.domain.outcomes`). Without a test split nothing contradicts it.
    """
    first, best = _selection_scores(session, state)
    if state.best > 0 and (best > first or (session.rule.counts_tokens and best == first)):
        confirmation = _confirmation(session, state, tests)
        is_contradicted = confirmation is not None and confirmation.contradicts
        return RunOutcome.NOT_CONFIRMED if is_contradicted else RunOutcome.IMPROVED
    if session.score(state, 0) >= 1.0:
        return RunOutcome.CEILING
    if all(step.decision is None for step in state.memory if not step.by_hand):
        return RunOutcome.NO_CANDIDATES
    effect = detectable(session)
    if effect is None or effect > 1.0 - session.score(state, state.best):
        return RunOutcome.UNDERPOWERED
    return RunOutcome.NULL_RESULT


def is_chance(session: Session, state: RunState) -> bool:
    """Say whether the gain of the best version over the seed on the selection split may be chance."""
    first, best = _selection_scores(session, state)
    evaluation = state.known_evaluation(state.best)
    items = evaluation.scored if evaluation is not None else 0
    return best > first and may_be_chance(best - first, items, graded=session.rule.metric is not Metric.HARD)


def outcome_words(session: Session, state: RunState, outcome: RunOutcome, when: str = "") -> str:
    """Return the outcome, ``when`` it came, and that it may be chance where no test can tell."""
    is_qualified = outcome is RunOutcome.IMPROVED and is_chance(session, state)
    return f"{outcome.value}{when}{f', {CHANCE}' if is_qualified else ''}"


def _selection_scores(session: Session, state: RunState) -> tuple[float, float]:
    """Return the scores of seed and best version, over the items that have one under both, where these are here."""
    seed, best = recorded(session, 0), recorded(session, state.best)
    if seed is not None and best is not None:
        pairs = Pairs(best, seed, session.rule.metric, session.rule.soft_weight)
        if pairs.gains:
            return float(pairs.current), float(pairs.score)
    return session.score(state, 0), session.score(state, state.best)


def _confirmation(session: Session, state: RunState, tests: Mapping[int, Evaluation]) -> Confirmation | None:
    rule = session.rule
    if 0 not in tests or state.best not in tests:
        return None
    return confirmation(tests[0], tests[state.best], rule.metric, rule.soft_weight)


def detectable(session: Session) -> float | None:
    """Return the smallest gain that the paired test would find on the selection split; None if it would find none."""
    return minimum_detectable_effect(len(session.task.items[Split.SELECTION]), alpha=session.rule.alpha)


def finish_sentence(session: Session, state: RunState, outcome: RunOutcome, tests: Mapping[int, Evaluation]) -> str:
    """Return one or two sentences that explain the outcome; ``tests`` as for :func:`run_outcome`."""
    first, best = _selection_scores(session, state)
    items = len(session.task.items[Split.SELECTION])
    match outcome:
        case RunOutcome.IMPROVED | RunOutcome.NOT_CONFIRMED:
            gain = f"{version_label(state.best)} scores {best:.4f} on the selection split where the seed scores"
            gain = f"{gain} {first:.4f}"
            seed_tokens, best_tokens = (state.evaluation(version).tokens for version in (0, state.best))
            if seed_tokens is not None and best_tokens is not None:
                gain += f" ({best_tokens:,.1f} tokens an item, {seed_tokens:,.1f} with the seed)"
            sentence = _test_sentence(gain, _confirmation(session, state, tests), session.rule.alpha)
            chance = f" On {items} selection {'item' if items == 1 else 'items'} such a gain {CHANCE}."
            return sentence + (chance if is_chance(session, state) else "")
        case RunOutcome.CEILING:
            return "The seed solves every selection item, so that no edit can score higher."
        case RunOutcome.NO_CANDIDATES:
            return "No step produced a candidate to measure."
        case RunOutcome.UNDERPOWERED:
            effect = detectable(session)
            limit = "no gain" if effect is None else f"no gain under {effect:.4f}"
            rest = 1.0 - session.score(state, state.best)
            return (
                f"The seed scores {first:.4f}: what is left to gain is {rest:.4f}, and {items} selection items tell"
                f" {limit} from chance."
            )
        case RunOutcome.NULL_RESULT:
            return _null_result(state, first)
        case RunOutcome.PROVIDER_FAILURE | RunOutcome.BUDGET | RunOutcome.STOPPED:
            raise AssertionError(f"{outcome} ends a process, not a run")
        case _:
            assert_never(outcome)


def loading_and_cuts(state: RunState) -> tuple[str, str]:
    """Say in how many rollouts an agent loaded the best version, and how many replies behind its score were cut.

    Of the seed where that is not known of the best version; empty for a model that reads it as text, and if no reply
    was cut.
    """
    evaluations = {version: state.known_evaluation(version) for version in dict.fromkeys((state.best, 0))}
    by_label = [(version_label(version), each) for version, each in evaluations.items() if each is not None]
    loads = (f"{label}: {each.loads.sentence}." for label, each in by_label if each.loads is not None)
    cuts = (f"Of {label}, {cut_phrase(each.cut, each.scored)}." for label, each in by_label if each.cut)
    return next(loads, ""), next(cuts, "")


def _test_sentence(gain: str, test: Confirmation | None, alpha: float) -> str:
    if test is None:
        return f"{gain}. No test score was measured, so only the split that selected it vouches for the gain."
    scores = f"{test.best:.4f} on the test split where the seed scores {test.seed:.4f}"
    over = f"over {test.items} {'item' if test.items == 1 else 'items'}"
    if not test.contradicts:
        return f"{gain}, and {scores}, {over}."
    verdict = "a loss" if test.p_loss <= alpha else "chance"
    return (
        f"{gain}, but only {scores}, {over}: the test split does not confirm the gain. The paired test at alpha"
        f" {alpha:g} takes the fall for {verdict} (p {test.p_loss:.4f})."
    )


def _null_result(state: RunState, first: float) -> str:
    decisions = [step.decision for step in state.memory if step.decision is not None and not step.by_hand]
    count = decisions.count(Decision.INDECISIVE)
    summary = "1 candidate was measured" if len(decisions) == 1 else f"{len(decisions)} candidates were measured"
    if count:
        return (
            f"{summary}; too few items could be evaluated to decide on {count}, and no other scores above the"
            f" seed's {first:.4f}."
        )
    if any(
        step.decision is Decision.REJECT and step.verdict.score > first and not step.is_bound for step in state.memory
    ):
        return f"{summary} and the gate took none in place of the seed, which scores {first:.4f}."
    return f"{summary} and none scores above the seed's {first:.4f}."
