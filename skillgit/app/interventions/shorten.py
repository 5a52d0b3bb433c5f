"""A shorter version that scores no lower: without its dead rules, or in fewer words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillgit.app.interventions.ablate import Ablating, Ablation
from skillgit.app.interventions.intervention import Candidate, Decided, Gating, open_gating
from skillgit.app.interventions.requests import ShortenRequest
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Asks, Planner, tokens_of
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_policies import NOT_WORSE
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.skill_rules import Region, without
from skillgit.engine.candidate import COMPRESS
from skillgit.engine.candidate import compress as shorten
from skillgit.engine.evidence_files import json_file
from skillgit.engine.prompt_sections import prompt
from skillgit.engine.search import unanswered
from skillgit.errors import SkillgitError, UsageError
from skillgit.index.rows import LogRow

_SHOWN = 100  # characters of a rule in the reasons


def newest_version(workspace: Workspace, text: str) -> LogRow:
    """Return the version that ``text`` names, if its run has none after it."""
    row = event_in(workspace, text)
    if row.version is None:
        raise UsageError(f"{row.address} is not a version", hint="skillgit cherry-pick makes one of a candidate")
    if not row.is_head:
        raise UsageError(
            f"{row.address} is not the newest version of its run, and only that can be replaced",
            hint=f"skillgit revert --to {row.address} makes it the newest, or name {row.run}",
        )
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    rules: tuple[Ablation, ...]
    needed: tuple[Ablation, ...]  # rules that seemed to do nothing and are needed once the others are gone
    measured: int  # how many rules had to be measured, since no note had them
    decided: Decided


def prune(workspace: Workspace, request: ShortenRequest, watcher: EvalWatcher) -> Pruned | Plan:
    """Leave out the rules without which nothing is lost, and let the gate decide whether the score holds.

    Notes of ``ablate`` are used; what they lack is measured and noted. Two rules that say the same are both
    without effect alone: if the text without all of them scores lower, they are left out one after the other.
    """
    row = newest_version(workspace, request.revision)
    with open_gating(workspace, row.run, request, watcher) as gating:
        return _Pruning(gating, row).result()


class _Pruning:
    def __init__(self, gating: Gating, row: LogRow) -> None:
        self._gating, self._measuring, self._head, self._name = gating, gating.measuring, gating.head, str(row.address)
        label = version_label(row.version)
        self._ablating = Ablating(self._measuring, row.commit, self._head, Split.SELECTION, label)
        # those that steps may change
        self._numbers = [number for number, rule in enumerate(self._ablating.rules, 1) if rule.region is Region.BODY]
        self._ablations = self._ablating.known()
        self._missing = [number for number in self._numbers if number not in self._ablations]
        self._fresh: list[Ablation] = []
        self._gone: list[Ablation] = []
        self._needed: list[Ablation] = []

    def result(self) -> Pruned | Plan:
        facts = {
            "skill": self._name,
            "rules": f"{len(self._numbers)}, {len(self._missing)} of them to measure",
            "items": self._gating.items,
        }
        decision = self._gating.decide(Origin.PRUNE, "pruned", facts, self._plan, self._candidate)
        if isinstance(decision, Plan):
            return decision
        return Pruned(rules=tuple(self._gone), needed=tuple(self._needed), measured=len(self._fresh), decided=decision)

    def _plan(self, planner: Planner) -> None:
        """Plan the rules that no note has, then shorter and shorter texts."""
        items, ablations = self._measuring.items, self._ablations
        planner.roll_out("whole", [(self._head, items, 0)])
        planner.roll_out("rules", [(self._ablating.without(number), items, 0) for number in self._missing])
        removable = sum(number not in ablations or ablations[number].removable for number in self._numbers)
        # All at once, one after the other if that scores lower; the candidate is one of these texts.
        planner.may_roll_out("without several", self._head, items, 1 + removable if removable else 0)

    async def _candidate(self) -> Candidate:
        """Find the rules that nothing hangs on, and leave them out."""
        ablating, measuring = self._ablating, self._measuring
        measuring.expect(1 + len(self._missing))
        base = await ablating.whole()
        try:
            for number in self._missing:
                self._fresh.append(await ablating.leave_out(number, base))
        finally:
            ablating.note(self._fresh)  # what is complete, however the work ends
        ablations = self._ablations | {ablation.rule: ablation for ablation in self._fresh}
        useless = [ablations[number] for number in self._numbers if ablations[number].removable]
        if not useless:
            raise SkillgitError(
                f"no rule of {self._name} can go: without any of them some item scores lower",
                hint=f"skillgit ablate {self._name} shows what each is worth",
            )
        floor = await measuring.score(ablating.name, self._head)
        self._gone = list(useless)
        if await measuring.score("without all of them", self._without(useless)) < floor:
            measuring.expect(len(useless))
            removals: list[Ablation] = []
            # The ones that are shortest go last: most is gained by those before them.
            for ablation in sorted(useless, key=lambda entry: (-len(entry.text), entry.rule)):
                shorter = self._without([*removals, ablation])
                holds = await measuring.score(f"without rule {ablation.rule} too", shorter) >= floor
                (removals if holds else self._needed).append(ablation)
            if removals:
                self._gone = removals
            else:
                self._needed = []  # the gate refuses the text without all of them, and says why
        skill, count = self._without(self._gone), len(self._gone)
        sentences = [f"Alone, each of these can go without breaking an item of {self._name}."]
        sentences += [f"Rule {ablation.rule}: {ablation.text[:_SHOWN]}" for ablation in self._gone]
        return Candidate(
            skill=skill,
            origin=Origin.PRUNE,
            of=self._name,
            title=f"drop {count} rule{'s' if count > 1 else ''} that change{'s' if count == 1 else ''} nothing",
            why="\n\n".join(sentences),
            reports=human_edits(self._head, skill),
            policy=NOT_WORSE,
        )

    def _without(self, removals: Sequence[Ablation]) -> Skill:
        rules = [self._ablating.rules[ablation.rule - 1] for ablation in removals]
        return self._head.with_text(DOCUMENT, without(self._head.document, rules))


def compress(workspace: Workspace, request: ShortenRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Have the optimizer shorten a version in one call, and let the gate decide whether the score holds."""
    row = newest_version(workspace, request.revision)
    with open_gating(workspace, row.run, request, watcher) as gating:
        name, session, items = str(row.address), gating.measuring.session, gating.measuring.items

        def plan(planner: Planner) -> None:
            length = tokens_of(gating.head.document)
            prompt_tokens = tokens_of(prompt(COMPRESS)) + length
            planner.ask(Asks(stage=COMPRESS, calls=1, prompt=prompt_tokens, reply=length, in_a_row=1, certain=True))
            planner.roll_out("base", [(gating.head, items, 0)])
            planner.may_roll_out("candidate", gating.head, items, 1)

        async def make() -> Candidate:
            shortening = await shorten(session, gating.head, draw=(gating.state.version, gating.number))
            if shortening is None:
                if refusal := unanswered(session, COMPRESS):
                    raise SkillgitError(refusal.rstrip("."), hint="take another model as the optimizer")
                optimizer = session.calls.routes["optimizer"].name
                raise SkillgitError(
                    f"{optimizer} found no shorter text for {name} that keeps what is protected",
                    hint=f"skillgit shorten {name} drops whole rules",
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

        facts = {"skill": name, "items": gating.items}
        return gating.decide(Origin.COMPRESS, "compressed", facts, plan, make, optimizer=True)
