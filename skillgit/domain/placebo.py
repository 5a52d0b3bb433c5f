"""Placebos: candidates that say the same as the skill they are made of, and what the gate made of them.

A gate that lets such a candidate pass was deceived by chance. How often that happens is a run's false-accept rate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate, pairwise

from skillgit.domain.edit import Edit, Op, apply
from skillgit.domain.protected_regions import Owner, blocks
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import verbatim

_BULLET = re.compile(r"[-*+] \S.*")
_POINTS_BACK = re.compile(
    r"\b(?:above|below|before|after|next|previous|preceding|following|then|otherwise|else|first|last|finally|instead|also"
    r"|this|that|these|those|it|such)\b",
    re.IGNORECASE,
)
SENTENCES = (
    "This document has been read through to its end.",
    "Nothing more stands in this document.",
    "The lines of this document belong together.",
    "This document is written in Markdown.",
)
"""Sentences that ask for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placebo:
    """How many candidates that change nothing went through the gate, and how many passed.

    Attributes:
        n: Number of candidates.
        accepted: Those that the gate accepted.
    """

    n: int
    accepted: int

    @property
    def rate(self) -> float:
        """The false-accept rate."""
        return self.accepted / self.n if self.n else 0.0


@dataclass(frozen=True, slots=True)
class NoOp:
    """A skill that says the same in other bytes, and what was done to it."""

    skill: Skill
    change: str


def no_op(skill: Skill, number: int) -> NoOp:
    """Return the ``number``-th rewording of ``skill`` that changes no meaning; the first is number 1.

    By turns, two neighbouring bullets that do not refer to each other change places, or a sentence that asks for
    nothing is added. Without such bullets it is always a sentence. Frontmatter and regions stay as they are.
    """
    pairs = _independent_pairs(skill.document)
    if pairs and number % 2 == 0:
        start, middle, end = pairs[(number // 2 - 1) % len(pairs)]
        text = skill.document
        new_text = f"{text[:start]}{text[middle + 1 : end]}\n{text[start:middle]}{text[end:]}"
        line = text.count("\n", 0, start) + 1
        return NoOp(skill.with_text(DOCUMENT, new_text), f"lines {line} and {line + 1} of {DOCUMENT} change places")
    turn = (number - 1) // 2 if pairs else number - 1
    for shift in range(len(SENTENCES)):
        sentence = SENTENCES[(turn + shift) % len(SENTENCES)]
        result = apply(skill, [Edit(op=Op.APPEND, content=verbatim(sentence))])
        if result.applied:
            return NoOp(result.skill, f"'{sentence}' is added")
    return NoOp(skill, "nothing is changed")


def _independent_pairs(text: str) -> list[tuple[int, int, int]]:
    """Return neighbouring bullets of one line each as offsets: start of the first, its end, end of the second."""
    body = [part for part in blocks(text) if part.owner is Owner.BODY]
    texts = text.split("\n")
    starts = accumulate((len(line) + 1 for line in texts), initial=0)
    lines = [(start, start + len(line), line) for start, line in zip(starts, texts, strict=False)]
    return [
        (start, end, next_end)
        for number, ((start, end, line), (_, next_end, following)) in enumerate(pairwise(lines))
        if line != following
        and all(_BULLET.fullmatch(bullet) and not _POINTS_BACK.search(bullet) for bullet in (line, following))
        # a line that goes on with the second bullet
        and not any(line[:1] in {" ", "\t"} and line.strip() for line in texts[number + 2 : number + 3])
        and any(part.start <= start and next_end <= part.end for part in body)
    ]
