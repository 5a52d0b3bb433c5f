"""Settling a merge by evaluation: each stretch that both sides changed gets the text that scores best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.app.gating.three_way import Choice
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from skillgit.app.gating.measuring import Measuring
    from skillgit.app.gating.three_way import Merge
    from skillgit.domain.skill import Skill

MOST_CONFLICTS = 12
"""Conflicts that are settled by evaluation; further ones keep our text, so that the price of a merge is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One choice that was measured.

    Attributes:
        choice: Whose text stood there.
        score: What the whole text scored with it, under the metric of the gate.
    """

    choice: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One stretch of lines that both sides changed.

    Attributes:
        file: Path inside the skill folder.
        line: Where it begins on our side, from 1.
        ours: Our text.
        theirs: The other side's text.
        choices: What may stand there.
        tried: What was measured, in this order; the first is what stood there before.
        chosen: What stands there in the end; empty while that is open.
    """

    file: str
    line: int
    ours: str
    theirs: str
    choices: tuple[str, ...]
    tried: tuple[Tried, ...] = ()
    chosen: str = ""


def evaluations(merge: Merge) -> int:
    """Return how many texts have to be measured at most: base, first text, and each other choice once."""
    open_ = merge.conflicts[:MOST_CONFLICTS]
    return 2 + sum(len(conflict.choices) - 1 for conflict in open_)


def stretches(merge: Merge) -> tuple[Stretch, ...]:
    """Return the conflicts of ``merge`` before anything is measured."""
    return tuple(
        Stretch(
            file=conflict.file,
            line=conflict.line,
            ours="".join(conflict.ours or ()),
            theirs="".join(conflict.theirs or ()),
            choices=tuple(choice.value for choice in conflict.choices),
        )
        for conflict in merge.conflicts
    )


async def settle(measuring: Measuring, merge: Merge, ours: str) -> tuple[Skill, tuple[Stretch, ...]]:
    """Return the text that scores best, conflict by conflict in their order, and what was tried on the way.

    It is greedy: a choice that is made stays while later conflicts are settled. Of equal scores the first wins: ours,
    then theirs, both, neither.

    Args:
        measuring: The door to the run's models.
        merge: The merge.
        ours: What our text is called.

    Raises:
        SkillgitError: No choice leaves the protected regions whole.
    """
    conflicts = merge.conflicts
    chosen = [Choice.OURS] * len(conflicts)
    best = merge.settled(chosen)
    if best is None:
        raise SkillgitError(
            "the merge would harm a protected region of the skill",
            hint=f"edit {ours} by hand, or cherry-pick single steps",
        )
    if not conflicts:
        return best, ()
    score = measuring.value(await measuring.measure("all ours", best))
    found = list(stretches(merge))
    for place, conflict in enumerate(conflicts[:MOST_CONFLICTS]):
        tried = [Tried(choice=chosen[place].value, score=score)]
        for choice in conflict.choices[1:]:
            skill = merge.settled([*chosen[:place], choice, *chosen[place + 1 :]])
            if skill is None:
                continue
            reached = measuring.value(await measuring.measure(f"{choice.value} at {place + 1}", skill))
            tried.append(Tried(choice=choice.value, score=reached))
            if reached > score:
                best, score, chosen[place] = skill, reached, choice
        found[place] = replace(found[place], tried=tuple(tried), chosen=chosen[place].value)
    return best, tuple(one if one.chosen else replace(one, chosen=Choice.OURS.value) for one in found)
