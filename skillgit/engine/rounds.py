"""Rounds: steps that are proposed from one version at once, and the race of their candidates.

A round is computed as a whole and reported step by step, an event each. It follows from the state in which it began and
from recorded calls alone, so that a run that was killed between two of its events computes the same round again. What a
step asks is charged to that step, even if others of the round wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from skillgit.domain.evaluation import Evaluation, Scored, Split, mean_tokens
from skillgit.domain.event import step_scope
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.statistics import sign_test
from skillgit.domain.trajectory import Rollout
from skillgit.engine.concurrency import ordered
from skillgit.engine.measure import (
    WAVE,
    EarlyStop,
    EvaluationResult,
    Refused,
    compare,
    evaluate_candidate,
    measured_base,
    order,
    partial_result,
)
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Monitor, Search, Session, SkillHistory, Stage, Transition, epoch_of
from skillgit.engine.step import Trial, settle, take_step, try_out
from skillgit.engine.strategy import Proposal, Strategy, TrainSearch

UNION_WAVE, RACE_WAVE = 32, 16
"""Items of a wave at least, of a union and of the first one of a race: a round waits for models a few times only."""
OUTRUN_LEVEL = 0.2
"""Level of the paired test by which a candidate leaves a race. It costs power and never a false accept."""


@dataclass(slots=True)
class Rounds:
    """Carries out steps; keeps the round in progress, so that it is computed once."""

    session: Session
    strategy: Strategy
    history: SkillHistory
    _key: tuple[int, int] = (0, 0)
    _trials: Mapping[int, Trial] | None = None

    def search(self, state: RunState, step: int) -> Search:
        """Return what ``step`` works with: of the version that the strategy names."""
        search = replace(Search.of(self.session, state, self.history), step=step)
        return replace(search, base=self.strategy.base(TrainSearch.within(search)))

    def steps(self, state: RunState, step: int) -> range:
        """Return the steps of the round of ``step``; it ends with the epoch, and a person's version ends it too."""
        session = self.session
        width = self.strategy.width(session.settings)
        begin = (epoch_of(step, session.per_epoch) - 1) * session.per_epoch + 1
        end = min(begin + session.per_epoch, session.steps + 1)
        begin += (step - begin) // width * width
        by_hand = (version.step + 1 for version in state.versions if version.by_hand and version.step >= begin)
        return range(max((begin, *by_hand)), min(begin + width, end))

    def is_open(self, state: RunState) -> bool:
        """Whether some steps of a round are reported and others are not."""
        return state.step < self.session.steps and self.steps(state, state.step + 1).start <= state.step

    async def transition(self, state: RunState, step: int, *, on_refusal: Refused | None = None) -> Transition:
        """Return what comes of ``step``, whose calls are charged to the event in progress."""
        began, steps = self.session.clock(), self.steps(state, step)
        if len(steps) == 1:
            return await take_step(self.search(state, step), self.strategy, began=began, on_refusal=on_refusal)
        before = state.before(steps.start)
        if self._trials is None or self._key != (steps.start, before.version):
            trials = await self._compute(self.search(before, steps.start), steps)
            self._key, self._trials = (steps.start, before.version), trials
        trial = self._trials[step]
        search, measurement = replace(trial.search, state=state), trial.measurement
        if measurement is not None:
            measurement = measurement.decided(search, outrun=trial.outrun)
        return settle(replace(trial, search=search, measurement=measurement), began=began)

    async def _compute(self, first: Search, steps: range) -> dict[int, Trial]:
        """Return, by step, what came of the proposals of a round."""
        session, searches = self.session, [replace(first, step=step) for step in steps]
        # The displays show one step at a time, the first one; rollouts of the others are reported all the same.
        unseen = replace(session, monitor=Monitor(saw=session.monitor.saw))
        views = [
            TrainSearch.within(search if search is searches[0] else replace(search, session=unseen))
            for search in searches
        ]

        async def propose(view: TrainSearch) -> Proposal:
            with session.calls.charged_to(step_scope(session.run, view.step)):
                return await self.strategy.propose(view)

        async def try_one(entry: tuple[Search, Proposal]) -> Trial:
            with session.calls.charged_to(step_scope(session.run, entry[0].step)):
                return await try_out(*entry)

        proposals = await ordered(propose, views, limit=len(views))
        with session.calls.charged_to(step_scope(session.run, steps[-1])):
            union = await self.strategy.unite(views[-1], proposals)
        trials = await ordered(try_one, list(zip(searches, proposals, strict=True)), limit=len(searches))
        before, files = await measured_base(first)
        by_step = {trial.search.step: trial for trial in trials}
        if union is not None:
            rivals = sum(trial.is_alive for trial in trials[:-1])
            joint = await self._measure_union(await try_one((searches[-1], union)), before, rivals=rivals)
            by_step[steps[-1]] = joint
            if joint.measurement is not None and joint.measurement.is_accepted:
                return {
                    step: _with_files(trial if trial is joint else replace(trial, taken_up_by=steps[-1]), files)
                    for step, trial in by_step.items()
                }
            trials = trials[:-1]
        alive = [trial for trial in trials if trial.is_alive]
        if alive:
            is_half_spent = union is not None and by_step[steps[-1]].measurement is not None
            share = len(alive) * (2 if is_half_spent else 1)
            by_step |= await Race(session, before, _spent(session.rule, share)).run(alive)
        return {step: _with_files(trial, files) for step, trial in by_step.items()}

    async def _measure_union(self, trial: Trial, before: Evaluation, *, rivals: int) -> Trial:
        """Measure the candidate that takes up all others, with half of the level if there are others to measure."""
        if not trial.is_alive:
            return trial
        session, rule = self.session, _spent(self.session.rule, 2 if rivals else 1)
        with session.calls.charged_to(step_scope(session.run, trial.search.step)):
            first = rule.first_pass(session.settings.gate.repeats)
            result = await evaluate_candidate(session, trial.candidate, before, rule=first, wave=UNION_WAVE)
            return replace(trial, measurement=await compare(trial.search, trial.candidate, result, before, rule=rule))


