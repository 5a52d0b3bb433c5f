"""``skillgit ablate``: what each rule of a version is worth, measured by leaving it out and noted on its commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillgit.app.interventions.intervention import open_measuring
from skillgit.app.measure.requests import AblateRequest
from skillgit.app.recorded.evaluation_notes import Note, record
from skillgit.app.recorded.rule_notes import KIND, noted_rules
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.recorded_setup import differences
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.outcomes import Pairs
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.skill_rules import Region, Rule, Worth, rules, without, worth
from skillgit.domain.statistics import sign_test
from skillgit.errors import ExitCode, NotFoundError
from skillgit.index import queries, version_queries
from skillgit.index.rows import LogRow
from skillgit.store import notes
from skillgit.store.diff import Blamer
from skillgit.store.history_reader import skill_at

_NOTED = ("rule", "text", "first", "last", "score", "delta", "fixed", "broken", "p", "worth")
_ORDER = ("works", "mixed", "harmful", "dead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What leaving one rule out changes."""

    rule: int  # the rule's number in `SKILL.md`, from 1
    text: str
    first: int  # its first line, from 1
    last: int
    region: Region
    score: float  # what the skill scores without it, under the metric of the gate
    delta: float  # the score's distance from that of the whole skill, over the items that have a score both times
    fixed: tuple[str, ...]  # items that score higher without it
    broken: tuple[str, ...]  # items that score lower without it
    p: float  # one-sided exact sign test: the chance of so many broken if every change of an item were a coin flip
    worth: Worth
    noted: bool = False

    @property
    def removable(self) -> bool:
        """Whether the skill loses nothing without it, and it belongs to the steps."""
        return self.region is Region.BODY and not self.broken and self.delta >= 0


def _ablation(number: int, rules: Sequence[Rule], delta: float, broken: tuple[str, ...], **values: Any) -> Ablation:  # noqa: ANN401 - the other fields
    """Return what leaving out the rule with that number, counted from 1, changes."""
    rule = rules[number - 1]
    return Ablation(
        rule=number,
        text=rule.text,
        first=rule.first,
        last=rule.last,
        region=rule.region,
        delta=delta,
        broken=broken,
        worth=worth(delta, len(broken)),
        **values,
    )


