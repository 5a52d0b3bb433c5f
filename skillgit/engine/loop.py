"""The loop: from the state of a run to its next transition, until it is finished.

There is one code path. A run that starts, a run that goes on and a run that was killed and continues all ask the same
question: given these events, what is the next one?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.event import Cost, RunFinished, RunStarted
from skillgit.engine import artifacts
from skillgit.engine.batches import epoch_of
from skillgit.engine.concurrency import ordered
from skillgit.engine.evaluate import evaluate, evaluate_selection
from skillgit.engine.guards import stop_at_once, stop_before_step, stop_sentence
from skillgit.engine.meta_reflect import is_due, reflect_on_epoch
from skillgit.engine.outcome import finish_sentence, run_outcome
from skillgit.engine.placebo import measure_placebo
from skillgit.engine.progress import Stage
from skillgit.engine.slow import merge_slow_update, propose_slow_update
from skillgit.engine.step import models, run_step
from skillgit.engine.transition import Transition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.evaluate import Measured
    from skillgit.engine.session import Session
    from skillgit.engine.transition import SkillHistory

FIRST_SLOW_EPOCH = 2
"""The slow update compares two epochs, so that there is none after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a run starts from.

    Attributes:
        skill: The seed.
        config: Digest of the resolved configuration.
        splits: Digest of all items.
        evidence: The files behind the digests.
        fork_of: ``<run>/v<N>`` for a fork.
    """

    skill: Skill
    config: str
    splits: str
    evidence: Mapping[str, bytes]
    fork_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """The method, ready to compute transitions of one run.

    Attributes:
        session: What the stages work with.
        start: What the run starts from.
        history: Where skills of earlier versions are read.
    """

    session: Session
    start: Start
    history: SkillHistory

    async def next(self, state: RunState | None) -> Transition | None:
        """Return the transition that follows ``state``; None once the run is finished.

        Raises:
            BudgetError: A cap was reached; nothing is lost, the run can go on with a larger one.
            ProviderFailureError: A provider failed systematically.
        """
        session = self.session
        if state is None:
            session.calls.enter(f"{session.run}/start", Cost())
            return await self._begin()
        if state.outcome is not None:
            return None
        self._tell_place(state)
        if state.pending_merge is not None:
            return merge_slow_update(session, state, state.pending_merge, self.history)
        if stop_at_once(session, state):
            return await self._finish(state)
        if is_due(session, state):
            session.calls.enter(f"{session.run}/meta-{state.epoch}", state.cost)
            return await reflect_on_epoch(session, state, self.history.skill(state.version))
        if self._slow_update_is_due(state):
            session.calls.enter(f"{session.run}/slow-{state.epoch}", state.cost)
            return await propose_slow_update(session, state, self.history)
        if state.step < session.steps and not stop_before_step(session, state):
            step = state.step + 1
            session.calls.enter(f"{session.run}/step-{step}", state.cost)
            return await run_step(session, state, self.history.skill(state.version), step)
        return await self._finish(state)

    def _slow_update_is_due(self, state: RunState) -> bool:
        optimizer = self.session.settings.optimizer
        at_the_end = state.step > 0 and state.step % self.session.per_epoch == 0
        wanted = optimizer.use_slow_update or optimizer.use_meta_skill
        return wanted and at_the_end and state.slow_epoch < state.epoch >= FIRST_SLOW_EPOCH

    def _tell_place(self, state: RunState) -> None:
        session = self.session
        step = min(state.step + 1, session.steps)
        session.monitor.place(
            epoch=epoch_of(step, session.per_epoch),
            epochs=session.settings.train.num_epochs,
            step=step,
            steps=session.steps,
            score=session.score(state, state.version),
            best=session.score(state, state.best),
        )

    async def _begin(self) -> Transition:
        session, start = self.session, self.start
        epochs = session.settings.train.num_epochs
        session.monitor.place(epoch=0, epochs=epochs, step=0, steps=session.steps, score=None, best=None)
        began = session.clock()
        measured = await evaluate_selection(session, start.skill, Stage.BASELINE)
        summary = measured.evaluation.summary()
        event = RunStarted(
            run=session.run,
            skill=session.skill_path,
            title=f"train {start.skill.name} on {session.task.environment.info.name}",
            why=f"{summary.scored} of {summary.n} selection items have a score with the seed skill.",
            config=start.config,
            splits=start.splits,
            environment=session.task.environment.digest,
            models=models(session),
            evaluation=summary,
            fork_of=start.fork_of,
            cost=session.cost_since(began),
        )
        files = artifacts.rollouts_files("selection", measured.rollouts)
        return Transition(event=event, skill=start.skill, evidence=artifacts.merged([start.evidence, files]))

    async def _finish(self, state: RunState) -> Transition:
        session = self.session
        session.calls.enter(f"{session.run}/finish", state.cost)
        began = session.clock()
        measured = await self._test(state) if session.settings.evaluation.eval_test else {}
        placebo = await measure_placebo(session, state, self.history.skill(state.version))
        outcome = run_outcome(session, state)
        told = (finish_sentence(session, state, outcome), stop_sentence(session, state), placebo.sentence)
        event = RunFinished(
            run=session.run,
            skill=session.skill_path,
            epoch=state.epoch,
            step=state.step,
            title=f"{outcome.value} after {state.step} steps",
            why=" ".join(filter(None, told)),
            outcome=outcome,
            evaluations=tuple(result.evaluation.summary(version) for version, result in measured.items()),
            placebo=placebo.counts,
            models=models(session),
            cost=session.cost_since(began),
        )
        files = [artifacts.rollouts_files(f"test-v{version}", result.rollouts) for version, result in measured.items()]
        return Transition(event=event, evidence=artifacts.merged([*files, placebo.files]))

    async def _test(self, state: RunState) -> dict[int, Measured]:
        """Measure the first, the best and the last version on the test split."""
        session = self.session
        versions = list(dict.fromkeys((0, state.best, state.version)))
        session.monitor.stage(Stage.TEST, len(versions) * len(session.task.items[Split.TEST]))

        async def one(version: int) -> Measured:
            return await evaluate(session, self.history.skill(version), Split.TEST)

        return dict(zip(versions, await ordered(one, versions, limit=len(versions)), strict=True))