def _spent(rule: GateRule, share: int) -> GateRule:
    """Return ``rule`` with its part of the level; a policy that has none stays what it was.

    So all candidates of a round together are accepted by chance at most as often as one would be.
    """
    return replace(rule, alpha=rule.alpha / share) if rule.has_level else rule


def _with_files(trial: Trial, files: Mapping[str, bytes]) -> Trial:
    """Return a trial whose measurement has the evidence of the base, too."""
    if trial.measurement is None:
        return trial
    return replace(trial, measurement=replace(trial.measurement, evidence=dict(files) | trial.measurement.evidence))


class Race:
    """Candidates of one base on waves of the same items; those that fall behind leave it.

    The order of items is that of a single candidate, and each wave is twice the one before. After each wave a candidate
    leaves if its gate can only refuse it, or if the paired test at ``OUTRUN_LEVEL`` says that the one in the lead is
    better. Which items are rolled out follows from outcomes alone.
    """

    def __init__(self, session: Session, before: Evaluation, rule: GateRule) -> None:
        self._session, self._before, self._rule = session, before, rule
        self._first = rule.first_pass(session.settings.gate.repeats)
        self._rollouts: dict[int, dict[str, Rollout]] = {}
        self._looks: dict[int, EarlyStop] = {}
        self._outrun: dict[int, int] = {}

    async def run(self, trials: Sequence[Trial]) -> dict[int, Trial]:
        """Return, by step, what came of ``trials``; at most one of them is accepted."""
        session = self._session
        await self._evaluate({trial.search.step: trial.candidate for trial in trials})
        by_step: dict[int, Trial] = {}
        winner = 0
        for trial in sorted(trials, key=self._standing):
            step, outrun = trial.search.step, winner or self._outrun.get(trial.search.step, 0)
            result = self._result(step)
            with session.calls.charged_to(step_scope(session.run, step)):
                measurement = await compare(
                    trial.search, trial.candidate, result, self._before, rule=self._rule, outrun=outrun
                )
            by_step[step] = replace(trial, measurement=measurement, outrun=outrun)
            winner = step if measurement.is_accepted else winner
        return by_step

    def _standing(self, trial: Trial) -> tuple[bool, float, float, int]:
        """Sort those that went the whole way first, the best of them first; where tokens count, they break ties."""
        step = trial.search.step
        outcomes = [rollout.outcome for rollout in self._rollouts[step].values()]
        tokens = mean_tokens([outcome for outcome in outcomes if isinstance(outcome, Scored)]) or 0.0
        return len(self._rollouts[step]) < len(self._before.outcomes), -self._total(step), tokens, step

    async def _evaluate(self, skills: Mapping[int, Skill]) -> None:
        session, items = self._session, order(self._before, self._first)
        by_id = {item.id: item for item in session.task.items[Split.SELECTION]}
        self._rollouts = {step: {} for step in skills}
        self._looks = {step: EarlyStop(self._first, self._before, WAVE) for step in skills}
        slots, live = asyncio.Semaphore(session.workers), list(skills)
        session.monitor.stage(Stage.EVALUATE, len(items) * len(skills))

        async def one(entry: tuple[int, str]) -> None:
            step, item = entry
            with session.calls.charged_to(step_scope(session.run, step)):
                [rollout] = await roll_out(session, skills[step], [by_id[item]], "selection", slots=slots)
            self._rollouts[step][item] = rollout

        size = RACE_WAVE
        while items and live:
            wave, items, size = items[:size], items[size:], 2 * size
            await ordered(one, [(step, item) for step in live for item in wave], limit=len(live) * len(wave))
            for step in live:
                for item in wave:
                    self._looks[step].take(item, self._rollouts[step][item].outcome)
            if session.settings.gate.early_stop:
                live = self._still_running(live)

    def _still_running(self, live: Iterable[int]) -> list[int]:
        running = [step for step in live if self._looks[step].needed is None or self._is_through(step)]
        if not running:
            return []
        lead = min(running, key=lambda step: (-self._total(step), step))
        behind = {step: lead for step in running if step != lead and self._is_behind(step, lead)}
        self._outrun |= behind
        return [step for step in running if step not in behind]

    def _is_through(self, step: int) -> bool:
        return len(self._rollouts[step]) == len(self._before.outcomes)

    def _is_behind(self, step: int, lead: int) -> bool:
        ours, theirs = self._rollouts[step], self._rollouts[lead]
        gains = [self._value(theirs[item]) - self._value(ours[item]) for item in ours]
        return sign_test(sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)) <= OUTRUN_LEVEL

    def _total(self, step: int) -> float:
        return sum(map(self._value, self._rollouts[step].values()))

    def _value(self, rollout: Rollout) -> float:
        outcome = rollout.outcome
        return outcome.value(self._rule.metric, self._rule.soft_weight) if isinstance(outcome, Scored) else 0.0

    def _result(self, step: int) -> EvaluationResult:
        """Return the evaluation of a candidate as far as it went: to the end, or to where its decision was settled."""
        session, rollouts, look = self._session, self._rollouts[step], self._looks[step]
        is_stopped = session.settings.gate.early_stop and not self._is_through(step)
        is_settled = is_stopped and look.needed is not None
        return partial_result(session, rollouts, look.items[: look.needed] if is_settled else rollouts)
