"""Which of lettered choices an answer gives: one reader for every environment and check with choices.

A letter counts where it is the whole answer, where words or signs name it as the answer, and at the beginning, before
its text or a reason. Everything else is prose: a letter that is denied, asked about, offered with another by "or",
or followed by another word of its sentence. Two sentences that give different letters give none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from skillgit_envs.answers import folded, last_line
from skillgit_envs.quantities import same_value

LONGEST = 4000  # characters of an answer, counted from its end, that are looked at
LABEL_SCORER = "choice-labels/2"  # changes whenever :func:`labels_of` can change


def label_of(answer: str, choices: Mapping[str, str]) -> str:
    """Return the one label that ``answer`` gives, or whose text it is; empty for none and for several.

    >>> label_of('Therefore, the correct choice is B.', {'A': 'even', 'B': 'odd'})
    'B'
    >>> label_of('A man walked there, so either A or B', {'A': 'even', 'B': 'odd'})
    ''
    """
    labels = labels_of(answer, choices)
    return next(iter(labels)) if len(labels) == 1 else ""


def chosen(answer: str, gold: str, options: Mapping[str, str]) -> bool:
    """Say whether an answer gives the right choice, or all of several right ones, by letter or by text."""
    right = _by_value(gold, options)
    if not right:  # the data list no choices, or name one that they do not list
        options = dict.fromkeys("ABCDEFG", "")
        right = labels_of(gold, options)
    return bool(right) and _by_value(answer, options) == right


def _by_value(text: str, options: Mapping[str, str]) -> frozenset[str]:
    if labels := labels_of(text, options):
        return labels
    equal = [label for label, option in options.items() if same_value(text, option)]
    return frozenset(equal if len(equal) == 1 else ())


def labels_of(answer: str, choices: Mapping[str, str]) -> frozenset[str]:
    """Return the labels that ``answer`` gives together, as in "B and C"; none where it gives no answer."""
    answer = answer.strip()[-LONGEST:]
    listing = re.sub(r"(?<=[A-Z])\s*\n\s*(?=[A-Z]\s*(?:\n|\Z))", ", ", answer)
    texts = (listing,) if listing != answer else (last_line(answer), answer)
    return next(filter(None, (_labels(text, choices) for text in texts)), frozenset()) if choices else frozenset()


def _labels(answer: str, choices: Mapping[str, str]) -> frozenset[str]:
    grammar, bare = _grammar("".join(choices)), _undressed(answer)
    if match := grammar.alone.fullmatch(text := _joined(bare, choices)):
        return grammar.labels(match[1])
    if label := _with_text(answer, bare, choices):
        return frozenset(label)
    if len(set(bare)) == len(bare) and set(bare) <= choices.keys():  # letters that are written together
        return frozenset(bare)
    if match := grammar.alone.fullmatch(text := _without_texts(text, choices)):
        return grammar.labels(match[1])
    if named := grammar.given(grammar.named, text):
        return named.pop() if len(named) == 1 else frozenset()
    if label := next((label for label, choice in choices.items() if _names(text, choice)), ""):
        return frozenset(label)
    named = grammar.given(grammar.implied, text)
    return named.pop() if len(named) == 1 else frozenset()


def _with_text(answer: str, text: str, choices: Mapping[str, str]) -> str:
    """Return the label whose text the answer is, unchanged or without its dress."""
    for key, dressed in ((answer, True), (text, False)):
        key = folded(key).rstrip(".")  # noqa: PLW2901 - a choice is compared in the same form
        for label, choice in choices.items():
            if key and folded(choice if dressed else _undressed(choice)).rstrip(".") == key:
                return label
    return ""


_PLAIN = str.maketrans(
    dict(zip("\uff08\uff09\u3010\u3011\uff1a\uff0e\u3002\uff0c", "()[]:..,", strict=True))
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | dict.fromkeys("\u2018\u2019", "'")
    | dict.fromkeys('"\u201c\u201d\u00ab\u00bb')
)
_COMMAND = re.compile(r"\\(?:text|textbf|textrm|textit|mathrm|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_BOX = re.compile(r"\\f?boxe?d?\s*\{((?:[^{}]|\{[^{}]*\})*)\}|<\|begin_of_box\|>(.*?)<\|end_of_box\|>", re.DOTALL)
_NESTED = 3  # commands inside of commands
_DRESS = re.compile(r"[*_`$]|\\[()\[\],;!]|</?[A-Za-z]{2,}>|^#+\s|(?<!\w)'(?=\w'\W*\Z)|(?<=\w)'(?=\W*\Z)")


def _undressed(text: str) -> str:
    """Return ``text`` on one line, without Markdown, tags, quotation marks and LaTeX; a box is said in words."""
    core = text.translate(_PLAIN)
    for _ in range(_NESTED):
        core = _COMMAND.sub(r"\1", core)
    return " ".join(_DRESS.sub("", _BOX.sub(r" answer: \1\2. ", core)).split())


def _joined(text: str, choices: Mapping[str, str]) -> str:
    """Return ``text`` with a label alone where it stood before its own text."""
    bodies = {label: body for label, choice in choices.items() if (body := _undressed(choice))}
    for label, body in sorted(bodies.items(), key=lambda entry: -len(entry[1])):
        before = rf"(?<!\w)(?:[(\[]\s*(?i:{label})\s*[)\]]|{label}|(?i:{label})(?=\s*[.):]))"
        own = rf"(?i:{re.escape(body)})(?!\w)"
        # Words such as "because" go on with the sentence, unless they end it.
        behind = rf"\s*[.):=-]+\s*{own}|\s*{own}" + (r"(?=\W*\Z)" if _is_common(body) else "")
        text = re.sub(rf"{before}(?:{behind})", label, text)
    return text


_LONG = 8  # characters from which the text of a choice is not taken for words of the answer's own


def _without_texts(text: str, choices: Mapping[str, str]) -> str:
    """Return ``text`` with one sign for each long text of a choice: what is said inside of it then names no label."""
    bodies = {label: _undressed(choice) for label, choice in choices.items()}
    for label, body in sorted(bodies.items(), key=lambda entry: -len(entry[1])):
        if len(body) >= _LONG and not _is_common(body):
            text = re.sub(rf"(?<!\w){re.escape(body)}(?!\w)", _sign(label), text, flags=re.IGNORECASE)
    return text


def _is_common(text: str) -> bool:
    """Say whether all words of ``text`` are words with which an answer is given."""
    return _WORDS.issuperset(re.findall(r"\w+", text.lower()))


def _sign(label: str) -> str:
    return chr(0xE000 + ord(label))


_FILLING = (
    r"(?:[\s:=→>,-]|\b(?i:is|was|are|be|would|must|should|will|has|to|can|only|therefore|thus|hence|then|clearly|simply"
    r"|likely|most|probably|definitely|indeed|the|following|one|option|choice|letter|statement|answer|given|here|labell?ed"
    r"|correct|right|final|best|that|both)\b){0,24}"
)
_LINK = r"\s*(?:\b(?i:is|was|are|would be|must be|should be|has to be)\b|[:=→]|[-=]+>)"
_ANSWER = (
    r"\b(?i:answers?|ans\.?|solution|verdict)(?!\w)"
    r"(?:\s+(?:to|for|of|among|in)\s[^.;:!?]{1,80}?\s(?:is|would be|must be)\b)?"
    r"|\b(?i:choices?|options?|letter|statement|pick|correct(?: one)?|final|conclusion|selection|it|one)"
    rf"{_LINK}|\b(?i:it's|that's|choose|chose|pick|picked|select|selected|go with|going with|went with|opt for|vote for"
    r"|settle (?:on|for)|guess)\b"
)
_REASON = (
    r"(?i:because|since|as|due|given|by|so|which|from|according|based|per|rather|not|instead|here|again"
    r"|and(?! [A-Z]\b))\b(?!-)"
)
_OTHER = r"(?i:or|either|maybe|perhaps|possibly)\b"
_VERDICT = (
    r"\s+(?i:is|are|must be|would be|should be|has to be|seems|appears|looks)(?:\s+(?i:to|be|the|my|our|only|single|one"
    r"|indeed|clearly|therefore|thus|definitely|final|most|likely|probably|correct|right|best|also))*?"
    r"\s+(?i:correct|right|true|valid|best|answer|choice|option)\b(?!\s+(?i:if|only|iff|when|unless|for)\b)|\s+it\s+is\b"
)
_PREDICATE = (
    r"(?i:is|are|was|were|isn't|can|cannot|could|may|might|must|does|doesn't|has|have|holds?|fails?|seems?|would"
    r"|and|or)\b"
)
_WORDS = frozenset(re.findall(r"[a-z]{2,}", _FILLING + _ANSWER + _REASON + _VERDICT + _PREDICATE))
_DENIED = re.compile(
    r"\b(?:not|never|neither|nor|cannot|unlikely|if|unless|whether|exclude|eliminate|reject|ruled? out|instead of"
    r"|rather than)\b|n't\b|\b(?:incorrect|wrong|false)\s*\Z",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.;:!?,]|\bbut\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How labels are named, for one range of labels."""

    label: re.Pattern[str]
    alone: re.Pattern[str]
    named: re.Pattern[str]  # what says in so many words that a label is the answer
    implied: re.Pattern[str]  # what suggests it, and counts where nothing says it

    def labels(self, text: str) -> frozenset[str]:
        """Return the labels of a list; none if it leaves a choice between them."""
        if re.search(r"\b(?:or)\b|/", text, re.IGNORECASE):
            return frozenset()
        matches = (match[0].strip("()[]<>{} ") for match in self.label.finditer(text))
        return frozenset(chr(ord(name) - 0xE000) if name >= "\ue000" else name.upper() for name in matches)

    def given(self, pattern: re.Pattern[str], text: str) -> set[frozenset[str]]:
        """Return what the sentences of ``text`` give that ``pattern`` finds."""
        return {labels for match in pattern.finditer(text) if (labels := self.labels(_listed(match, text)))}


