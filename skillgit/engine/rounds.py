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
from skillgit.engine.evaluate import WAVE, EarlyStop, EvaluationResult, Refused, evaluate_candidate, order
from skillgit.engine.gating import MeasuredCandidate, confirmed, judged, measured_base
from skillgit.engine.minibatches import epoch_of
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Monitor, Session, SkillHistory, Stage, Transition
from skillgit.engine.step import Trial, gated, settled, skipped, tried
from skillgit.engine.strategy import Proposal, Search, train_only

UNION_WAVE, RACE_WAVE = 32, 16
"""Items of a wave at least, of a union and of the first one of a race: a round waits for models a few times only."""
OUTRUN_LEVEL = 0.2
"""Level of the paired test by which a candidate leaves a race. It costs power and never a false accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """What came of a trial in its round: nothing, a measurement, or that another step took it up."""

    trial: Trial
    measurement: MeasuredCandidate | None = None
    outrun: int = 0  # the step whose candidate was better; 0 for none
    left_to: int = 0  # the step whose candidate includes this one; 0 for none


@dataclass(slots=True)
class Rounds:
    """Carries out steps; keeps the round in progress, so that it is computed once."""

    session: Session
    history: SkillHistory
    _key: tuple[int, int] = (0, 0)
    _finishes: Mapping[int, Finish] | None = None

    def search(self, state: RunState, step: int) -> Search:
        """Return what the strategy works with in ``step``, on the current version; of the items, the train split."""
        return Search(
            session=train_only(self.session),
            state=state,
            history=self.history,
            outcomes=self.session.outcomes,
            step=step,
            base=state.version,
        )

    def steps(self, state: RunState, step: int) -> range:
        """Return the steps of the round of ``step``; it ends with the epoch, and a person's version ends it too."""
        session = self.session
        width = session.strategy.width(session.settings)
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
        session, began, steps = self.session, self.session.clock(), self.steps(state, step)
        if len(steps) == 1:
            search = _based(self.search(state, step), session)
            proposal = await session.strategy.propose(search)
            return await settled(session, state, search, proposal, began=began, on_refusal=on_refusal)
        before = state.before(steps.start)
        if self._finishes is None or self._key != (steps.start, before.version):
            self._key, self._finishes = (steps.start, before.version), await self._computed(before, steps)
        finish = self._finishes[step]
        if finish.measurement is None:
            return skipped(session, finish.trial, began=began, left_to=finish.left_to)
        judgement = judged(session, state, finish.measurement, outrun=finish.outrun)
        return gated(session, state, finish.trial, judgement, began=began)

    async def _computed(self, state: RunState, steps: range) -> dict[int, Finish]:
        session = self.session
        base = _based(self.search(state, steps.start), session)
        searches = [replace(_quietly(base, is_first=step == steps.start), step=step) for step in steps]
        proposals = await ordered(self._proposed, searches, limit=len(searches))
        with session.calls.charged_to(step_scope(session.run, steps[-1])):
            union = await session.strategy.unite(searches[-1], proposals)
        trials = await ordered(self._tried, list(zip(searches, proposals, strict=True)), limit=len(searches))
        before, files = await measured_base(session, base.skill, base.base)
        finishes = {trial.search.step: Finish(trial=trial) for trial in trials}
        if union is not None:
            rivals = sum(trial.is_alive for trial in trials[:-1])
            finishes[steps[-1]] = union_finish = await self._union(searches[-1], union, before, rivals=rivals)
            measurement = union_finish.measurement
            if measurement is not None and judged(session, state, measurement).verdict.decision.accepted:
                skips = {step: replace(finish, left_to=steps[-1]) for step, finish in finishes.items()}
                return skips | {steps[-1]: _with_files(union_finish, files)}
            trials = trials[:-1]
        alive = [trial for trial in trials if trial.is_alive]
        if alive:
            is_half_spent = union is not None and finishes[steps[-1]].measurement is not None
            share = len(alive) * (2 if is_half_spent else 1)
            race = Race(session, before, _spent(session.rule, share))
            finishes |= await race.run(state, alive)
        return {step: _with_files(finish, files) for step, finish in finishes.items()}

    async def _proposed(self, search: Search) -> Proposal:
        with self.session.calls.charged_to(step_scope(self.session.run, search.step)):
            return await self.session.strategy.propose(search)

    async def _tried(self, entry: tuple[Search, Proposal]) -> Trial:
        search, proposal = entry
        with self.session.calls.charged_to(step_scope(self.session.run, search.step)):
            return await tried(self.session, search, proposal)

    async def _union(self, search: Search, union: Proposal, before: Evaluation, *, rivals: int) -> Finish:
        """Measure the candidate that takes up all others, with half of the level if there are others to measure."""
        session = self.session
        trial = await self._tried((search, union))
        if not trial.is_alive:
            return Finish(trial=trial)
        rule, skill = _spent(session.rule, 2 if rivals else 1), union.application.skill
        repeats = session.settings.gate.repeats
        with session.calls.charged_to(step_scope(session.run, search.step)):
            first = rule.first_pass(repeats)
            result = await evaluate_candidate(session, skill, before, rule=first, wave=UNION_WAVE)
            measurement = await confirmed(
                session, search.skill, skill, result, before, rule=rule, base=search.base, repeats=repeats
            )
        return Finish(trial=trial, measurement=measurement)


