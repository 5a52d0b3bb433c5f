"""Whether an answer is right: the official score of numbers with their units, and a plain match of text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit_envs.answer_tag import extract, in_tag, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


SCORERS: Mapping[str, str] = {"official": "officeqa-reward/1", "skillopt": "officeqa-em-f1/1"}
"""Name of a scorer to what changes whenever one of its scores can change."""


def final_answer(reply: str) -> str:
    """Return the answer in a reply: the last ``FINAL_ANSWER`` or ``answer`` block, else the last line."""
    block = in_tag(reply, "final_answer")
    return extract(reply) if block is None else block


def score(answer: str, gold: str, scorer: str, tolerance: float) -> Scored:
    """Score an answer.

    Args:
        scorer: One of :data:`SCORERS`; the official one knows right and wrong only.
        tolerance: The greatest relative error of a number for the official one.

    >>> score('It was 12.5 million.', '12.5 million', 'official', 0.01).hard
    1.0
    >>> score('13 million', '12.5 million', 'official', 0.01).hard
    0.0
    """
    if scorer == "official":
        right = float(not fault(answer, gold, tolerance))
        return Scored(hard=right, soft=right)
    return Scored(hard=float(exact(answer, gold)), soft=f1(answer, gold))


def feedback(answer: str, gold: str, scorer: str, tolerance: float) -> str:
    """Say in one line what was expected and what is wrong with the answer; the target never sees it."""
    if score(answer, gold, scorer, tolerance).passed:
        return f"correct: the answer {quoted(answer)} matches {quoted(gold)}"
    if scorer == "official":
        return f"expected {quoted(gold)}, not {quoted(answer)}: {fault(answer, gold, tolerance)}"
    return f"expected {quoted(gold)}, not {quoted(answer)}, which has a word overlap of {f1(answer, gold):.2f}"


_DROPPED = re.compile(r"[^\w\s.%-]|_")
_WORDS = frozenset({"million", "millions", "billion", "billions", "dollar", "dollars", "nominal"})


def tokens(text: str) -> list[str]:
    return [word for word in _DROPPED.sub("", text.lower()).split() if word not in _WORDS]


def exact(answer: str, gold: str) -> bool:
    """Say whether two answers are the same, and not nothing."""
    return tokens(answer) == tokens(gold) != []


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words."""
    ours, theirs = tokens(answer), tokens(gold)
    overlap = (Counter(ours) & Counter(theirs)).total()
    return 2 * overlap / (len(ours) + len(theirs)) if overlap else 0.0


YEARS = range(1900, 2101)
NEARBY = 20
"""Characters on either side of a number in which its unit is looked for."""

