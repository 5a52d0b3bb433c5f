"""The story of a directory: its steps and epochs as events, checked one after the other as those of any run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Metric
from skillgit.domain.event import RunStarted, version_of
from skillgit.domain.gate_decision import Decision, Flips, Verdict, decide, decision, flips
from skillgit.domain.run_state import advance, begin
from skillgit.domain.statistics import sign_test

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from skillgit.app.sources.skillopt.outcomes import ImportedScore
    from skillgit.domain.evaluation import Evaluation, EvaluationSummary
    from skillgit.domain.event import Event
    from skillgit.domain.gate_decision import GateRule
    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One event with all that is written of it.

    Attributes:
        skill: What the skill folder holds; absent where it stays, or follows from the event.
    """

    event: Event
    skill: Skill | None = None
    evidence: Mapping[str, bytes]
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedJudgement:
    """A decision as it is recorded here.

    Attributes:
        pairs: The items that differ, as far as both sides are known.
        shown: Whether the outcomes behind it add up to it, so that they can stand as its evidence.
        remark: In which way it is not what the directory says; empty if it is.
    """

    verdict: Verdict
    pairs: Flips
    shown: bool = True
    remark: str = ""


@dataclass(slots=True, kw_only=True)
class ImportStory:
    """The events so far.

    Attributes:
        outcomes: The outcomes behind each version's score, where they are known.
    """

    chapters: list[Chapter] = field(default_factory=list)
    skills: list[Skill] = field(default_factory=list)
    outcomes: list[Evaluation | None] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _state: RunState | None = None

    @property
    def state(self) -> RunState:
        """The state after the events so far."""
        if self._state is None:
            raise AssertionError("a story begins with the start of a run")
        return self._state

    @property
    def skill(self) -> Skill:
        return self.skills[-1]

    def tell(self, chapter: Chapter, outcomes: Evaluation | None = None) -> None:
        """Add ``chapter``; ``outcomes`` are those behind the score of the version that it makes.

        Raises:
            InvariantError: It contradicts what was told before.
        """
        event = chapter.event
        self._state = begin(event) if isinstance(event, RunStarted) else advance(self.state, event)
        time = max([chapter.time, *(earlier.time for earlier in self.chapters[-1:])])
        self.chapters.append(replace(chapter, time=time))
        if version_of(event) is not None:
            if chapter.skill is None:
                raise AssertionError("a version has a text")
            self.skills.append(chapter.skill)
            self.outcomes.append(outcomes)

    def remark(self, sentence: str) -> None:
        """Remember what is odd; an empty sentence says that nothing is."""
        if sentence and sentence not in self.remarks:
            self.remarks.append(sentence)

    def best_score(self, rule: GateRule) -> float:
        """Return the score of the best version."""
        return self.state.evaluation(self.state.best).score(rule.metric, rule.soft_weight)

    def judge(self, rule: GateRule, score: ImportedScore, *, is_accepted: bool, where: str) -> ImportedJudgement:
        """Return the gate's decision on a candidate of the current version.

        The numbers are those of the scores. A decision that the directory records and that does not follow from them
        is kept in the words that are left for it: accepted without a gate, or not decided.
        """
        base = self.outcomes[-1]
        if score.evaluation is not None and base is not None:
            best = None if self.state.best == self.state.version else self.outcomes[self.state.best]
            best_known = best if best is not None or self.state.best == self.state.version else self.best_score(rule)
            verdict = decide(rule, score.evaluation, base, best_known)
            pairs = flips(score.evaluation, base, rule.metric, rule.soft_weight)
        else:
            verdict, pairs = self._from_means(rule, score.summary), _NO_PAIRS
        if is_accepted == verdict.decision.accepted:
            return ImportedJudgement(verdict=verdict, pairs=pairs)
        message = f"{where} was {'accepted' if is_accepted else 'rejected'}, and its scores"
        if is_accepted:
            without_gate = replace(verdict, gated=False)
            consistent = replace(without_gate, decision=decision(without_gate))
            remark = f"{message} do not say so ({_numbers(verdict)}); it is kept as accepted without a gate"
            return ImportedJudgement(verdict=consistent, pairs=pairs, remark=remark)
        consistent = replace(verdict, decision=Decision.INDECISIVE)
        if verdict.decision is Decision.INDECISIVE:
            return ImportedJudgement(verdict=consistent, pairs=pairs)
        remark = f"{message} say otherwise ({_numbers(verdict)}); it is kept as not decided"
        return ImportedJudgement(verdict=consistent, pairs=pairs, shown=False, remark=remark)

    def _from_means(self, rule: GateRule, summary: EvaluationSummary) -> Verdict:
        """Return the verdict on a score without the items behind it; which of them differ is not known."""
        current = self.state.evaluation(self.state.version).score(rule.metric, rule.soft_weight)
        return self._verdict(rule, summary.score(rule.metric, rule.soft_weight), current)

    def taken_over(self, rule: GateRule, *, is_accepted: bool) -> Verdict:
        """Return the verdict on a text that nobody measured and that took over the score of the current version."""
        current = self.state.evaluation(self.state.version).score(rule.metric, rule.soft_weight)
        verdict = self._verdict(replace(rule, enabled=False), current, current)
        return verdict if is_accepted else replace(verdict, decision=Decision.INDECISIVE)

    def _verdict(self, rule: GateRule, score: float, current: float) -> Verdict:
        verdict = Verdict(
            decision=Decision.INDECISIVE,
            policy=rule.policy.name,
            metric=rule.metric,
            score=score,
            current=current,
            best=self.best_score(rule),
            fixed=0,
            broken=0,
            p=sign_test(0, 0) if rule.metric is Metric.HARD else 1.0,
            soft_weight=rule.soft_weight,
            gated=rule.enabled,
        )
        return replace(verdict, decision=decision(verdict))


_NO_PAIRS = Flips(fixed=(), broken=(), stable_pass=(), stable_fail=())


def _numbers(verdict: Verdict) -> str:
    return f"{verdict.score:.6g} against {verdict.current:.6g}"
