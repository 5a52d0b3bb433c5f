"""Rules left out one at a time: measured, noted on the commit, and read back from such notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

from skillgit.app.recorded.evaluation_notes import record
from skillgit.domain.outcomes import Pairs
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_rules import Region, Worth, rules, without, worth
from skillgit.domain.statistics import sign_test
from skillgit.store import notes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from skillgit.app.interventions.measuring import Measuring
    from skillgit.app.recorded.evaluation_notes import Note
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.evaluation import Evaluation, Split
    from skillgit.domain.skill import Skill
    from skillgit.domain.skill_rules import Rule

KIND = "ablation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What leaving one rule out changes.

    Attributes:
        rule: The rule's number in ``SKILL.md``, from 1.
        first: Its first line, from 1.
        score: What the skill scores without it, under the metric of the gate.
        delta: The score's distance from that of the whole skill, over the items that have a score both times.
        fixed: Items that score higher without it.
        broken: Items that score lower without it.
        p: One-sided exact sign test: the chance of so many broken if every change of an item were a coin flip.
    """

    rule: int
    text: str
    first: int
    last: int
    region: Region
    score: float
    delta: float
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    p: float
    worth: Worth
    noted: bool = False

    @property
    def removable(self) -> bool:
        """Whether the skill loses nothing without it, and it belongs to the steps."""
        return self.region is Region.BODY and not self.broken and self.delta >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablating:
    """A skill whose rules are left out.

    Attributes:
        measuring: The door to the models.
    """

    measuring: Measuring
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

    def known(self, workspace: Workspace) -> dict[int, Ablation]:
        """Return what notes on the commit tell of its rules, measured under the same conditions."""
        conditions, rules = self._conditions(), self.rules
        ablations: dict[int, Ablation] = {}
        for note in notes.read(workspace.repo, self.commit):
            if note.get("kind") != KIND or any(note.get(name) != value for name, value in conditions.items()):
                continue
            rows = note.get("rules")
            for row in rows if isinstance(rows, list) else ():
                ablation = _from_row(row, rules) if isinstance(row, dict) else None
                if ablation is not None:
                    ablations[ablation.rule] = ablation
        return ablations

    def note(self, workspace: Workspace, ablations: Collection[Ablation]) -> int:
        """Leave one note with those of ``ablations`` that no note tells yet, and return how many these are."""
        noted_ablations, time = self.known(workspace), self.measuring.context.clock()
        fresh = [
            ablation for ablation in ablations if noted_ablations.get(ablation.rule) != replace(ablation, noted=True)
        ]
        if not fresh:
            return 0
        stamp = time.replace(microsecond=0).isoformat().replace("+00:00", "Z")
        note = {"kind": KIND} | self._conditions() | {"rules": [_as_row(ablation) for ablation in fresh], "time": stamp}
        record(workspace, {self.commit: [note]}, time)
        return len(fresh)

    def _conditions(self) -> Note:
        """Return what two measurements have to share to be compared."""
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
    return {
        "rule": ablation.rule,
        "text": ablation.text,
        "first": ablation.first,
        "last": ablation.last,
        "score": ablation.score,
        "delta": ablation.delta,
        "fixed": list(ablation.fixed),
        "broken": list(ablation.broken),
        "p": ablation.p,
        "worth": ablation.worth.value,
    }


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