def _listed(match: re.Match[str], text: str) -> str:
    """Return the list of labels in a match, or nothing where the clause denies it."""
    clause = _CLAUSE.split(text[: match.start()])[-1]
    return "" if _DENIED.search(clause) else next(filter(None, match.groups()))


@cache
def _grammar(labels: str) -> Grammar:
    small, signs = labels.lower(), "".join(map(_sign, labels))
    label = (
        rf"(?:[(\[<{{]\s*[{labels}{small}]\s*[)\]>}}]|(?<![\w'])(?:[{labels}{signs}](?![\w'])(?!-\w)"
        rf"|[{small}](?=\s*(?:[.):,;!]|\Z))))"
    )
    between = r"(?:\s*(?:,\s*and\b|,\s*or\b|[,;&/+]|\b(?i:and|or)\b)\s*)"
    several = rf"{label}(?:{between}{label}){{0,25}}"
    end = rf"(?=\s*(?:\Z|[.,;:!)\]}}(-]|{_REASON}))(?!\s*[,;(]?\s*{_OTHER})(?!\s*[~-]\s*[A-Z](?!\w))"
    close = rf"(?=\s*(?:[.!)]*\s*\Z|[,]?\s*{_REASON}))"
    named = rf"(?:{_ANSWER}){_FILLING}({several}){end}|({several})(?:{_VERDICT})"
    start = (
        rf"\A(?i:(?:option|choice|letter)\s+)?({several})"
        rf"(?:\Z|(?:[):;!](?!=)|\.(?![\w.])|\s*-\s)(?!\s*{_PREDICATE})|\s*,?\s*{_REASON}|(?<=[)\]])\s(?!{_PREDICATE}))"
    )
    implied = (
        rf"{start}|\b(?i:option|choice|letter)\s+({several}){close}"
        rf"|\b(?i:so|thus|therefore|hence|consequently|finally)\b{_FILLING}({several}){close}"
    )
    return Grammar(
        label=re.compile(label),
        alone=re.compile(rf"({several})\s*[.!,;:)]*"),
        named=re.compile(named),
        implied=re.compile(implied),
    )


def _names(text: str, choice: str) -> bool:
    """Say whether words name the text of a choice, and nothing behind it, as the answer."""
    body = _undressed(choice).rstrip(".")
    return bool(body) and re.search(rf"(?:{_ANSWER}){_FILLING}(?i:{re.escape(body)})\s*[.!]*\Z", text) is not None
