"""The scores of the SkillOpt reference for OfficeQA: exact match and token F1 of normalised texts.

Lower case; commas and all punctuation but ``. - %`` deleted; the words million(s), billion(s), dollar(s) and nominal
deleted; blanks collapsed. Numbers are texts here, so that 12.5 and 12.50 differ and 543 million and 543 billion do not.
"""

from __future__ import annotations

import re
from collections import Counter

_DROPPED = re.compile(r"[^\w\s.%-]|_")
_WORDS = frozenset({"million", "millions", "billion", "billions", "dollar", "dollars", "nominal"})


def tokens(text: str) -> list[str]:
    """Return the words that are compared."""
    return [word for word in _DROPPED.sub("", text.lower()).split() if word not in _WORDS]


def exact(answer: str, gold: str) -> bool:
    """Say whether two answers are the same, and not nothing."""
    return tokens(answer) == tokens(gold) != []


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words."""
    ours, theirs = tokens(answer), tokens(gold)
    shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0