@dataclass(frozen=True, slots=True)
class Ablating:
    """A skill whose rules are left out."""

    measuring: Measurement
    commit: str
    skill: Skill
    split: Split
    name: str

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of ``SKILL.md``."""
        return rules(self.skill.document)

    async def whole(self) -> Evaluation:
        return await self.measuring.measure(self.name, self.skill, self.split)

    def without(self, number: int) -> Skill:
        """Return the skill without its rule ``number``, counted from 1."""
        return self.skill.with_text(DOCUMENT, without(self.skill.document, [self.rules[number - 1]]))

    async def leave_out(self, number: int, base: Evaluation) -> Ablation:
        """Measure the skill without its rule ``number``, counted from 1."""
        evaluation = await self.measuring.measure(f"without rule {number}", self.without(number), self.split)
        gate = self.measuring.setup.rule
        pairs = Pairs(evaluation, base, gate.metric, gate.soft_weight)
        score, delta = self.measuring.value(evaluation), float(pairs.score - pairs.current)
        p = sign_test(len(pairs.broken), len(pairs.fixed))
        return _ablation(number, self.rules, delta, pairs.broken, score=score, fixed=pairs.fixed, p=p)

    def known(self) -> dict[int, Ablation]:
        """Return what notes on the commit say of its rules, measured under the same conditions."""
        conditions, rules = self._conditions().items(), self.rules
        return {
            row.number: _ablation(
                row.number,
                rules,
                row.delta,
                row.broken_items,
                score=row.score,
                fixed=row.fixed_items,
                p=row.p,
                noted=True,
            )
            for note in notes.read(self.measuring.workspace.repo, self.commit)
            if all(note.get(name) == value for name, value in conditions)
            for row in noted_rules(note)
            if 1 <= row.number <= len(rules) and row.text == rules[row.number - 1].text
        }

    def note(self, ablations: Collection[Ablation]) -> int:
        """Leave one note with those of ``ablations`` that no note has yet, and return how many these are."""
        before, time = self.known(), self.measuring.context.clock()
        fresh = [ablation for ablation in ablations if before.get(ablation.rule) != replace(ablation, noted=True)]
        if fresh:
            stamp = time.replace(microsecond=0).isoformat().replace("+00:00", "Z")
            rows = [_as_row(ablation) for ablation in fresh]
            note = {"kind": KIND, **self._conditions(), "rules": rows, "time": stamp}
            record(self.measuring.workspace, {self.commit: [note]}, time)
        return len(fresh)

    def _conditions(self) -> Note:
        setup = self.measuring.setup
        return {
            "split": self.split.value,
            "item_set": setup.task.item_set(self.split),
            "n": len(setup.task.items[self.split]),
            "seed": setup.config.values.train.seed,
            "metric": setup.rule.metric.value,
            "target": self.measuring.target,
            "environment": setup.task.digest,
            "setup": setup.digest,
        }


def _as_row(ablation: Ablation) -> Note:
    fields = {name: getattr(ablation, name) for name in _NOTED}
    return fields | {"fixed": list(ablation.fixed), "broken": list(ablation.broken), "worth": ablation.worth.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblatedRule:
    ablation: Ablation
    since: str  # the event that brought its first line; `seed` for what was there before the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablated:
    """The rules of a skill, the most valuable first and the dead ones last."""

    basis: ResultBasis
    run: str
    name: str
    short: str  # the name without its run
    commit: str
    is_head: bool  # whether it is the newest version of its run
    split: str
    n: int
    metric: str
    score: float
    rules: tuple[AblatedRule, ...]
    every: int
    noted: int = 0
    cost: Cost  # what it cost; what was measured before cost nothing
    warnings: tuple[str, ...]  # what the user should know of the numbers
    exit_code: ExitCode


def ablate(workspace: Workspace, request: AblateRequest, watcher: EvalWatcher) -> Ablated | Plan:
    """Leave each rule out and measure what changes; what is complete when the work ends early is noted all the same."""
    row = event_in(workspace, request.revision)
    with open_measuring(workspace, row.run, request, watcher, command="ablate") as measuring:
        skill = skill_at(workspace.repo, row.commit, measuring.session.skill_path)
        work = Ablating(measuring, row.commit, skill, Split(request.split), row.label)
        items, every = measuring.setup.task.items[work.split], len(work.rules)
        if request.rule is None and not every:
            raise NotFoundError(f"{work.name} has no rules", hint="rules are list items and sentences of SKILL.md")
        if request.rule is not None and request.rule > every:
            hint = f"it has rules 1 to {every}: skillgit ablate"
            raise NotFoundError(f"{work.name} has no rule {request.rule}", hint=hint)
        numbers = range(1, every + 1) if request.rule is None else (request.rule,)
        planner = measuring.planner()
        planner.roll_out("whole", [(skill, items, 0)])
        planner.roll_out("rules", [(work.without(number), items, 0) for number in numbers])
        facts = {
            "skill": f"{row.run}/{work.name}",
            "rules": f"{len(numbers)} of {every}",
            "items": f"{len(items)} {work.split}",
        }
        plan = planner.plan("ablate", facts, caps=request.caps)
        ablations: list[Ablation] = []
        note_count = 0

        async def measure() -> tuple[Evaluation, Cost]:
            measuring.expect(1 + len(numbers), work.split)
            base = await work.whole()
            for number in numbers:
                ablations.append(await work.leave_out(number, base))  # noqa: PERF401 - what is complete counts, even if the rest fails
            return base, measuring.cost()

        def note() -> None:
            nonlocal note_count
            note_count = work.note(ablations) if request.note else 0

        result = measuring.carry_out(plan, measure(), note=note)
        if isinstance(result, Plan):
            return result
        base, cost = result
        since, reuse = _origins(measuring, row), measuring.reused()
        ablated_rules = []
        for ablation in ablations:
            names = map(since.get, range(ablation.first, ablation.last + 1))
            ablated_rules.append(AblatedRule(ablation=ablation, since=next(filter(None, names), "")))
        lack = measuring.shortage(work.name, base)
        return Ablated(
            basis=measuring.basis,
            run=row.run,
            name=str(row.address),
            short=work.name,
            commit=row.commit,
            is_head=row.is_head,
            split=work.split.value,
            n=len(base.outcomes),
            metric=measuring.setup.rule.metric.value,
            score=measuring.value(base),
            rules=tuple(sorted(ablated_rules, key=_rank)),
            every=every,
            noted=note_count,
            cost=cost,
            warnings=(*differences(workspace, row.run, measuring.setup), *reuse, *filter(None, [lack])),
            exit_code=ExitCode.SERVICE if lack else ExitCode.OK,
        )


def _rank(rule: AblatedRule) -> tuple[int, float, int]:
    ablation = rule.ablation
    return _ORDER.index(ablation.worth), ablation.delta, ablation.rule


def _origins(measuring: Measurement, row: LogRow) -> dict[int, str]:
    """Return line number of ``SKILL.md`` to the name of the event that brought the line."""
    workspace, names = measuring.workspace, dict[str, str]()
    commits: dict[int, str] = {}
    blamer = Blamer(workspace.repo, version_queries.sources(workspace.index))
    for line in blamer.lines(row.commit, f"{measuring.session.skill_path}/{DOCUMENT}"):
        if line.commit not in names:
            bringer = queries.row_of_commit(workspace.index, line.commit)
            names[line.commit] = "seed" if bringer is None else bringer.address.seen_from(row.run)
        commits[line.line] = names[line.commit]
    return commits
