"""A shorter version that scores no lower: without its dead rules, or in fewer words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from skillgit.app.interventions.ablate import Ablating, Ablation
from skillgit.app.interventions.intervention import Candidate, Decided, Gating, open_gating
from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Asks, tokens_of
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_policies import NOT_WORSE
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.skill_rules import Region, without
from skillgit.engine.candidate_text import STAGE
from skillgit.engine.candidate_text import compress as shorten
from skillgit.engine.evidence_files import json_file
from skillgit.engine.prompt_sections import prompt
from skillgit.engine.session import unanswered
from skillgit.errors import SkillgitError, UsageError
from skillgit.index.rows import LogRow


def newest_version(workspace: Workspace, text: str) -> LogRow:
    """Return the version that ``text`` names, if its run has none after it."""
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
class ShortenRequest:
    revision: str
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    rules: tuple[Ablation, ...]
    needed: tuple[Ablation, ...]  # rules that seemed to do nothing and are needed once the others are gone
    measured: int  # how many rules had to be measured, for no note told of them
    decided: Decided


def prune(context: Context, request: ShortenRequest, watcher: EvalWatcher) -> Pruned | Plan:
    """Leave out the rules without which nothing is lost, and let the gate decide whether the score holds.

    Notes of ``ablate`` are used; what they do not tell is measured and noted. Two rules that say the same are both
    without effect alone: if the text without all of them scores lower, they are left out one after the other.
    """
    with open_workspace(context) as workspace:
        row = newest_version(workspace, request.revision)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            work = _Pruning(gating, row)
            result = gating.decide(work.plan(), Origin.PRUNE, work.candidate, "pruned")
            if isinstance(result, Plan):
                return result
            return Pruned(rules=tuple(work.gone), needed=tuple(work.needed), measured=len(work.fresh), decided=result)


class _Pruning:
    def __init__(self, gating: Gating, row: LogRow) -> None:
        self._head = gating.head
        self._gating = gating
        self._measuring = gating.measuring
        self._name = str(row.address)
        label = version_label(row.version)
        self._ablating = Ablating(self._measuring, row.commit, self._head, Split.SELECTION, label)
        # those that steps may change
        self._numbers = [number for number, rule in enumerate(self._ablating.rules, 1) if rule.region is Region.BODY]
        self._ablations = self._ablating.known()
        self._missing = [number for number in self._numbers if number not in self._ablations]
        self.fresh: list[Ablation] = []
        self.gone: list[Ablation] = []
        self.needed: list[Ablation] = []

    def plan(self) -> Plan:
        """Return what it may ask: the rules that no note tells of, then shorter and shorter texts and the gate."""
        planner, ablating, items = self._measuring.planner(), self._ablating, self._measuring.items
        self._gating.plan_ready(planner)
        planner.roll_out("whole", [(self._head, items, 0)])
        planner.roll_out("rules", [(ablating.without(number), items, 0) for number in self._missing])
        ablations = self._ablations
        removable = sum(number not in ablations or ablations[number].removable for number in self._numbers)
        # All at once, one after the other if that scores lower; the candidate is one of these texts.
        planner.may_roll_out("without several", self._head, items, 1 + removable if removable else 0)
        self._gating.plan_repeats(planner)
        facts = {
            "skill": self._name,
            "rules": f"{len(self._numbers)}, {len(self._missing)} of them to measure",
            "items": f"{len(items)} selection",
        }
        return planner.plan("prune", facts, caps=self._measuring.terms.caps)

    async def candidate(self) -> Candidate:
        """Find the rules that nothing hangs on, and leave them out."""
        await self._measure_missing()
        ablations = [self._ablations[number] for number in self._numbers]
        useless = [ablation for ablation in ablations if ablation.removable]
        if not useless:
            raise SkillgitError(
                f"no rule of {self._name} can go: without any of them some item scores lower",
                hint=f"skillgit ablate {self._name} shows what each is worth",
            )
        skill = await self._shortened(useless)
        count = len(self.gone)
        sentences = [f"Alone, each of these can go without breaking an item of {self._name}."]
        sentences += [f"Rule {ablation.rule}: {ablation.text[:_SHOWN]}" for ablation in self.gone]
        return Candidate(
            skill=skill,
            origin=Origin.PRUNE,
            of=self._name,
            title=f"drop {count} rule{'s' if count > 1 else ''} that change{'s' if count == 1 else ''} nothing",
            why="\n\n".join(sentences),
            reports=human_edits(self._head, skill),
            policy=NOT_WORSE,
        )

    async def _measure_missing(self) -> None:
        """Measure the rules of which nothing is known, and note what is complete whatever ends it."""
        ablating = self._ablating
        self._measuring.expect(1 + len(self._missing))
        base = await ablating.whole()
        try:
            for number in self._missing:
                self.fresh.append(await ablating.leave_out(number, base))
        finally:
            ablating.note(self.fresh)
        self._ablations |= {ablation.rule: ablation for ablation in self.fresh}

    async def _shortened(self, useless: Sequence[Ablation]) -> Skill:
        whole, measuring = self._without(useless), self._measuring
        floor = await measuring.score(self._ablating.name, self._head)
        if await measuring.score("without all of them", whole) >= floor:
            self.gone = list(useless)
            return whole
        measuring.expect(len(useless))
        # The ones that are shortest go last: most is gained by those before them.
        for ablation in sorted(useless, key=lambda entry: (-len(entry.text), entry.rule)):
            shorter = self._without([*self.gone, ablation])
            holds = await measuring.score(f"without rule {ablation.rule} too", shorter) >= floor
            (self.gone if holds else self.needed).append(ablation)
        if not self.gone:
            self.gone, self.needed = list(useless), []
            return whole
        return self._without(self.gone)

    def _without(self, removals: Sequence[Ablation]) -> Skill:
        rules = [self._ablating.rules[ablation.rule - 1] for ablation in removals]
        return self._head.with_text(DOCUMENT, without(self._head.document, rules))


def compress(context: Context, request: ShortenRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Have the optimizer shorten a version in one call, and let the gate decide whether the score holds."""
    with open_workspace(context) as workspace:
        row = newest_version(workspace, request.revision)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            name, length = str(row.address), tokens_of(gating.head.document)
            planner = gating.measuring.planner(optimizer=True)
            prompt_tokens = tokens_of(prompt("compress")) + length
            planner.ask(Asks(stage="compress", calls=1, prompt=prompt_tokens, reply=length, in_a_row=1, certain=True))
            gating.plan_judge(planner, None)
            facts = {"skill": name, "items": f"{len(gating.measuring.items)} selection"}
            plan = planner.plan("compress", facts, caps=request.terms.caps)
            make = partial(_compressed, gating, name)
            return gating.decide(plan, Origin.COMPRESS, make, "compressed", optimizer=True)


async def _compressed(gating: Gating, name: str) -> Candidate:
    session = gating.measuring.session
    shortening = await shorten(session, gating.head, draw=(gating.state.version, gating.number))
    if shortening is None:
        if refusal := unanswered(session, STAGE):
            raise SkillgitError(refusal.rstrip("."), hint="take another model as the optimizer")
        raise SkillgitError(
            f"{session.calls.model_name('optimizer')} found no shorter text for {name} that keeps what is protected",
            hint=f"skillgit prune {name} drops whole rules",
        )
    return Candidate(
        skill=shortening.application.skill,
        origin=Origin.COMPRESS,
        of=name,
        title=shortening.title or "the same in fewer words",
        why=shortening.reasoning,
        reports=shortening.application.reports,
        policy=NOT_WORSE,
        evidence={"rewrite.json": json_file({"body": shortening.rewrite})},
    )
