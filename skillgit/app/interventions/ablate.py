"""``skillgit ablate``: what each rule of a version is worth, found out by leaving it out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillgit.app.interventions.measuring import MeasuringTerms, open_measuring
from skillgit.app.interventions.rule_ablation import Ablating, Ablation
from skillgit.app.setup.setup import differences
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.evaluation import Split
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import ExitCode, NotFoundError
from skillgit.index import queries
from skillgit.store.blame import Blamer
from skillgit.store.history_reader import skill_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.interventions.measuring import GateWatcher
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.evaluation import Evaluation
    from skillgit.domain.skill_rules import Rule
    from skillgit.index.rows import LogRow

_ORDER = ("works", "mixed", "harmful", "dead")


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

    run: str
    name: str
    short: str  # the same without its run
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


def ablate(context: Context, request: AblateRequest, watcher: GateWatcher) -> Ablated | Plan:
    """Leave each rule out and measure what changes; what is complete when the work ends early is noted all the same."""
    split = Split(request.split)
    with open_workspace(context) as workspace:
        row = event_in(workspace, request.revision)
        with open_measuring(context, workspace, row.run, request.terms, watcher) as measuring:
            skill = skill_at(workspace.repo, row.commit, measuring.session.skill_path)
            work = Ablating(measuring=measuring, commit=row.commit, skill=skill, split=split, name=row.label)
            numbers = _numbers(work, request.rule)
            plan = _plan(work, numbers, request)
            if request.terms.dry_run:
                return plan
            watcher.remark(plan.sentence)
            ablations: list[Ablation] = []
            note_count = 0
            scope = f"ablate/{context.entropy(8).hex()}"
            try:
                base = measuring.carry_out(scope, _measured(work, numbers, ablations))
            finally:
                if request.note:
                    note_count = work.note(workspace, ablations)
            return replace(_result(workspace, work, row, base, ablations), noted=note_count)


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


def _plan(work: Ablating, numbers: Sequence[int], request: AblateRequest) -> Plan:
    planner, items = work.measuring.planner(), work.measuring.setup.task.items[work.split]
    planner.roll_out("whole", [(work.skill, items, 0)])
    planner.roll_out("rules", [(work.without(number), items, 0) for number in numbers])
    facts = {
        "skill": f"{work.measuring.run}/{work.name}",
        "rules": f"{len(numbers)} of {len(work.rules)}",
        "items": f"{len(items)} {work.split}",
    }
    return planner.plan("ablate", facts, caps=request.terms.caps)


def _result(
    workspace: Workspace, work: Ablating, row: LogRow, base: Evaluation, ablations: Sequence[Ablation]
) -> Ablated:
    measuring = work.measuring
    gate, cost = measuring.session.rule, measuring.cost()
    since = _since(workspace, row, f"{measuring.session.skill_path}/{DOCUMENT}")
    rules = [
        AblatedRule(ablation=ablation, since=since.get(_newest(work.rules[ablation.rule - 1], since), ""))
        for ablation in ablations
    ]
    thin = len(base.scored) < gate.min_coverage * len(base.outcomes)
    warnings = list(differences(workspace, row.run, measuring.setup))
    if thin:
        warnings.append(f"{work.name} has a score on {len(base.scored)} of {len(base.outcomes)} items only")
    return Ablated(
        run=row.run,
        name=str(row.address),
        short=work.name,
        commit=row.commit,
        is_head=row.is_head,
        split=work.split.value,
        n=len(base.outcomes),
        metric=gate.metric.value,
        score=measuring.value(base),
        rules=tuple(sorted(rules, key=_place)),
        every=len(work.rules),
        cost=replace(cost, seconds=round(cost.seconds, 1)),
        warnings=tuple(warnings),
        exit_code=ExitCode.SERVICE if thin else ExitCode.OK,
    )


def _place(rule: AblatedRule) -> tuple[int, float, int]:
    ablation = rule.ablation
    return _ORDER.index(ablation.worth), ablation.delta, ablation.rule


def _since(workspace: Workspace, row: LogRow, path: str) -> dict[int, str]:
    """Return line number to the name of the event that brought the line."""
    names: dict[str, str] = {}
    commits: dict[int, str] = {}
    for line in Blamer(workspace.repo).lines(row.commit, path):
        if line.commit not in names:
            bringer = queries.row_of_commit(workspace.index, line.commit)
            names[line.commit] = "seed" if bringer is None else bringer.address.seen_from(row.run)
        commits[line.line] = names[line.commit]
    return commits


def _newest(rule: Rule, since: dict[int, str]) -> int:
    """Return the line of ``rule`` that names where it comes from: its first one that is known."""
    return next((line for line in range(rule.first, rule.last + 1) if line in since), 0)