def _based(search: Search, session: Session) -> Search:
    return replace(search, base=session.strategy.base(search))


def _quietly(search: Search, *, is_first: bool) -> Search:
    """Return ``search`` without displays, which show one step at a time; rollouts are reported all the same."""
    monitor = search.session.monitor
    return search if is_first else replace(search, session=replace(search.session, monitor=Monitor(saw=monitor.saw)))


def _spent(rule: GateRule, share: int) -> GateRule:
    """Return ``rule`` with its part of the level; a policy that has none stays what it was.

    So all candidates of a round together are accepted by chance at most as often as one would be.
    """
    return replace(rule, alpha=rule.alpha / share) if rule.has_level else rule


def _with_files(finish: Finish, files: Mapping[str, bytes]) -> Finish:
    if finish.measurement is None:
        return finish
    return replace(finish, measurement=replace(finish.measurement, evidence=dict(files) | finish.measurement.evidence))


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

    async def run(self, state: RunState, trials: Sequence[Trial]) -> dict[int, Finish]:
        """Return, by step, what came of ``trials``; at most one of them is accepted."""
        session = self._session
        await self._evaluate({trial.search.step: trial.proposal.application.skill for trial in trials})
        finishes: dict[int, Finish] = {}
        winner = 0
        for trial in sorted(trials, key=self._standing):
            step, search, skill = trial.search.step, trial.search, trial.proposal.application.skill
            result = self._result(step)
            with session.calls.charged_to(step_scope(session.run, step)):
                rule = self._rule
                outrun = winner or self._outrun.get(step, 0)
                repeats = 0 if outrun else session.settings.gate.repeats  # what is refused anyhow needs none
                measurement = await confirmed(
                    session, search.skill, skill, result, self._before, rule=rule, base=search.base, repeats=repeats
                )
            finishes[step] = Finish(trial=trial, measurement=measurement, outrun=outrun)
            if judged(session, state, measurement, outrun=outrun).verdict.decision.accepted:
                winner = step
        return finishes

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
        items = session.task.items[Split.SELECTION]
        is_stopped = session.settings.gate.early_stop and not self._is_through(step)
        item_ids = look.items[: look.needed] if is_stopped and look.needed is not None else list(rollouts)
        rollouts_used = tuple(rollouts[item.id] for item in items if item.id in rollouts and item.id in set(item_ids))
        evaluation = Evaluation(
            split=Split.SELECTION,
            item_set=session.task.item_set(Split.SELECTION),
            outcomes={rollout.item.id: rollout.outcome for rollout in rollouts_used},
            seed=session.seed,
            unneeded=tuple(item.id for item in items if item.id not in set(item_ids)),
            spare=len(rollouts) - len(rollouts_used),
        )
        return EvaluationResult(evaluation=evaluation, rollouts=rollouts_used)