_MONEY = "$€£¥"
_NUMBER = re.compile(
    r"(?P<open>\(\s?)?"
    r"(?:(?<![\w)])(?P<before>-)\s?)?"
    rf"(?P<money>[{_MONEY}]\s?)?"
    r"(?:(?<![\w)])(?P<behind>-))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<!\d)\.\d+)"
    r"(?P<percent>\s?%)?"
    r"(?P<close>\s?\))?"
)
_UNITS = {
    "thousand": re.compile(r"\bthousands?\b|(?:^|(?<=^\s))k\b"),
    "million": re.compile(r"\bmillions?\b|(?:^|(?<=^\s))m\b"),
    "billion": re.compile(r"\bbillions?\b|(?:^|(?<=^\s))b\b"),
    "trillion": re.compile(r"\btrillions?\b"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number in a text.

    Attributes:
        value: What it says, not multiplied by its unit; the figure before a ``%``.
        unit: ``thousand``, ``million``, ``billion``, ``trillion`` or nothing.
        bare: Whether it stands without currency, per cent sign and unit.
    """

    value: Fraction
    unit: str
    bare: bool

    @property
    def like_a_year(self) -> bool:
        """Whether its value could be a year."""
        return self.value.denominator == 1 and int(self.value) in YEARS

    def near(self, candidate: Number, tolerance: Fraction) -> bool:
        """Say whether ``candidate`` is at most the share ``tolerance`` of this number away, in a unit that fits."""
        units = self.unit == candidate.unit or not (self.unit and candidate.unit)
        return units and close(self.value, candidate.value, tolerance)


def close(gold: Fraction, value: Fraction, tolerance: Fraction) -> bool:
    """Say whether ``value`` differs from ``gold`` by at most the share ``tolerance``; the limit is included."""
    return abs(gold - value) <= tolerance * abs(gold)


def plain(text: str) -> str:
    """Return ``text`` with every minus sign and narrow dash before a digit as a hyphen."""
    return re.sub(r"[\u2212\u2012\u2013](?=[\d.$€£¥])", "-", text)


def numbers(text: str) -> list[Number]:
    """Return the numbers of ``text`` in their order."""
    text = plain(text)
    matches = list(_NUMBER.finditer(text))
    return [_number(match, unit) for match, unit in zip(matches, _units(text, matches), strict=True)]


def without_numbers(text: str) -> str:
    """Return ``text`` with a blank in the place of each number."""
    return _NUMBER.sub(" ", plain(text))


def _number(match: re.Match[str], unit: str) -> Number:
    value = Fraction(match["digits"].replace(",", ""))
    in_brackets = bool(match["open"] and match["close"])
    # Accounts write a loss in brackets, prose a year; a currency sign tells them apart.
    loss = in_brackets and (bool(match["money"]) or value.denominator != 1 or int(value) not in YEARS)
    negative = bool(match["before"] or match["behind"] or loss)
    return Number(value=-value if negative else value, unit=unit, bare=not (match["money"] or match["percent"] or unit))


def _units(text: str, matches: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the unit of each number: the nearest word behind it, else before it, no other number between."""
    lower = text.lower()
    edges = [0, *(match.end() for match in matches)], [*(match.start() for match in matches), len(text)]
    gaps = [lower[start:end] for start, end in zip(*edges, strict=True)]
    for before, behind in pairwise(gaps):
        yield _first(behind[:NEARBY]) or _last(before[-NEARBY:])


def _first(gap: str) -> str:
    hits = [(match.start(), unit) for unit, pattern in _UNITS.items() if (match := pattern.search(gap))]
    return min(hits)[1] if hits else ""


def _last(gap: str) -> str:
    # A single letter is a unit only right behind its number.
    hits = [(m.start(), unit) for unit, pattern in _UNITS.items() for m in pattern.finditer(gap) if len(m[0]) > 1]
    return max(hits)[1] if hits else ""


LONGEST = 250
_GIVEN_UP = "unable to determine"
_MARKUP = re.compile(r"<[^<>]*>")
_UNIT_WORDS = re.compile(r"\b(?:(?:hundred|thousand|million|billion|trillion)s?|percent|percentage)\b")
_SHORTEST_TEXT = 2
_ATOM = re.compile(r"-?\d+(?:\.\d+)?")
_HEAD, _GROUP = re.compile(r"-?\d{1,3}"), re.compile(r"\d{3}(?:\.\d+)?")


def fault(answer: str, gold: str, tolerance: float) -> str:
    """Return what is wrong with ``answer``, in a few words; nothing if it is right.

    Args:
        answer: The answer; of a ``FINAL_ANSWER`` block in it only the last one counts.
        tolerance: The greatest relative error of a number, 0.01 for 1 %; it is within the limit if it equals it.
    """
    block = in_tag(answer, "final_answer")
    answer = (answer if block is None else block).strip()
    if not answer:
        return "there is no answer"
    if len(answer) > LONGEST or "\n" in answer:
        return f"an answer is one line of at most {LONGEST} characters"
    if _GIVEN_UP in answer.lower():
        return "nothing was determined"
    targets = numbers(gold)
    if not targets:
        return _text_fault(answer, gold)
    if _MARKUP.search(answer):
        return "there is markup in the answer"
    return _number_fault(answer, gold, targets, Fraction(str(tolerance)))


def _text_fault(answer: str, gold: str) -> str:
    if numbers(answer):
        return "a text without numbers is expected"
    return "" if _bare(answer) == _bare(gold) else "the text is another one"


def _bare(text: str) -> str:
    core = plain(text).strip().lower().strip('"').strip("'")
    return " ".join(re.sub(r"\([^()]*\)", " ", core).split())


def _number_fault(answer: str, gold: str, targets: Sequence[Number], tolerance: Fraction) -> str:
    words = _words(gold)
    candidates = _counted(numbers(answer), targets, words)
    if gold.strip().startswith("[") and gold.strip().endswith("]") and not words:
        return _list_fault(answer, candidates, targets, tolerance)
    if len(candidates) != len(targets):
        return f"its count of numbers is {len(candidates)} where {len(targets)} is expected"
    if not all(any(target.near(candidate, tolerance) for candidate in candidates) for target in targets):
        return "a number is another one"
    answer_words = _words(answer)
    if words and not (answer_words and (words in answer_words or answer_words in words)):
        return "the words beside the number are other ones"
    return ""


def _counted(candidates: list[Number], targets: Sequence[Number], words: str) -> list[Number]:
    """Return the numbers of an answer that count: years in passing do not, where no year is asked for."""
    if words or any(number.like_a_year for number in targets):
        return candidates
    return [number for number in candidates if not (number.like_a_year and number.bare)]


def _words(text: str) -> str:
    """Return what a text says beside numbers and units; nothing, if it is less than two letters."""
    rest = _UNIT_WORDS.sub(" ", without_numbers(text).lower())
    phrase = " ".join(re.sub(r"[^\w\s]|_", " ", rest).split())
    return phrase if len(phrase) >= _SHORTEST_TEXT else ""


def _list_fault(answer: str, candidates: Sequence[Number], targets: Sequence[Number], tolerance: Fraction) -> str:
    if len(candidates) == len(targets):
        pairs = zip(targets, candidates, strict=True)
        if all(target.near(candidate, tolerance) for target, candidate in pairs):
            return ""
    if _divides_into(answer, [number.value for number in targets], tolerance):
        return ""
    if len(candidates) != len(targets):
        return f"its count of numbers is {len(candidates)} where {len(targets)} is expected"
    return "a number of the list is another one, or stands in another place"


def _divides_into(answer: str, golds: Sequence[Fraction], tolerance: Fraction) -> bool:
    """Say whether the commas of a list can be read as thousands and as separators so that it is the expected one.

    ``[8,152,260]`` is 8 and 152260, or 8152 and 260. The set holds how many parts are used up by the numbers so far.
    """
    parts = [part.strip(" []$€£¥%") for part in plain(answer).split(",")]
    if not all(_ATOM.fullmatch(part) for part in parts):
        return False
    positions = {0}
    for gold in golds:
        positions = {
            end for start in positions for end, value in _readings(parts, start) if close(gold, value, tolerance)
        }
    return len(parts) in positions


def _readings(parts: Sequence[str], start: int) -> list[tuple[int, Fraction]]:
    """Return the numbers that begin with the part ``start``, each with the part behind its end."""
    readings = [(start + 1, Fraction(parts[start]))] if start < len(parts) else []
    if not readings or not _HEAD.fullmatch(parts[start]):
        return readings
    digits = parts[start]
    for end in range(start + 1, len(parts)):
        if not _GROUP.fullmatch(parts[end]) or "." in digits:
            break
        digits += parts[end]
        readings.append((end + 1, Fraction(digits)))
    return readings
