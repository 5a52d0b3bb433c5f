"""How an answer is scored: average normalised Levenshtein similarity, by two rules that differ at the boundary.

*official* follows the evaluation script of the Robust Reading Competition for DocVQA: answers are lower-cased, trimmed
and their blanks collapsed; the edit distance is divided by the greater length of the texts as they were given;
similarities under 0.5 become 0. *skillopt* follows the formula of the ANLS paper (Biten et al., 2019), as the reference
does: the distance is divided by the greater length of the normalised texts, and similarities up to 0.5 become 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rapidfuzz.distance import Levenshtein

from skillgit.domain.evaluation import Scored
from skillgit_envs.answer_tag import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

THRESHOLD = 0.5
SOLVED = 0.999
"""From this similarity on an answer counts as right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnlsRule:
    """One way to compute ANLS.

    Attributes:
        name: Changes whenever a score can change.
        raw_lengths: Whether lengths are those before normalisation.
        keeps_half: Whether a similarity of exactly 0.5 counts.
    """

    name: str
    raw_lengths: bool
    keeps_half: bool


RULES: Mapping[str, AnlsRule] = {
    "official": AnlsRule(name="anls-rrc/1", raw_lengths=True, keeps_half=True),
    "skillopt": AnlsRule(name="anls-paper/1", raw_lengths=False, keeps_half=False),
}


def similarity(answer: str, gold: str, rule: AnlsRule) -> float:
    """Return the similarity of two answers, from 0 to 1, under ``rule``."""
    ours, theirs = _normalised(answer), _normalised(gold)
    length = max(len(answer), len(gold)) if rule.raw_lengths else max(len(ours), len(theirs))
    distance = Levenshtein.distance(ours, theirs)
    # Whole numbers are compared, for 1 - d / n is not exact.
    within = 2 * distance <= length if rule.keeps_half else 2 * distance < length
    if not distance:
        return 1.0
    return 1.0 - distance / length if within else 0.0


def _normalised(text: str) -> str:
    return " ".join(text.lower().split())


def score(answer: str, golds: Sequence[str], rule: AnlsRule) -> Scored:
    """Return the best similarity over the accepted answers as the soft score; the hard one is whether it is full."""
    best = max((similarity(answer, gold, rule) for gold in golds), default=0.0)
    return Scored(hard=float(best >= SOLVED), soft=best)


def feedback(answer: str, golds: Sequence[str], best: float) -> str:
    """Say in one line what was expected and how near the answer came."""
    if best >= SOLVED:
        return f"correct: {quoted(answer)}"
    quotes = ", ".join(quoted(gold) for gold in golds)
    return f"expected one of: {quotes}; the answer {quoted(answer)} has a similarity of {best:.2f}"
