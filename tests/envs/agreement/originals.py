"""What the benchmarks' own programs say of an answer, written down a second time from their descriptions.

The programs themselves are not part of the project. Of OfficeQA's ``reward.py`` and MMRB's extractor, whose rules are
long, the verdicts on the pairs of ``officeqa.jsonl`` and ``mmrb.jsonl`` were recorded by running them as they are;
MMRB's with the brackets that its published text lost, and with ``Answer[...]`` around what it finds nothing in.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def mrqa(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 of SearchQA (``mrqa_official_eval.py``)."""

    def clean(text: str) -> list[str]:
        kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", kept).split()

    def overlap(ours: list[str], theirs: list[str]) -> float:
        rest, same = list(theirs), 0
        for word in ours:
            if word in rest:
                rest.remove(word)
                same += 1
        precision, recall = (same / len(ours), same / len(theirs)) if same else (0.0, 0.0)
        return 2 * precision * recall / (precision + recall) if same else 0.0

    words = clean(prediction)
    return float(any(words == clean(gold) for gold in golds)), max(overlap(words, clean(gold)) for gold in golds)


def anls(prediction: str, golds: Sequence[str]) -> float:
    """DocVQA's score by the script of its challenge: distances in lower case, lengths in capitals, 0.5 included."""

    def distance(one: str, other: str) -> int:
        row = list(range(len(other) + 1))
        for i, left in enumerate(one, start=1):
            above, row[0] = row[0], i
            for j, right in enumerate(other, start=1):
                above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (left != right))
        return row[-1]

    def plain(text: str) -> str:
        return " ".join(text.lower().split())

    lengths = [max(len(gold.upper()), len(prediction.upper())) for gold in golds]
    shares = [
        distance(plain(gold), plain(prediction)) / length if length else 0.0
        for gold, length in zip(golds, lengths, strict=True)
    ]
    best = 1 - min(shares)
    return best if best >= 0.5 else 0.0


def first_word_label(answer: str, choices: Mapping[str, str]) -> str:
    """LiveMathematicianBench as SkillOpt reads it: a label alone, the text of a choice, or a label as first word."""
    upper = answer.strip().upper()
    while upper and upper[-1] in ".):":
        upper = upper[:-1]
    if upper in choices:
        return upper
    for label, text in choices.items():
        if text.strip().upper() == answer.strip().upper():
            return label
    first = (answer.strip().upper().split() or [""])[0]
    return first if first in choices else ""


def last_box(reply: str) -> str:
    """Return what BabyVision takes out of a reply: the last box, with the brackets in it."""
    start = reply.rfind("\\boxed{")
    depth = 0
    for position in range(start + len("\\boxed"), len(reply)) if start >= 0 else ():
        depth += {"{": 1, "}": -1}.get(reply[position], 0)
        if not depth:
            return reply[start + len("\\boxed{") : position]
    return ""


def contains_true(reply: str) -> bool:
    """BabyVision's reading of its judge."""
    return "true" in reply.lower()


def lone_digit(reply: str) -> bool | None:
    """MathVerse's reading of its judge; None is asked again."""
    digit = reply.replace("Judgement:", "").strip()
    return digit == "1" if digit in {"0", "1"} else None


def first_letter(reply: str) -> str:
    """SealQA's reading of its judge, as openbench has it: the first A, B or C anywhere."""
    letters = [letter for letter in reply if letter in "ABC"]
    return letters[0] if letters else "C"
