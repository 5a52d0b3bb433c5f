"""A shorter version that scores no lower: without its dead rules, or in fewer words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.interventions.intervention import (
    Candidate,
    Decided,
    judge,
    open_gating,
    plan_judge,
    plan_ready,
    ready,
    write,
)
from skillgit.app.interventions.measuring import MeasuringTerms
from skillgit.app.interventions.rule_ablation import Ablating, Ablation
from skillgit.app.setup.planner import Asks, tokens_of
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import changed_hunks
from skillgit.domain.edit import EditReport, EditSource, EditStatus
from skillgit.domain.evaluation import Split
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.gate_policies import NOT_WORSE
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_rules import Region, without
from skillgit.engine.candidate_text import STAGE
from skillgit.engine.candidate_text import compress as shorten
from skillgit.engine.evidence_files import json_file
from skillgit.engine.prompt_sections import prompt
from skillgit.engine.session import unanswered
from skillgit.errors import SkillgitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.interventions.intervention import Gating
    from skillgit.app.interventions.measuring import GateWatcher
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Caps
    from skillgit.domain.skill import Skill
    from skillgit.engine.gating import Judgement
    from skillgit.index.rows import LogRow


def newest_version(workspace: Workspace, text: str) -> LogRow:
    """Return the version that ``text`` names, if its run has none after it.

    Raises:
        RevisionNotFoundError: It names nothing, or no event of a run.
    """
    row = event_in(workspace, text)
    if row.version is None:
        raise UsageError(f"{row.address} is no version", hint="skillgit cherry-pick makes one of a candidate")
    if not row.is_head:
        raise UsageError(
            f"{row.address} is not the newest version of its run, and only that can be replaced",
            hint=f"skillgit restore {row.address} makes it the newest, or name {row.run}",
        )
    return row


_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRequest:
    """What the user asks for.

    Attributes:
        terms: The caps, and another configuration where one is named.
    """

    revision: str
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """A version without some of its rules.

    Attributes:
        needed: Rules that seemed to do nothing and are needed once the others are gone.
        measured: How many rules had to be measured, for no note told of them.
    """

    rules: tuple[Ablation, ...]
    needed: tuple[Ablation, ...]
    measured: int
    decided: Decided


def prune(context: Context, request: PruneRequest, watcher: GateWatcher) -> Pruned | Plan:
    """Leave out the rules without which nothing is lost, and let the gate decide whether the score holds.

    Notes of ``ablate`` are used; what they do not tell is measured and noted. Two rules that say the same are both
    without effect alone: if the text without all of them scores lower, they are left out one after the other.

    Returns:
        The shorter version; for a dry run the plan.
    """
    with open_workspace(context) as workspace:
        row = newest_version(workspace, request.revision)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            work = _Pruning(workspace, gating, row)
            plan = work.plan(request.terms.caps)
            if request.terms.dry_run:
                return plan
            watcher.remark(plan.sentence)
            scope = intervention_scope(row.run, Origin.PRUNE, gating.number)
            candidate, judgement = gating.measuring.carry_out(scope, work.judged())
            return Pruned(
                rules=tuple(work.gone),
                needed=tuple(work.needed),
                measured=len(work.fresh),
                decided=write(gating, candidate, judgement),
            )


class _Pruning:
    """The work on one version."""

    def __init__(self, workspace: Workspace, gating: Gating, row: LogRow) -> None:
        self._workspace = workspace
        self._gating = gating
        self._measuring = gating.measuring
        self._name = str(row.address)
        self._ablating = Ablating(
            measuring=gating.measuring,
            commit=row.commit,
            skill=gating.head,
            split=Split.SELECTION,
            name=version_label(row.version),
        )
        self.fresh: list[Ablation] = []
        self.gone: list[Ablation] = []
        self.needed: list[Ablation] = []

    def plan(self, caps: Caps) -> Plan:
        """Return what it may ask: the rules that no note tells of, then shorter and shorter texts and the gate."""
        planner, ablating, items = self._measuring.planner(), self._ablating, self._measuring.items
        numbers, ablations = self._numbers(), ablating.known(self._workspace)
        missing = [number for number in numbers if number not in ablations]
        plan_ready(self._gating, planner)
        planner.roll_out("whole", [(ablating.skill, items, 0)])
        planner.roll_out("rules", [(ablating.without(number), items, 0) for number in missing])
        removable = sum(number not in ablations or ablations[number].removable for number in numbers)
        # All at once, one after the other if that scores lower; the candidate is one of these texts.
        planner.may_roll_out("without several", ablating.skill, items, 1 + removable if removable else 0)
        planner.may_roll_out("repeats", ablating.skill, items, 2 * self._measuring.session.settings.gate.repeats)
        facts = {
            "skill": self._name,
            "rules": f"{len(numbers)}, {len(missing)} of them to measure",
            "items": f"{len(items)} selection",
        }
        return planner.plan("prune", facts, caps=caps)

    def _numbers(self) -> list[int]:
        """Return the numbers of the rules that steps may change."""
        return [number for number, rule in enumerate(self._ablating.rules, 1) if rule.region is Region.BODY]

    async def judged(self) -> tuple[Candidate, Judgement]:
        """Find the rules that nothing hangs on, leave them out, and let the gate decide."""
        await ready(self._gating)
        useless = [ablation for ablation in await self._ablations() if ablation.removable]
        if not useless:
            raise SkillgitError(
                f"no rule of {self._name} can go: without any of them some item scores lower",
                hint=f"skillgit ablate {self._name} shows what each is worth",
            )
        skill = await self._shortened(useless)
        candidate = self._candidate(skill)
        return candidate, await judge(self._gating, candidate, "pruned")

    async def _ablations(self) -> list[Ablation]:
        """Return what is known of the rules that steps may change, measuring and noting what is not."""
        ablating, noted_ablations = self._ablating, self._ablating.known(self._workspace)
        numbers = self._numbers()
        missing = [number for number in numbers if number not in noted_ablations]
        self._measuring.expect(1 + len(missing))
        base = await ablating.whole()
        try:
            for number in missing:
                self.fresh.append(await ablating.leave_out(number, base))
        finally:
            ablating.note(self._workspace, self.fresh)
        ablations = noted_ablations | {ablation.rule: ablation for ablation in self.fresh}
        return [ablations[number] for number in numbers]

    async def _shortened(self, useless: Sequence[Ablation]) -> Skill:
        """Return the skill without ``useless``: all at once if the score holds, else as many as it holds without."""
        whole = self._without(useless)
        floor = self._measuring.value(await self._measuring.measure(self._ablating.name, self._gating.head))
        if self._measuring.value(await self._measuring.measure("without all of them", whole)) >= floor:
            self.gone = list(useless)
            return whole
        self._measuring.expect(len(useless))
        # The ones that are shortest go last: most is gained by those before them.
        for ablation in sorted(useless, key=lambda entry: (-len(entry.text), entry.rule)):
            shorter = self._without([*self.gone, ablation])
            name = f"without rule {ablation.rule} too"
            holds = self._measuring.value(await self._measuring.measure(name, shorter)) >= floor
            (self.gone if holds else self.needed).append(ablation)
        if not self.gone:
            self.gone, self.needed = list(useless), []
            return whole
        return self._without(self.gone)

    def _without(self, removals: Sequence[Ablation]) -> Skill:
        rules = [self._ablating.rules[ablation.rule - 1] for ablation in removals]
        return self._gating.head.with_text(DOCUMENT, without(self._gating.head.document, rules))

    def _candidate(self, skill: Skill) -> Candidate:
        hunks = changed_hunks(self._gating.head, skill, support=1, source=EditSource.HUMAN)
        count = len(self.gone)
        sentences = [f"Alone, each of these can go without breaking an item of {self._name}."]
        sentences += [f"Rule {ablation.rule}: {ablation.text[:_SHOWN]}" for ablation in self.gone]
        return Candidate(
            skill=skill,
            origin=Origin.PRUNE,
            of=self._name,
            title=f"drop {count} rule{'s' if count > 1 else ''} that change{'s' if count == 1 else ''} nothing",
            why="\n\n".join(sentences),
            reports=tuple(EditReport(edit=hunk, status=EditStatus.APPLIED) for hunk in hunks),
            policy=NOT_WORSE,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressRequest:
    """What the user asks for.

    Attributes:
        terms: The caps, and another configuration where one is named.
    """

    revision: str
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


def compress(context: Context, request: CompressRequest, watcher: GateWatcher) -> Decided | Plan:
    """Have the optimizer shorten a version in one call, and let the gate decide whether the score holds.

    Returns:
        What the gate decided; for a dry run the plan.
    """
    with open_workspace(context) as workspace:
        row = newest_version(workspace, request.revision)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            plan = _plan(gating, str(row.address), request.terms.caps)
            if request.terms.dry_run:
                return plan
            watcher.remark(plan.sentence)
            scope = intervention_scope(row.run, Origin.COMPRESS, gating.number)
            work = _judged(gating, str(row.address))
            candidate, judgement = gating.measuring.carry_out(scope, work, optimizer=True)
            return write(gating, candidate, judgement)


def _plan(gating: Gating, name: str, caps: Caps) -> Plan:
    planner, length = gating.measuring.planner(optimizer=True), tokens_of(gating.head.document)
    prompt_tokens = tokens_of(prompt("compress")) + length
    planner.ask(Asks(stage="compress", calls=1, prompt=prompt_tokens, reply=length, in_a_row=1, certain=True))
    plan_judge(gating, planner, None)
    facts = {"skill": name, "items": f"{len(gating.measuring.items)} selection"}
    return planner.plan("compress", facts, caps=caps)


async def _judged(gating: Gating, name: str) -> tuple[Candidate, Judgement]:
    await ready(gating)
    session = gating.measuring.session
    shortening = await shorten(session, gating.head, draw=(gating.state.version, gating.number))
    if shortening is None:
        if refusal := unanswered(session, STAGE):
            raise SkillgitError(refusal.rstrip("."), hint="take another model as the optimizer")
        raise SkillgitError(
            f"{session.calls.model_name('optimizer')} found no shorter text for {name} that keeps what is protected",
            hint=f"skillgit prune {name} drops whole rules",
        )
    candidate = Candidate(
        skill=shortening.application.skill,
        origin=Origin.COMPRESS,
        of=name,
        title=shortening.title or "the same in fewer words",
        why=shortening.reasoning,
        reports=shortening.application.reports,
        policy=NOT_WORSE,
        evidence={"rewrite.json": json_file({"body": shortening.rewrite})},
    )
    return candidate, await judge(gating, candidate, "compressed")
