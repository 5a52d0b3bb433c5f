"""Looks: what a draft does on a few train items, before anything of the selection split is touched.

A look is cheap where a measurement is dear: some items that the base fails and that the draft was written for, and,
only if one of them scores higher now, some that the base solves. What it showed decides whether a draft goes on, is
written again by an optimizer that sees the look, or is dropped; the gate decides everything else. Looks are evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from skillgit.domain.evaluation import Scored
from skillgit.domain.evidence_names import LOOKS
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import skill_tokens
from skillgit.engine.prompt_sections import proposed_fields, tagged, trajectory_text
from skillgit.engine.proposals import Proposed
from skillgit.engine.session import Session
from skillgit.engine.trajectory_elision import elide

PARTIAL = 0.5
"""Partial credit, in items, that counts as help where a draft solves no more and no fewer items than the base."""
_ANSWER_SHOWN = 400  # characters of the answer that the base gave


class DraftShape(StrEnum):
    """What a draft is."""

    EDITS = "edits"  # the ranked edits of a step
    TEXT = "whole text"  # the text, written as a whole
    REMOVAL = "removal"  # the removal of rules, and nothing else


class Ending(StrEnum):
    """What happened to a text of a draft after a look at it."""

    KEPT = "kept"
    NARROWED = "narrowed"  # to those of its edits that help alone
    AGAIN = "written again"  # by the optimizer, which saw the look
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookResult:
    """A draft on a few train items.

    Attributes:
        draft: The number of the draft among those of its step, from 1.
        attempt: Which text of this draft it was, from 1.
        shape: What the draft is.
        title: What it is to achieve, in the words of the optimizer.
        proposals: The edits or the text.
        tokens: By how many tokens the skill is longer with it; negative where it is shorter.
        before: The rollouts with the base.
        after: The rollouts of the same items with the draft, in the same order.
        gain: The sum of what the items score more than before, under the gate's metric.
        partial: The same sum of the soft scores, which count parts of an answer where the gate's metric may not.
        objection: Why the draft was not tried at all; empty if it was.
        ending: What happened to this text after the look.
    """

    draft: int
    attempt: int
    shape: DraftShape
    title: str
    proposals: tuple[Proposed, ...]
    tokens: int
    before: tuple[Rollout, ...] = ()
    after: tuple[Rollout, ...] = ()
    gain: float = 0.0
    partial: float = 0.0
    objection: str = ""
    ending: Ending = Ending.KEPT

    @property
    def helps(self) -> bool:
        """Whether the items score more together than before, or as much and clearly more in part."""
        return helps(self.gain, self.partial)

    @property
    def fixed(self) -> tuple[str, ...]:
        """The ids of the items that are solved now, and were not before."""
        return tuple(new.item.id for old, new in self._pairs() if not _passed(old) and _passed(new))

    @property
    def broken(self) -> tuple[str, ...]:
        """The ids of the items that were solved before, and are not now."""
        return tuple(new.item.id for old, new in self._pairs() if _passed(old) and not _passed(new))

    def _pairs(self) -> Iterator[tuple[Rollout, Rollout]]:
        """Yield the rollouts of each item that was scored on both sides: a failure to evaluate says nothing."""
        for old, new in zip(self.before, self.after, strict=True):
            if isinstance(old.outcome, Scored) and isinstance(new.outcome, Scored):
                yield old, new

    @property
    def words(self) -> str:
        """What it showed and what happened to the text then, as a clause."""
        if self.objection:
            return f"was not tried ({self.objection}) and was {self.ending.value}"
        if not self.after:
            return f"was not tried, as no train item of the step fails, and was {self.ending.value}"
        length = f", with {-self.tokens} tokens fewer" if self.shape is DraftShape.REMOVAL and self.tokens < 0 else ""
        return f"{self.effect} train items{length}, and was {self.ending.value}"

    @property
    def effect(self) -> str:
        """How many items it fixed and broke; empty if none was tried."""
        if not self.after:
            return ""
        failing = sum(not _passed(rollout) for rollout in self.before)
        broken = f"broke {len(self.broken)} of {len(self.before) - failing}"
        parts = f" ({self.partial:+.2g} in parts of answers)" if self.gain == 0 and self.partial else ""
        return f"fixed {len(self.fixed)} of {failing} and {broken}{parts}"


def account(looks: Sequence[LookResult]) -> str:
    """Return a paragraph on what the drafts of a step did, a sentence each, for the reasons in the commit."""
    return " ".join(
        f"Draft {number} ({texts[0].shape.value}) {'; then it '.join(look.words for look in texts)}."
        for number, texts in ((number, list(group)) for number, group in groupby(looks, key=lambda look: look.draft))
    )


def _passed(rollout: Rollout) -> bool:
    return isinstance(rollout.outcome, Scored) and rollout.outcome.passed


def gains(before: Sequence[Rollout], after: Sequence[Rollout], rule: GateRule) -> tuple[float, float]:
    """Return by how much items score more after than before, under the gate's metric and in soft scores.

    Unscored items count nothing.
    """

    def value(outcome: Scored) -> float:
        return outcome.value(rule.metric, rule.soft_weight)

    total = partial = 0.0
    for old, new in zip(before, after, strict=True):
        if isinstance(old.outcome, Scored) and isinstance(new.outcome, Scored):
            # each difference by itself, so that under the soft metric both sums are equal to the last bit
            total += value(new.outcome) - value(old.outcome)
            partial += new.outcome.soft - old.outcome.soft
    return total, partial


def helps(gain: float, partial: float) -> bool:
    """Say whether such gains speak for a draft: an item more, or as many and half of one more in parts."""
    return gain > 0 or (gain == 0 and partial >= PARTIAL)


def tokens_added(skill: Skill, candidate: Skill) -> int:
    """Return by how many tokens the text of ``candidate`` is longer than that of ``skill``."""
    return skill_tokens(candidate) - skill_tokens(skill)


def may_save(session: Session, skill: Skill, candidate: Skill) -> bool:
    """Say whether ``candidate`` may be accepted for fewer tokens: where the gate counts them, a shorter text."""
    return session.rule.counts_tokens and tokens_added(skill, candidate) < 0


def looks_evidence(looks: Sequence[LookResult]) -> evidence_files.Evidence:
    """Return ``looks.json`` with a row for each look, and what the target did in each; nothing without any look."""
    if not looks:
        return {}
    parts = [
        evidence_files.rollouts_files(f"look-{look.draft}-{look.attempt}", look.after) for look in looks if look.after
    ]
    return evidence_files.merged([{LOOKS: evidence_files.json_file([_row(look) for look in looks])}, *parts])


def _row(look: LookResult) -> dict[str, object]:
    row: dict[str, object] = {
        "draft": look.draft,
        "attempt": look.attempt,
        "shape": look.shape.value,
        "title": look.title,
        "ending": look.ending.value,
        "rollouts": len(look.after),
        "failing": sum(not _passed(rollout) for rollout in look.before),
        "solved": sum(map(_passed, look.before)),
        "fixed": list(look.fixed),
        "broken": list(look.broken),
        "gain": round(look.gain, 6),
        "tokens": look.tokens,
    }
    if look.partial != look.gain:
        row["partial"] = round(look.partial, 6)
    if look.objection:  # such a text may quote held-out items
        return row | {"objection": look.objection}
    return row | {
        "proposals": [
            proposed_fields(proposal) | ({"items": list(proposal.items)} if proposal.items else {})
            for proposal in look.proposals
        ]
    }


def look_section(look: LookResult, max_tokens: int) -> str:
    """Return what the optimizer sees of a look: each item with what was asked, and both answers with their scores."""
    if look.objection:
        return tagged("look", f"The draft was not tried: {look.objection}")
    parts = [
        tagged(
            "tried",
            "\n".join(
                (
                    tagged("answer_before", elide(" ".join(_answer(old).split()), _ANSWER_SHOWN)),
                    trajectory_text(new.trajectory, max_tokens) if new.trajectory is not None else "",
                )
            ),
            id=new.item.id,
            before=_score(old),
            now=_score(new),
        )
        for old, new in zip(look.before, look.after, strict=True)
    ]
    return tagged("look", "\n".join(parts), fixed=len(look.fixed), broken=len(look.broken))


def _answer(rollout: Rollout) -> str:
    return rollout.trajectory.answer if rollout.trajectory is not None else ""


def _score(rollout: Rollout) -> str:
    if not isinstance(rollout.outcome, Scored):
        return "none"
    hard, soft = rollout.outcome.hard, rollout.outcome.soft
    return f"{hard:g}" if soft == hard else f"{hard:g} ({soft:.2g} in part)"
