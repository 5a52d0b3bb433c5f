"""The run of a directory: its steps in order, and the events told so far, checked one after the other as in any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from skillgit.app.sources.skillopt.outcomes import ImportedScore, count, number
from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.evaluation import Evaluation, Metric
from skillgit.domain.event import Event, RunStarted, version_of
from skillgit.domain.gate_decision import Decision, Flips, GateRule, Verdict, decide, decision, flips
from skillgit.domain.run_state import RunState, advance, begin
from skillgit.domain.skill import Skill
from skillgit.domain.statistics import sign_test
from skillgit.errors import DataError

if TYPE_CHECKING:
    from skillgit.app.sources.skillopt.directory import Directory, Row

ACCEPTED = frozenset({"accept_new_best", "accept", "force_accept"})
SKIPPED = frozenset({"skip_no_patches", "skip_no_rewrite"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    number: int  # 1-based over the whole run
    epoch: int
    record: Row  # what history says of it; empty for a step that history passes over
    action: str  # what happened to it; empty for a step that history passes over

    @property
    def folder(self) -> str:
        return f"steps/step_{self.number:04d}"

    @property
    def accepted(self) -> bool:
        return self.action in ACCEPTED

    def score(self, key: str) -> float | None:
        value = number(self.record.get(key))
        if value is not None and not 0.0 <= value <= 1.0:
            problem = f"step {self.number} of history.json has {key} {value:g}"
            raise DataError(problem, hint="scores lie between 0 and 1; mend it")
        return value

    @property
    def own(self) -> Row:
        return own(self.record)


def own(record: Row) -> Row:
    """Return what skillgit told besides, where it wrote the directory."""
    fields = record.get("skillgit")
    return fields if isinstance(fields, dict) else {}


def read_steps(directory: Directory) -> tuple[list[Step], list[str]]:
    """Return the steps of a directory, numbered without gaps, and what is odd about them."""
    remarks: list[str] = []
    records_of = {
        step: record
        for step in directory.numbered("steps", "step_")
        if (record := directory.mapping(f"steps/step_{step:04d}/step_record.json"))
    }
    rows = directory.listing("history.json")
    if rows is None and records_of:
        remarks.append(f"{directory.fault('history.json')}; the steps are those of the step_record.json files")
    elif rows is None and (directory.path / "history.json").exists():
        problem = f"the steps of {directory.path} are not known: {directory.fault('history.json')}"
        raise DataError(problem, hint="copy the directory again, or resume the run where it was made")
    records = records_of if rows is None else _of_history(rows, records_of, remarks)
    return list(_numbered(records, remarks)), remarks


def _of_history(rows: Sequence[Row], records_of: Mapping[int, Row], remarks: list[str]) -> dict[int, Row]:
    records: dict[int, Row] = {}
    twice: set[int] = set()
    for row in rows:
        step = count(row.get("step"))
        if not step:
            remarks.append("history.json has a record without a step number, which is left out")
            continue
        if step in records:
            twice.add(step)
        records[step] = row
    if twice:
        numbers = ", ".join(map(str, sorted(twice)))
        remarks.append(
            f"history.json tells step {numbers} more than once, as a resumed run does; the last record is taken"
        )
    for step in sorted(records_of.keys() - records.keys()):
        remarks.append(f"history.json lacks step {step}; its step_record.json is taken")
        records[step] = records_of[step]
    return records


def _numbered(records: Mapping[int, Row], remarks: list[str]) -> Iterator[Step]:
    epoch = 1
    for number_ in range(1, max(records, default=0) + 1):
        record = records.get(number_, {})
        action = str(record.get("action") or "")
        epoch = max(epoch, count(record.get("epoch")) or epoch)
        if action not in ACCEPTED | SKIPPED | {"reject"}:
            reason = f"the unknown action '{action}'" if action else "no action" if record else "no record"
            remarks.append(f"step {number_} has {reason}; it is imported as a step of which nothing is known")
            action = ""
        yield Step(number=number_, epoch=epoch, record=record, action=action)


def cost(record: Row) -> Cost:
    """Return what a record says that it cost, its tokens by stage; its prices are not known."""
    tokens = record.get("tokens")
    rows = tokens.items() if isinstance(tokens, dict) else ()
    stages = {str(name): _amounts(row) for name, row in rows if isinstance(row, dict)}
    total = stages.pop("_total", Cost())
    parts = [
        CostPart(role="target" if name in {"rollout", "selection", "test"} else "optimizer", stage=name, cost=amounts)
        for name, amounts in stages.items()
    ]
    whole = sum(stages.values(), Cost()) if parts else total
    return Cost(
        calls=whole.calls,
        tokens_in=whole.tokens_in,
        tokens_out=whole.tokens_out,
        unpriced=whole.calls,
        seconds=number(record.get("wall_time_s")) or 0.0,
        parts=tuple(sorted(parts, key=lambda part: (part.role, part.stage))),
    )


def _amounts(row: Row) -> Cost:
    calls = count(row.get("calls")) or 0
    return Cost(
        calls=calls,
        tokens_in=count(row.get("prompt_tokens")) or 0,
        tokens_out=count(row.get("completion_tokens")) or 0,
        unpriced=calls,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    event: Event
    skill: Skill | None = None  # what the skill folder holds; absent where it stays, or follows from the event
    evidence: Mapping[str, bytes]
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedJudgement:
    """A decision as it is recorded here."""

    verdict: Verdict
    pairs: Flips  # the items that differ, as far as both sides are known
    is_consistent: bool = True  # whether the outcomes behind it add up to it, so that they can stand as its evidence
    remark: str = ""  # in which way it is not what the directory says; empty if it is


@dataclass(slots=True, kw_only=True)
class ImportStory:
    chapters: list[Chapter] = field(default_factory=list)
    skills: list[Skill] = field(default_factory=list)
    outcomes: list[Evaluation | None] = field(default_factory=list)  # those behind each version's score, if known
    remarks: list[str] = field(default_factory=list)
    _state: RunState | None = None

    @property
    def state(self) -> RunState:
        if self._state is None:
            raise AssertionError("a story begins with the start of a run")
        return self._state

    @property
    def skill(self) -> Skill:
        return self.skills[-1]

    def tell(self, chapter: Chapter, outcomes: Evaluation | None = None) -> None:
        """Add ``chapter``; ``outcomes`` are those behind the score of the version that it makes."""
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
        return self.state.evaluation(self.state.best).score(rule.metric, rule.soft_weight)

    def judge(self, rule: GateRule, score: ImportedScore, *, is_accepted: bool, where: str) -> ImportedJudgement:
        """Return the gate's decision on a candidate of the current version, by the numbers of the scores."""
        # A recorded decision that does not follow from them is kept as accepted without a gate, or as not decided.
        base = self.outcomes[-1]
        if score.evaluation is not None and base is not None:
            best = None if self.state.best == self.state.version else self.outcomes[self.state.best]
            best_known = best if best is not None or self.state.best == self.state.version else self.best_score(rule)
            verdict = decide(rule, score.evaluation, base, best_known)
            pairs = flips(score.evaluation, base, rule.metric, rule.soft_weight)
        else:
            verdict = self._from_means(rule, score.summary.score(rule.metric, rule.soft_weight))
            pairs = Flips(fixed=(), broken=(), stable_pass=(), stable_fail=())
        if is_accepted == verdict.decision.accepted:
            return ImportedJudgement(verdict=verdict, pairs=pairs)
        message = f"{where} was {'accepted' if is_accepted else 'rejected'}, and its scores"
        numbers = f"{verdict.score:.6g} against {verdict.current:.6g}"
        if is_accepted:
            without_gate = replace(verdict, gated=False)
            consistent = replace(without_gate, decision=decision(without_gate))
            remark = f"{message} do not say so ({numbers}); it is kept as accepted without a gate"
            return ImportedJudgement(verdict=consistent, pairs=pairs, remark=remark)
        consistent = replace(verdict, decision=Decision.INDECISIVE)
        if verdict.decision is Decision.INDECISIVE:
            return ImportedJudgement(verdict=consistent, pairs=pairs)
        remark = f"{message} say otherwise ({numbers}); it is kept as not decided"
        return ImportedJudgement(verdict=consistent, pairs=pairs, is_consistent=False, remark=remark)

    def taken_over(self, rule: GateRule, *, is_accepted: bool) -> Verdict:
        """Return the verdict on a text that nobody measured and that took over the score of the current version."""
        verdict = self._from_means(replace(rule, enabled=False), None)
        return verdict if is_accepted else replace(verdict, decision=Decision.INDECISIVE)

    def _from_means(self, rule: GateRule, score: float | None) -> Verdict:
        """Return the verdict on a score, None for that of the current version, without the items behind it."""
        current = self.state.evaluation(self.state.version).score(rule.metric, rule.soft_weight)
        verdict = Verdict(
            decision=Decision.INDECISIVE,
            policy=rule.policy.name,
            metric=rule.metric,
            score=current if score is None else score,
            current=current,
            best=self.best_score(rule),
            fixed=0,
            broken=0,
            p=sign_test(0, 0) if rule.metric is Metric.HARD else 1.0,
            soft_weight=rule.soft_weight,
            gated=rule.enabled,
        )
        return replace(verdict, decision=decision(verdict))
