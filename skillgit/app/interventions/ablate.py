"""``skillgit ablate``: what each rule of a version is worth, measured by leaving it out and noted on its commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from skillgit.app.interventions.intervention import open_measuring
from skillgit.app.recorded.evaluation_notes import Note, record
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.run_setup import differences
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import open_workspace
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

KIND = "ablation"
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
        rule = self.rules[number - 1]
        evaluation = await self.measuring.measure(f"without rule {number}", self.without(number), self.split)
        gate = self.measuring.session.rule
        pairs = Pairs(evaluation, base, gate.metric, gate.soft_weight)
        delta = float(pairs.score - pairs.current)
        return Ablation(
            rule=number,
            text=rule.text,
            first=rule.first,
            last=rule.last,
            region=rule.region,
            score=self.measuring.value(evaluation),
            delta=delta,
            fixed=pairs.fixed,
            broken=pairs.broken,
            p=sign_test(len(pairs.broken), len(pairs.fixed)),
            worth=worth(delta, len(pairs.broken)),
        )

    def known(self) -> dict[int, Ablation]:
        """Return what notes on the commit tell of its rules, measured under the same conditions."""
        conditions, rules = self._conditions(), self.rules
        ablations: dict[int, Ablation] = {}
        for note in notes.read(self.measuring.workspace.repo, self.commit):
            if note.get("kind") != KIND or any(note.get(name) != value for name, value in conditions.items()):
                continue
            rows = note.get("rules")
            for row in rows if isinstance(rows, list) else ():
                ablation = _from_row(row, rules) if isinstance(row, dict) else None
                if ablation is not None:
                    ablations[ablation.rule] = ablation
        return ablations

    def note(self, ablations: Collection[Ablation]) -> int:
        """Leave one note with those of ``ablations`` that no note tells yet, and return how many these are."""
        noted_ablations, time = self.known(), self.measuring.session.clock()
        fresh = [
            ablation for ablation in ablations if noted_ablations.get(ablation.rule) != replace(ablation, noted=True)
        ]
        if not fresh:
            return 0
        stamp = time.replace(microsecond=0).isoformat().replace("+00:00", "Z")
        note = {"kind": KIND} | self._conditions() | {"rules": [_as_row(ablation) for ablation in fresh], "time": stamp}
        record(self.measuring.workspace, {self.commit: [note]}, time)
        return len(fresh)

    def _conditions(self) -> Note:
        session = self.measuring.session
        return {
            "split": self.split.value,
            "item_set": session.task.item_set(self.split),
            "n": len(session.task.items[self.split]),
            "seed": session.seed,
            "metric": session.rule.metric.value,
            "target": session.calls.model_name("target"),
            "environment": session.task.digest,
            "setup": session.setup,
        }


def _as_row(ablation: Ablation) -> Note:
    fields = {name: getattr(ablation, name) for name in _NOTED}
    return fields | {"fixed": list(ablation.fixed), "broken": list(ablation.broken), "worth": ablation.worth.value}


def _from_row(row: Mapping[str, object], rules: Sequence[Rule]) -> Ablation | None:
    """Return the ablation that a note's row tells; None if it is damaged or tells of another text."""
    number = row.get("rule")
    numbers = [row.get(name) for name in ("score", "delta", "p")]
    items = [row.get(name) for name in ("fixed", "broken")]
    if type(number) is not int or not 1 <= number <= len(rules):
        return None
    if not all(type(value) in {int, float} and isfinite(value) for value in numbers):  # type: ignore[arg-type]
        return None
    rule = rules[number - 1]
    if row.get("text") != rule.text or not all(isinstance(names, list) for names in items):
        return None
    score, delta, p = (float(value) for value in numbers)  # type: ignore[arg-type]
    fixes, breaks = (tuple(map(str, names)) for names in items)  # type: ignore[call-overload]
    return Ablation(
        rule=number,
        text=rule.text,
        first=rule.first,
        last=rule.last,
        region=rule.region,
        score=score,
        delta=delta,
        fixed=fixes,
        broken=breaks,
        p=p,
        worth=worth(delta, len(breaks)),
        noted=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AblateRequest:
    revision: str
    rule: int | None = None  # the number of the only rule to leave out; None for each of them
    split: str = Split.SELECTION.value  # train, selection or test
    note: bool = True
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class AblatedRule:
    ablation: Ablation
    since: str  # the event that brought its first line; `seed` for what stood there before the run


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


def ablate(context: Context, request: AblateRequest, watcher: EvalWatcher) -> Ablated | Plan:
    """Leave each rule out and measure what changes; what is complete when the work ends early is noted all the same."""
    with open_workspace(context) as workspace:
        row = event_in(workspace, request.revision)
        with open_measuring(context, workspace, row.run, request.terms, watcher, command="ablate") as measuring:
            skill = skill_at(workspace.repo, row.commit, measuring.session.skill_path)
            work = Ablating(measuring, row.commit, skill, Split(request.split), row.label)
            numbers = _numbers(work, request.rule)
            ablations: list[Ablation] = []
            note_count = 0
            try:
                base = measuring.carry_out(_plan(work, numbers), _measured(work, numbers, ablations))
            finally:
                if request.note:
                    note_count = work.note(ablations)
            return base if isinstance(base, Plan) else replace(_result(work, row, base, ablations), noted=note_count)


async def _measured(work: Ablating, numbers: Sequence[int], ablations: list[Ablation]) -> Evaluation:
    work.measuring.expect(1 + len(numbers), work.split)
    base = await work.whole()
    for number in numbers:
        ablations.append(await work.leave_out(number, base))  # noqa: PERF401 - what is there counts, whatever ends the rest
    return base


def _numbers(work: Ablating, only: int | None) -> tuple[int, ...]:
    count = len(work.rules)
    if only is None:
        if not count:
            raise NotFoundError(f"{work.name} has no rules", hint="rules are list items and sentences of SKILL.md")
        return tuple(range(1, count + 1))
    if not 1 <= only <= count:
        raise NotFoundError(f"{work.name} has no rule {only}", hint=f"it has rules 1 to {count}: skillgit ablate")
    return (only,)


def _plan(work: Ablating, numbers: Sequence[int]) -> Plan:
    measuring, items = work.measuring, work.measuring.setup.task.items[work.split]
    planner = measuring.planner()
    planner.roll_out("whole", [(work.skill, items, 0)])
    planner.roll_out("rules", [(work.without(number), items, 0) for number in numbers])
    facts = {
        "skill": f"{measuring.run}/{work.name}",
        "rules": f"{len(numbers)} of {len(work.rules)}",
        "items": f"{len(items)} {work.split}",
    }
    return planner.plan("ablate", facts, caps=measuring.terms.caps)


def _result(work: Ablating, row: LogRow, base: Evaluation, ablations: Sequence[Ablation]) -> Ablated:
    measuring = work.measuring
    since = _origins(measuring, row)
    lines = [range(rule.first, rule.last + 1) for rule in (work.rules[ablation.rule - 1] for ablation in ablations)]
    ablated_rules = [
        AblatedRule(ablation=ablation, since=next((since[line] for line in numbers if line in since), ""))
        for ablation, numbers in zip(ablations, lines, strict=True)
    ]
    lack = measuring.shortage(work.name, base)
    return Ablated(
        basis=work.measuring.basis,
        run=row.run,
        name=str(row.address),
        short=work.name,
        commit=row.commit,
        is_head=row.is_head,
        split=work.split.value,
        n=len(base.outcomes),
        metric=measuring.session.rule.metric.value,
        score=measuring.value(base),
        rules=tuple(sorted(ablated_rules, key=_rank)),
        every=len(work.rules),
        cost=measuring.cost(),
        warnings=(
            *differences(measuring.workspace, row.run, measuring.setup),
            *measuring.reused(),
            *filter(None, [lack]),
        ),
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
