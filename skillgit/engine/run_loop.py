"""The loop: from the state of a run to its next transition, until it is finished.

There is one code path. A run that starts, a run that goes on and a run that was killed and continues all ask the same
question: given these events, what is the next one?
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Loading, Scored, Split
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
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import check_files, check_seed
from skillgit.engine.concurrency import ended, ordered, side_by_side
from skillgit.engine.epoch_end import merge_slow_update, propose_slow_update, reflect_on_epoch
from skillgit.engine.evaluate import EvaluationResult, evaluate, evaluate_selection
from skillgit.engine.gating import lacks_score, measure_version
from skillgit.engine.minibatches import epoch_of
from skillgit.engine.rollout import roll_out
from skillgit.engine.rounds import Rounds
from skillgit.engine.run_end import (
    check_loading,
    cut_sentence,
    finish_sentence,
    loading_sentence,
    measure_placebo,
    outcome_words,
    run_outcome,
    stop_at_once,
    stop_before_step,
    stop_sentence,
)
from skillgit.engine.session import Monitor, Overlap, Session, SkillHistory, Stage, Transition, unanswered_file
from skillgit.errors import ConfigError, ServiceError

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

    def start(self, session: Session, skill: Skill, step: int, slots: asyncio.Semaphore) -> None:
        """Begin what ``step`` is certain to roll out with ``skill``; under a cap, nothing runs ahead."""
        items = session.strategy.certain(session, step)
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
    start: Start
    history: SkillHistory
    prepare: Callable[[], Awaitable[None]] | None = None
    prefetch: Prefetch = field(default_factory=Prefetch)
    rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", Rounds(self.session, self.history))

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
        if lacks_score(state):
            session.calls.enter(measure_scope(session.run, state.version), state.cost)
            return await measure_version(session, state, self.history)
        return await self._go_on(state) if state.outcome is None else None

    async def _go_on(self, state: RunState) -> Transition:
        session = self.session
        self._tell_place(state)
        if state.pending_merge is not None:
            return merge_slow_update(session, state, state.pending_merge, self.history)
        if self.rounds.is_open(state):
            return await self._step(state)
        if stop_at_once(session, state):
            return await self._finish(state)
        if is_due(session, state):
            session.calls.enter(meta_scope(session.run, state.epoch), state.cost)
            return await reflect_on_epoch(session, state, self.history.skill(state.version))
        if self._slow_update_is_due(state):
            session.calls.enter(slow_scope(session.run, state.epoch), state.cost)
            return await propose_slow_update(session, state, self.history)
        if state.step < session.steps and not stop_before_step(session, state):
            check_loading(session, state)
            return await self._step(state)
        return await self._finish(state)

    async def _step(self, state: RunState) -> Transition:
        session, step, skill = self.session, state.step + 1, self.history.skill(state.version)
        self.prefetch.give_way()
        session.calls.enter(step_scope(session.run, step), state.cost)

        def refused(slots: asyncio.Semaphore) -> None:
            self.prefetch.start(session, skill, step + 1, slots)

        is_known = self._step_follows_refusal(state, step)
        return await self.rounds.transition(state, step, on_refusal=refused if is_known else None)

    def _step_follows_refusal(self, state: RunState, step: int) -> bool:
        """Say whether a refusal of the candidate of ``step`` is sure to be followed by a step on the same version."""
        session = self.session
        after = replace(state, step=step, epoch=epoch_of(step, session.per_epoch))
        due = is_due(session, after) or self._slow_update_is_due(after)
        ends = step >= session.steps or stop_before_step(session, after)
        return not due and not ends and not session.settings.optimizer.salvage

    def _slow_update_is_due(self, state: RunState) -> bool:
        optimizer = self.session.settings.optimizer
        at_the_end = state.step > 0 and state.step % self.session.per_epoch == 0
        is_on = optimizer.use_slow_update or optimizer.use_meta_skill
        return is_on and at_the_end and state.slow_epoch < state.epoch >= FIRST_SLOW_EPOCH

    def _tell_place(self, state: RunState) -> None:
        session = self.session
        step = min(state.step + 1, session.steps)
        together = self.rounds.steps(state, step)
        session.monitor.place(
            last=together[-1] if len(together) > 1 else 0,
            epoch=epoch_of(step, session.per_epoch),
            epochs=session.settings.train.num_epochs,
            step=step,
            steps=session.steps,
            score=session.score(state, state.version),
            best=session.score(state, state.best),
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
                self.prefetch.start(session, start.skill, 1, slots)

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

    async def _finish(self, state: RunState) -> Transition:
        session = self.session
        session.calls.enter(finish_scope(session.run), state.cost)
        began = session.clock()
        overlap = Overlap(session.monitor)
        testing, trying = (replace(session, monitor=overlap.branch()) for _ in range(2))
        # Places are taken in the order in which they are asked for, so that all items of one text come before the next.
        slots = asyncio.Semaphore(session.workers)
        results, placebo = await side_by_side(
            self._test(testing, state, slots), measure_placebo(trying, state, self.history.skill(state.version), slots)
        )
        tests = {version: result.evaluation for version, result in results.items()}
        outcome = run_outcome(session, state, tests)
        stop = stop_sentence(session, state) if outcome is not RunOutcome.CEILING else ""  # it would say the same
        words = outcome_words(session, state, outcome)
        finish = finish_sentence(session, state, outcome, tests)
        sentences = (loading_sentence(state), finish, stop, cut_sentence(state), placebo.sentence)
        event = Event(
            kind=EventKind.RUN_FINISHED,
            run=session.run,
            skill=session.skill_path,
            epoch=state.epoch,
            step=state.step,
            title=f"{words} after {state.step} {'step' if state.step == 1 else 'steps'}",
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

    async def _test(self, session: Session, state: RunState, slots: asyncio.Semaphore) -> dict[int, EvaluationResult]:
        if not session.settings.evaluation.eval_test:
            return {}
        versions = list(dict.fromkeys((0, state.best, state.version)))
        session.monitor.stage(Stage.TEST, len(versions) * len(session.task.items[Split.TEST]))

        async def one(version: int) -> EvaluationResult:
            return await evaluate(session, self.history.skill(version), Split.TEST, slots=slots)

        return dict(zip(versions, await ordered(one, versions, limit=len(versions)), strict=True))


def is_due(session: Session, state: RunState) -> bool:
    at_the_end = state.step > 0 and state.step % session.per_epoch == 0
    open_ = max(state.meta_epoch, state.slow_epoch) < state.epoch
    return session.settings.optimizer.use_meta_reflect and at_the_end and open_
