"""What a text asks of the reader and the agent: each sentence asks for the rule whose known wording it resembles.

A sentence that denies a rule does not ask for it, and one that resembles none asks for nothing: these models rehearse,
they do not understand English.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple

from skillgit.domain.edit import normalised
from skillgit_backends.offline.rules import RULES
from skillgit_backends.offline.text import stem, word_set

TITLE_LENGTH = 60  # the most characters that the prompts allow for a title
BULLET = re.compile(r"(?P<sign>\s*(?:[-*+]|\d+[.)])\s+)(?P<rule>\S.*)")
_LIKE = 0.6
"""Share of the words, rare ones weighing more, that a sentence has in common with a wording that says the same."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_FRONTMATTER = re.compile(r"\A\s*---\n.*?\n---\s*\n", re.DOTALL)
_END = re.compile(r"(?<=[.!?])[\"'”\u2019)]*\s+")
_SMALL = word_set("a an and are as at be by for from in is it of on or that the this to which with you your")
_DENIAL = re.compile(r"\b(?:not|never|no|nor|neither|avoid|without|cannot|instead of|rather than)\b")


class Phrase(NamedTuple):
    """A sentence as it is compared: the stems of its words, and whether it denies what they say."""

    words: frozenset[str]
    denies: bool


@lru_cache(maxsize=4096)
def rules_in(text: str) -> frozenset[StrEnum]:
    """Return the rules that ``text``, a skill or a single line, asks for."""
    return frozenset(rule for sentence in _sentences(text) if (rule := _rule_like(sentence)) is not None)


def _sentences(text: str) -> Iterator[str]:
    text = _FRONTMATTER.sub("", _FENCE.sub("\n", _COMMENT.sub("\n", text)))
    paragraphs, lines = list[str](), list[str]()
    for line in [*text.splitlines(), ""]:
        bullet, is_heading = BULLET.match(line), line.lstrip().startswith("#")
        if lines and (bullet or is_heading or not line.strip()):
            paragraphs.append(" ".join(lines))
            lines = []
        if line.strip() and not is_heading:
            lines.append(bullet["rule"] if bullet else line.strip())
    for paragraph in paragraphs:
        for sentence in _END.split(paragraph.lower().replace("n't", " not")):
            yield " ".join(re.findall(r"[\w'\u2019-]*\w|[,:]", re.sub(r"[*_`\"“”]|(?<!\w)['\u2019]", " ", sentence)))


@lru_cache(maxsize=4096)
def _rule_like(sentence: str) -> StrEnum | None:
    """Return the rule whose wording resembles ``sentence`` most; None if none does."""
    phrase = _compared(sentence)
    alike = (
        (_likeness(phrase, wording_phrase), rule)
        for wording_phrase, rule in _wordings()
        if wording_phrase.denies == phrase.denies
    )
    likeness, rule = max(alike, default=(0.0, None))
    return rule if likeness >= _LIKE else None


def _compared(sentence: str) -> Phrase:
    words = frozenset(stem(word) for word in sentence.split() if word not in _SMALL and word not in ",:")
    return Phrase(words, denies=len(_DENIAL.findall(sentence)) % 2 == 1)


def _likeness(phrase: Phrase, phrase_too: Phrase) -> float:
    weights = _weights()
    common, first, second = (
        sum(weights.get(word, weights[""]) for word in words)
        for words in (phrase.words & phrase_too.words, phrase.words, phrase_too.words)
    )
    return 2 * common / (first + second) if common else 0.0


@cache
def _wordings() -> tuple[tuple[Phrase, StrEnum], ...]:
    return tuple(
        (_compared(next(_sentences(f"{wording}\n"))), name) for name, rule in RULES.items() for wording in rule.wordings
    )


@cache
def _weights() -> Mapping[str, float]:
    """Return what each word of the wordings weighs, the rarer the more; the empty word stands for all others."""
    counts = Counter(word for phrase, _ in _wordings() for word in phrase.words)
    size = len(_wordings())
    return {word: math.log(1 + size / count) for word, count in counts.items()} | {"": math.log(1 + size)}


def draw(seed: str, label: str, size: int) -> int:
    """Return a number below ``size`` that depends on ``seed`` and ``label`` only."""
    return int.from_bytes(hashlib.sha256(f"{label}\0{seed}".encode()).digest()[:6], "big") % size


def wording(rule: StrEnum, seed: str, avoid: frozenset[str] = frozenset()) -> str:
    """Return a wording of ``rule`` whose normalised text is not in ``avoid``; empty if all are."""
    options = RULES[rule].wordings
    first = draw(seed, rule, len(options))
    sequence = (*options[first:], *options[:first])
    return next((text for text in sequence if normalised(text) not in avoid), "")


def labels(rules: Iterable[StrEnum]) -> list[str]:
    """Return the labels of ``rules`` in a fixed order."""
    present = frozenset(rules)
    return [rule.label for name, rule in RULES.items() if name in present]


def title(phrases: Iterable[str], otherwise: str = "small changes") -> str:
    """Return as many of ``phrases`` as fit into a title, and ``otherwise`` if none does."""
    text = ""
    for phrase in dict.fromkeys(phrases):
        longer = f"{text}, {phrase}" if text else phrase
        if len(longer) > TITLE_LENGTH:
            break
        text = longer
    return text or otherwise


def title_of_edits(edits: Iterable[Mapping[str, object]], otherwise: str = "small changes") -> str:
    """Return a title that says which rules are added, reworded and taken back."""
    return title((phrase for edit in edits for phrase in _phrases(edit)), otherwise)


def _phrases(edit: Mapping[str, object]) -> list[str]:
    new = labels(rules_in(str(edit.get("content", ""))))
    if edit.get("op") not in ("delete", "replace"):
        return new or ["general advice"]
    old = labels(rules_in(str(edit.get("anchor", ""))))
    removals = [f"no longer {label}" for label in old if label not in new]
    return [*removals, *(f"reword: {label}" if label in old else label for label in new)]
