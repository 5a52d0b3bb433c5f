"""How a SearchQA answer is scored, and what the optimizer is told about it.

The rules are those of the MRQA 2019 evaluation (``mrqa_official_eval.py`` of mrqa/MRQA-Shared-Task-2019), which took
them from SQuAD v1.1: lower case, ASCII punctuation deleted, the words a, an and the deleted, white space collapsed, in
this order; exact match and token F1 are each the maximum over the accepted answers. This module differs: an answer
of which nothing is left by that, like "A" or "!", matches here an accepted answer that it equals but for case, with an
F1 of 1, and no other. An empty answer scores 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit_envs.answer_tag import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

SCORER = "mrqa-2019/1"
"""Changes whenever a score can change."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Return ``text`` in the form in which answers are compared."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Say whether two answers are the same.

    >>> exact_match('The Beatles!', 'beatles')
    True
    """
    ours, theirs = normalise(answer), normalise(gold)
    return ours == theirs if ours and theirs else answer.strip().casefold() == gold.strip().casefold() != ""


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words.

    >>> round(f1('John Lennon of Liverpool', 'John Lennon'), 3)
    0.667
    """
    if exact_match(answer, gold):
        return 1.0
    ours, theirs = normalise(answer).split(), normalise(gold).split()
    overlap = (Counter(ours) & Counter(theirs)).total()
    return 2 * overlap / (len(ours) + len(theirs)) if overlap else 0.0


def score(answer: str, golds: Sequence[str]) -> Scored:
    """Return exact match as the hard and token F1 as the soft score."""
    return Scored(
        hard=float(any(exact_match(answer, gold) for gold in golds)),
        soft=max((f1(answer, gold) for gold in golds), default=0.0),
    )


def feedback(answer: str, golds: Sequence[str]) -> str:
    """Say in one line what was expected and how near the answer came; the target never sees it."""
    match = next((gold for gold in golds if exact_match(answer, gold)), None)
    if match is not None:
        return f"correct: the answer {quoted(answer)} matches {quoted(match)}"
    message = f"expected one of: {', '.join(quoted(gold) for gold in golds)}"
    if not answer.strip():
        return f"{message}; there is no answer"
    words = normalise(answer).split()
    overlap = max((Counter(words) & Counter(normalise(gold).split())).total() for gold in golds)
    return f"{message}; the answer {quoted(answer)} shares {overlap} of {len(words)} words"
