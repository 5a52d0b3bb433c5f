"""How sentences of a skill are taken apart: plain sentences, negation, nearness of words, conditions on the question.

Knows English phrasing only; which phrasing asks for which habit is in ``instructions``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit_backends.offline.question import Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_FRONTMATTER = re.compile(r"\A\s*---\n.*?\n---\s*\n", re.DOTALL)
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_END = re.compile(r"(?<=[.!?;])[\"'”\u2019)]*\s+")
_CONTRACTION = re.compile(r"(?:n['\u2019]t)\b")
_NEGATION = re.compile(
    r"\b(?:not|never|no|nor|neither|avoid\w*|refrain\w*|without|nothing|cannot|stop|instead of|rather than)\b"
)

DROP = (
    r"(?:drop|omit|strip|remov|delet|discard|skip|trim|cut|exclud|shed|shear|peel|ignor|dispens|suppress)\w*"
    r"|(?:leav|left|take|taken|throw|thrown)\w*(?: [\w'-]+){0,8}? (?:out|off|away|aside|behind)|get rid of|leave out"
    r"|do(?:es)? not belong|is not part|are not part|be gone|goes? away|stays? out"
)
KEEP = (
    r"(?:includ|keep|kept|add|preserv|retain|repeat|giv|writ|attach|mention|quot|carr|copy|copie|put|append|prefix|"
    r"answer|return|take|spell|follow|state|use|want|need|belong|reproduc)\w*"
)
ABSENT = r"(?:no|not|without|minus|never|free of|instead of|rather than|nor|devoid of|neither)"
ALONE = (
    r"(?:alone|only|just|bare|plain|by itself|on its own|by themselves|on their own|itself|nothing else|nothing but|"
    r"solely|merely|simply|pure)"
)

_CONDITION = re.compile(
    r"\b(?:if|when|whenever|where|in case|once|for|as soon as|unless|asked|while)\b"
    r"(?P<body>[^,]*\b(?:questions?|clues?|asks?|asked|asking|wants?|wanted|expects?|expected|answer is)\b[^,]*)"
)
_FOR_KIND = re.compile(
    r"\bfor (?:an? |the |names? of |all )?(?P<body>persons?|people|places?|dates?|years?|numbers?|works?)\b"
)
_KINDS: tuple[tuple[Wanted, str], ...] = (
    (Wanted.PERSON, r"\b(?:who|whom|whose|persons?|people|someone|somebody|humans?|man|woman)\b"),
    (Wanted.PLACE, r"\b(?:where|places?|city|cities|country|countries|locations?|towns?)\b"),
    (Wanted.DATE, r"\b(?:(?:asks?|asked|a|with|for) when|years?|dates?|time)\b"),
    (Wanted.NUMBER, r"\b(?:how many|how much|numbers?|counts?|quantit\w+|figures?|amounts?)\b"),
    (Wanted.WORK, r"\b(?:works?|books?|films?|novels?|songs?|paintings?)\b"),
)


def plain_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a skill in lower case, without Markdown; headings, comments and code are left out."""
    text = _FRONTMATTER.sub("", _FENCE.sub("\n", _COMMENT.sub("\n", text)))
    for paragraph in _paragraphs(text):
        for sentence in _END.split(paragraph.replace("e.g.", "eg").replace("i.e.", "ie")):
            plain = _plain(sentence)
            if plain:
                yield plain


def _paragraphs(text: str) -> Iterator[str]:
    """Yield bullets and paragraphs, each on one line."""
    gathered: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_heading = line.lstrip().startswith("#")
        if (not line.strip() or is_heading or _BULLET.match(line)) and gathered:
            yield " ".join(gathered)
            gathered = []
        if line.strip() and not is_heading:
            gathered.append(_BULLET.sub("", line, count=1).strip())


def _plain(sentence: str) -> str:
    lowered = _CONTRACTION.sub(" not", sentence.lower().replace("can't", "cannot").replace("won't", "will not"))
    return " ".join(re.findall(r"[\w'\u2019-]*\w|[,:]", re.sub(r"[*_`\"“”]|(?<!\w)['\u2019]", " ", lowered)))


def has(text: str, pattern: str) -> bool:
    """Say whether the words of ``pattern`` occur in ``text``."""
    return re.search(rf"\b(?:{pattern})\b", text) is not None


def asks(text: str, pattern: str) -> bool:
    """Say whether ``pattern`` occurs in ``text`` without a negation shortly before it."""
    return any(not _is_negated(text, match.start()) for match in re.finditer(rf"\b(?:{pattern})\b", text))


def near(text: str, first: str, second: str, *, gap: int = 8, negated_too: bool = False) -> bool:
    """Say whether ``first``, normally not negated, stands at most ``gap`` words before or after ``second``."""
    ones = [
        match for match in re.finditer(rf"\b(?:{first})\b", text) if negated_too or not _is_negated(text, match.start())
    ]
    return any(
        _distance(text, one.span(), other.span()) <= gap
        for other in re.finditer(rf"\b(?:{second})\b", text)
        for one in ones
    )


def drops(text: str, thing: str) -> bool:
    """Say whether ``text`` asks to leave ``thing`` out, in one of the ways that English has for it."""
    refused = (
        rf"(?:not|never|avoid\w*|refrain\w*|stop)(?: [\w'-]+){{0,3}}? (?:{KEEP})(?: [\w'-]+|,){{0,8}}? (?:{thing})"
    )
    absent = rf"{ABSENT}(?: (?!out\b|off\b)[\w'-]+){{0,3}}? (?:{thing})"
    kept = rf"(?:not|never)(?: [\w'-]+){{0,2}}? (?:{DROP})"
    if has(text, kept):
        return False
    return near(text, DROP, thing, gap=9) or has(text, refused) or has(text, absent)


def is_conditional(text: str) -> bool:
    """Say whether ``text`` holds only for some questions."""
    return _CONDITION.search(text) is not None


def scope(text: str) -> frozenset[Wanted]:
    """Return the kinds of answer that ``text`` limits itself to; an empty set means all."""
    found = [match.group("body") for pattern in (_CONDITION, _FOR_KIND) for match in pattern.finditer(text)]
    return frozenset(kind for kind, pattern in _KINDS for body in found if re.search(pattern, body))


def kinds_named(text: str) -> frozenset[Wanted]:
    """Return the kinds of answer that ``text`` speaks of."""
    return frozenset(kind for kind, pattern in _KINDS if re.search(pattern, text))


def _is_negated(text: str, start: int) -> bool:
    before = re.split(r"[,:]", text[:start])[-1]
    return _NEGATION.search(" ".join(before.split()[-4:])) is not None


def _distance(text: str, one: tuple[int, int], other: tuple[int, int]) -> int:
    left, right = (one, other) if one[0] <= other[0] else (other, one)
    return text[left[1] : max(left[1], right[0])].count(" ")
